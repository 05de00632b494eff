"""Prints the summary of a stream run as tables and sentences, readable from 80 columns on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from policysweep.report.sentences import bounds, count, counted, decimal, interval, percent
from policysweep.report.sentences import tokens as token_cells
from policysweep.report.streams import sentences
from policysweep.report.streams.arms import CURVE, GROUPS
from policysweep.report.streams.costs import ROLES
from policysweep.report.streams.sentences import Json, of_domain, points, points_interval
from policysweep.report.tables import banner, columns, listed, pairs, plain, section

_LESSONS = 12
_DASH = Text("-", style="dim")


def render(summary: Json, console: Console) -> None:
    """Print a summary made by `summary.summarise`."""
    if summary["rehearsal"]:
        banner(console)
    pairs(sentences.header(summary), console)
    section(console, "What came out", listed("".join(each) for each in sentences.lead(summary)))
    for domain in sentences.domains(summary):
        _domain(summary, domain, console)
    section(console, "Feedback regimes on sisters: difference in points", [_regimes(summary)])
    section(console, "Lessons and the outcomes that they changed", [_lessons(summary)])
    section(console, "What the feedback led to", [_feedback(summary)])
    for domain in sentences.domains(summary):
        title = f"{domain.capitalize()}: coverage, what became of the planned tasks"
        section(console, title, [_coverage(of_domain(summary, domain))])
    section(console, "What went wrong", listed(sentences.went_wrong(summary)))
    section(console, "Tokens", [_tokens(summary)])
    section(console, "Conventions", listed(sentences.conventions(summary)))
    section(console, "Withheld or undefined", listed(sentences.notes(summary)))


def _domain(summary: Json, domain: str, console: Console) -> None:
    arms = of_domain(summary, domain)
    name = domain.capitalize()
    for group, title in GROUPS.items():
        held = [arm for arm in arms if arm["groups"][group]["tasks"]]
        tasks = held[0]["groups"][group]["tasks"] if held else 0
        section(
            console, f"{name}: {title.lower()} passed in %, {counted(tasks, 'task')}", [_passes(held, group)]
        )
    section(console, f"{name}: share of the gap to the oracle closed, on sisters", [_gaps(arms)])
    section(console, f"{name}: over the family, passed in %", [_curve(arms)])
    section(console, f"{name}: trials of controls and of other originals, against no memory", [_harm(arms)])


def _passes(arms: Sequence[Json], group: str) -> Table:
    trials = max((len(arm["groups"][group]["pass"]) for arm in arms), default=1) or 1
    names = ("Method", "pass^1", "95% interval", *(f"^{k}" for k in range(2, trials + 1)), "Coverage")
    table = columns(*names, words=1)
    for arm in arms:
        found = arm["groups"][group]
        if found["withheld"]:
            cells = [Text("withheld", style="bold red"), *[_DASH] * trials]
        else:
            first, *others = found["pass"]
            cells = [
                Text(percent(first["value"]), style="bold"),
                Text(interval(first["interval"]), style="dim"),
                *(Text(percent(each["value"])) for each in others),
            ]
        table.add_row(plain(arm["title"]), *cells, f"{percent(found['coverage'])}%")
    return table


def _gaps(arms: Sequence[Json]) -> Table:
    last = f"pass^{max((len(arm['gap_closed']['pass']) for arm in arms if arm['gap_closed']), default=1)}"
    table = columns("Method", "pass^1", "95% interval", last, "95% interval", words=1)
    for arm in arms:
        if arm["gap_closed"] is None or arm["gap_closed"]["withheld"]:
            continue
        found = arm["gap_closed"]["pass"]
        table.add_row(plain(arm["title"]), *_ratio(found[0]), *_ratio(found[-1]))
    return table


def _ratio(found: Json) -> Iterator[Text]:
    if found["value"] is None:
        yield Text("undefined", style="dim")
    else:
        yield Text(decimal(found["value"]))
    yield Text(bounds(found["interval"]), style="dim")


def _curve(arms: Sequence[Json]) -> Table:
    table = columns("Method", *CURVE, words=1)
    for arm in arms:
        if any(each["tasks"] for each in arm["curve"]):
            cells = [
                Text("withheld", style="red") if each["value"] is None else Text(percent(each["value"]))
                for each in arm["curve"]
            ]
            table.add_row(plain(arm["title"]), *cells)
    return table


def _harm(arms: Sequence[Json]) -> Table:
    names = (
        "Method",
        "Controls\nlost",
        "over-\nreached",
        "Originals:\npoints",
        "95% interval",
        "won",
        "lost",
    )
    table = columns(*names, words=1)
    for arm in arms:
        controls, kept = arm["controls"], arm["retention"]
        if not controls and not kept:
            continue
        cells: list[Text] = [*_lost(controls)]
        cells += _kept(kept) if kept else [_DASH] * 4
        table.add_row(plain(arm["title"]), *cells)
    return table


def _lost(controls: Json | None) -> Iterator[Text]:
    if not controls:
        yield from (_DASH, _DASH)
        return
    if controls["rate"]["value"] is None:
        yield from (Text("withheld", style="red"), _DASH)
        return
    yield Text(f"{count(controls['pairs']['lost'])} of {count(controls['pairs']['n'])}")
    overreach = controls["overreach"]
    yield Text(count(overreach["overreached"])) if overreach else Text("not known", style="dim")


def _kept(kept: Json) -> list[Text]:
    pairs_ = kept["pairs"]
    first = kept["pass"][0] if kept["pass"] else {"value": None, "interval": None}
    value = Text("withheld", style="red") if first["value"] is None else Text(points(first["value"]))
    return [
        value,
        Text(points_interval(first["interval"]), style="dim"),
        Text(count(pairs_["won"])),
        Text(count(pairs_["lost"])),
    ]


def _regimes(summary: Json) -> Table:
    last = f"pass^{summary['run']['trials']}"
    table = columns("Method", "Regimes", "pass^1", "95% interval", last, "95% interval", words=2)
    for found in summary["regimes"]:
        title, sides = f"{found['title']}, {found['domain']}", f"{found['regime']} - {found['baseline']}"
        if found["withheld"]:
            table.add_row(plain(title), sides, Text("withheld", style="red"), *[_DASH] * 3)
            continue
        cells = []
        for each in (found["pass"][0], found["pass"][-1]):
            cells += [
                "none" if each["value"] is None else points(each["value"]),
                points_interval(each["interval"]),
            ]
        table.add_row(plain(title), sides, *cells)
    return table


def _lessons(summary: Json) -> Table:
    """Those that changed most outcomes, over all methods."""
    table = columns("Entry", "Method", "Taught by", "Consulted", "Won", "Lost", words=3)
    for arm, lesson in sentences.taught_lessons(summary)[:_LESSONS]:
        table.add_row(
            plain(lesson["capability_id"]),
            plain(f"{arm['title']}, {arm['domain']}"),
            plain(f"task {lesson['taught_by']}"),
            *(count(lesson[key]) for key in ("consulted", "won", "lost")),
        )
    return table


def _feedback(summary: Json) -> Table:
    names = ("Domain", "Method", "Added", "Revised", "Omitted", "Missing", "Type I", "Type II")
    table = columns(*names, words=2)
    for arm in summary["arms"]:
        found = arm["feedback"]
        missing = sum(sum(reasons.values()) for reasons in found["missing"].values())
        if found["revisions"] or missing:
            kinds, types = found["revisions"], found["failure_types"]
            numbers = (
                *(kinds.get(kind, 0) for kind in ("ADD", "REVISE", "OMIT")),
                missing,
                *(types.get(kind, 0) for kind in ("POLICY_VIOLATION", "POLICY_GAP")),
            )
            table.add_row(plain(arm["domain"]), plain(arm["title"]), *map(count, numbers))
    return table


def _coverage(arms: Sequence[Json]) -> Table:
    names = ("Method", "Streams", "Planned", "Scored", "Coverage", "Not\nscored", "Failed", "Pending")
    table = columns(*names, words=1)
    for arm in arms:
        found, streams = arm["coverage"], arm["streams"]
        table.add_row(
            plain(arm["title"]),
            f"{count(streams['complete'])} of {count(streams['planned'])}",
            count(found["planned"]),
            count(found["scored"]),
            f"{percent(found['coverage'])}%",
            count(found["recorded"] - found["scored"]),
            count(found["failed"]),
            count(found["pending"]),
        )
    return table


def _tokens(summary: Json) -> Table:
    table = columns("Domain", "Method", "Role", "Model calls", "Prompt", "Cached", "Written", words=3)
    for arm in summary["arms"]:
        for role in ROLES:
            found = arm["costs"]["tokens"][role]
            if found["answers"]:
                table.add_row(plain(arm["domain"]), plain(arm["title"]), role, *token_cells(found))
    return table
