"""Prints the comparison of two runs as tables and sentences, readable from 80 columns on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rich.console import Console
from rich.table import Table
from rich.text import Text

from policysweep.report.judging_sentences import signed
from policysweep.report.outcomes import DISPLAY
from policysweep.report.sentences import Json, bounds, count, counted, decimal, interval, percent, tokens
from policysweep.report.tables import banner, columns, figure, listed, pairs, plain, section

_LISTED_CHANGES = 10

_WIDE = 100
"""Columns from which on an interval stands behind its difference."""

_STYLES = {"better": "bold green", "worse": "bold red", "withheld": "dim"}


def render_comparison(comparison: Json, console: Console) -> None:
    """Print a comparison made by `comparison.compare_runs`."""
    if comparison["rehearsal"]:
        banner(console)
    pairs(_header(comparison), console)
    section(console, "What differs between the runs", listed(comparison["changes"]))
    not_compared = (f"{judge}: {why}." for judge, why in comparison["judges"].items() if why)
    section(console, "Judges whose scores are not compared", listed(not_compared))
    for pair in comparison["pairs"]:
        _pair(pair, console)


def _header(comparison: Json) -> Iterator[tuple[str, str]]:
    for label, run in zip(("First run", "Second run"), comparison["runs"], strict=True):
        agents = ", ".join(f"{name} ({model})" if model else name for name, model in run["agents"].items())
        yield label, f"{run['run'] or '(no name)'}: {agents or 'no agents'}"
    dataset = comparison["runs"][0]
    yield "Data set", f"{dataset['dataset'] or '(no name)'} {dataset['dataset_digest'][:12]}"


def _pair(pair: Json, console: Console) -> None:
    console.print()
    console.rule(plain(title(pair)), align="left", characters="─")
    section(console, "Outcomes", listed(_outcomes(pair)))
    for judge, found in pair["scores"].items():
        heading = plain(
            f"Dimension scores by judge {judge}, 1 to 5: second minus first, with 95% interval"
        ).plain
        section(console, heading, [_dimensions(found, console.width)])
        section(console, "How to read the verdicts", listed(_verdicts(found)))
    section(console, "Share of conversations in %: second minus first, with 95% interval", [_shares(pair)])
    section(console, "Changes of outcome, the commonest first", [_changes(pair)])
    section(console, "Tokens of the matched conversations", [_tokens(pair)])


def title(pair: Json) -> str:
    """The agents compared."""
    one, other = pair["agents"]
    return one if one == other else f"{one} (first) and {other} (second)"


def _outcomes(pair: Json) -> Iterator[str]:
    matched, outcomes = pair["matched"], pair["outcomes"]
    if pair["withheld"]:
        yield f"Withheld: {pair['withheld']}."
    covered = f"{percent(matched['coverage'])}% of those planned"
    yield (
        f"{counted(matched['conversations'], 'matched conversation')} ({covered}) of "
        f"{counted(matched['scenarios'], 'scenario')} and {counted(matched['tasks'], 'task')}."
    )
    yield f"{_changed(outcomes['changed'])} ended with another outcome, {_scenarios(outcomes)}."
    yield f"{_changed(outcomes['coarse_changed'])} changed between granted, denied and neither."
    yield from _noise(outcomes["noise"])
    if not pair["withheld"]:
        yield from _moved(outcomes)


def _changed(found: Json) -> str:
    share = "" if found["share"] is None else f" ({percent(found['share'])}% {interval(found['interval'])})"
    return f"{count(found['changed'])} of {count(found['n'])}{share}"


def _scenarios(outcomes: Json) -> str:
    return f"in {counted(outcomes['scenarios_changed'], 'scenario')}"


def _noise(noise: list[float | None]) -> Iterator[str]:
    known = [
        f"{percent(share)}% in the {run}"
        for share, run in zip(noise, ("first", "second"), strict=True)
        if share is not None
    ]
    if known:
        yield f"Two trials of one run end differently as well: {' and '.join(known)} run."


def _moved(outcomes: Json) -> Iterator[str]:
    for key, what in (("p_value", "over outcomes"), ("coarse_p_value", "over granted, denied and neither")):
        p_value = outcomes[key]
        if p_value is None:
            yield f"The distribution {what} is the same in every task."
        else:
            shown = "has moved" if p_value < 0.05 else "is not shown to have moved"
            yield f"The distribution {what} {shown} ({_p('p', p_value)}, swapping the runs task by task)."


def _dimensions(found: Json, width: int) -> Table:
    table = columns("Dimension", "First", "Second", "Difference", "p (Holm)", "Verdict", words=1)
    for level in found["dimensions"].values():
        table.add_row(
            plain(level["title"]),
            *(_score(value) for value in level["runs"]),
            _difference(level, wide=width >= _WIDE),
            _p("", level["p_holm"]),
            Text(_why(level) or level["verdict"], style=_STYLES.get(level["verdict"], "")),
        )
    return table


def _why(level: Json) -> str:
    missing = level["missing"]
    return f"{len(missing)} of {len(level['metrics'])} metrics missing" if missing else ""


def _score(value: float | None) -> str:
    return "none" if value is None else decimal(value)


def _difference(level: Json, *, wide: bool) -> Text:
    shown = "none" if level["mean"] is None else signed(level["mean"])
    return figure(shown, bounds(level["interval"]), wide=wide)


def _verdicts(found: Json) -> Iterable[str]:
    tested = sum(level["p_value"] is not None for level in found["dimensions"].values())
    if tested > 1:
        yield (
            "An interval is for its difference alone; p and verdict allow for the fact that "
            f"{count(tested)} were tested."
        )
    if edited := found["asked_differently"]:
        yield f"Not compared, because their panel was edited between the runs: {', '.join(edited)}."


def _shares(pair: Json) -> Table:
    table = columns("Outcome", "First", "Second", "Difference", "p (Holm)", words=1)
    shares: Mapping[str, Json] = pair["outcomes"]["shares"] or {}
    for key, name in DISPLAY.items() if shares else ():
        found = shares[key]
        change = found["difference"]
        ends = [100 * end for end in change["interval"]] if change["interval"] else None
        cell = figure(_points(change["mean"]), _ends(ends), wide=True)
        table.add_row(name, *(percent(share) for share in found["runs"]), cell, _p("", change["p_holm"]))
    return table


def _p(name: str, p_value: float | None) -> str:
    """A p-value, as in "p = 0.031" or "p < 0.001"; without a name as in "0.031"."""
    if p_value is None:
        return ""
    small = p_value < 0.001
    sign = "< " if small else "= " if name else ""
    return f"{name} {sign}{max(p_value, 0.001):.3f}".strip()


def _points(difference: float) -> str:
    """A difference of shares in percentage points."""
    shown = f"{round(100 * difference, 1) + 0.0:.1f}"
    return f"+{shown}" if float(shown) > 0 else shown


def _ends(ends: list[float] | None) -> str:
    return f"[{ends[0]:.1f}, {ends[1]:.1f}]" if ends else ""


def _changes(pair: Json) -> Table:
    table = columns("First run", "Second run", "Conversations", words=2)
    moved = [found for found in pair["outcomes"]["from_to"] if found["from"] != found["to"]]
    moved.sort(key=lambda found: -found["conversations"])
    for found in moved[:_LISTED_CHANGES]:
        table.add_row(DISPLAY[found["from"]], DISPLAY[found["to"]], count(found["conversations"]))
    if rest := moved[_LISTED_CHANGES:]:
        others = sum(found["conversations"] for found in rest)
        table.add_row(Text(f"{counted(len(rest), 'other change')}", style="dim"), "", count(others))
    return table


def _tokens(pair: Json) -> Table:
    table = columns("Run", "Side", "Model calls", "Prompt tokens", "Cached", "Written", words=2)
    for run, found in zip(("first", "second"), pair["tokens"], strict=True):
        for position, side in enumerate(("agent", "customer")):
            table.add_row("" if position else run, side, *tokens(found[side]))
    return table
