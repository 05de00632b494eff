"""pass^k of all methods on all groups of tasks, and how it grows over a family."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from policysweep.report.html.markup import Child, Markup, el
from policysweep.report.html.numbers import share, why
from policysweep.report.html.parts import dim, figure, folded, listed, section, table
from policysweep.report.sentences import bounds, count, decimal, percent
from policysweep.report.streams import sentences
from policysweep.report.streams.arms import CURVE, GROUPS
from policysweep.report.streams.sentences import domains, of_domain

Json = Mapping[str, Any]


def sisters_section(summary: Json) -> Markup:
    """The headline: what was learnt, on the tasks that test it."""
    return section(
        "sisters",
        "What is learnt: sister tasks",
        el(
            "p",
            "A sister task can be solved only by who has learnt what its parent teaches. pass^k is the "
            "chance that k trials of a task all pass.",
        ),
        [_sisters(domain, of_domain(summary, domain)) for domain in domains(summary)],
    )


def _sisters(domain: str, arms: Sequence[Json]) -> Child:
    held = [arm for arm in arms if arm["groups"]["sisters"]["tasks"]]
    if not held:
        return el("p", f"{domain.capitalize()} is played without sister tasks.")
    tasks = held[0]["groups"]["sisters"]
    about = f"{tasks['tasks']} sister tasks of {tasks['families']} families"
    return [
        el("h3", domain.capitalize()),
        figure(
            "passes",
            f"Passed sister tasks in {domain} with 95% interval; {about}.",
            f"pass^1 to pass^k of each method on the sister tasks of {domain}",
            about=domain,
        ),
        pass_table(
            f"{domain.capitalize()}: sister tasks passed in %, with 95% interval; {about}", held, "sisters"
        ),
        _gap_table(domain, arms),
        _by_seed(domain, held),
    ]


def pass_table(caption: str, arms: Sequence[Json], group: str) -> Markup:
    """pass^1 to pass^k of some methods on a group of tasks, each with its coverage."""
    trials = max((len(arm["groups"][group]["pass"]) for arm in arms), default=1) or 1
    names = ["Method", *(f"pass^{k}" for k in range(1, trials + 1)), "Scored trials", "Coverage in %"]
    return table(caption, names, [_pass_row(arm, arm["groups"][group], trials) for arm in arms])


def _pass_row(arm: Json, found: Json, trials: int) -> list[Child]:
    if found["withheld"]:
        cells: list[Child] = [why(f"withheld: {found['withheld']}"), *[None] * (trials - 1)]
    else:
        cells = [share(each["value"], each["interval"], each["reason"]) for each in found["pass"]]
    scored = f"{count(found['scored'])} of {count(found['planned'])}"
    return [arm["title"], *cells, scored, percent(found["coverage"])]


def _gap_table(domain: str, arms: Sequence[Json]) -> Child:
    rows = [(arm["title"], arm["gap_closed"]) for arm in arms if arm["gap_closed"]]
    if not rows:
        return el("p", dim(f"The gap to the oracle needs no memory and the oracle in the run ({domain})."))
    trials = max((len(found["pass"]) for _, found in rows), default=1) or 1
    caption = (
        f"{domain.capitalize()}: share of the gap between no memory and the oracle that is closed, on sister "
        "tasks; 1 is all of it"
    )
    names = ["Method", *(f"in pass^{k}" for k in range(1, trials + 1))]
    return table(caption, names, [[title, *_gap_cells(found, trials)] for title, found in rows])


def _gap_cells(found: Json, trials: int) -> Iterator[Child]:
    if found["withheld"]:
        yield why(f"withheld: {found['withheld']}")
        yield from [None] * (trials - 1)
        return
    for each in found["pass"]:
        if each["value"] is None:
            yield why(each["reason"])
        else:
            yield [decimal(each["value"]), " ", dim(bounds(each["interval"]))]


def _by_seed(domain: str, arms: Sequence[Json]) -> Child:
    """How much the order of the tasks matters."""
    first = next(
        (arm["groups"]["sisters"]["pass"][0] for arm in arms if arm["groups"]["sisters"]["pass"]), None
    )
    if first is None or len(first["by_seed"]) < 2:
        return None
    names = ["Method", *(f"Order {place}" for place in range(1, len(first["by_seed"]) + 1))]
    rows = [
        [arm["title"], *(percent(each) for each in arm["groups"]["sisters"]["pass"][0]["by_seed"])]
        for arm in arms
        if arm["groups"]["sisters"]["pass"]
    ]
    caption = f"{domain.capitalize()}: sister tasks passed in %, pass^1, for each seed's order of the tasks"
    return folded("By seed", table(caption, names, rows))


def curve_section(summary: Json) -> Markup:
    """Parent, then the sisters in the order in which a stream meets them."""
    shown = [(domain, _curved(of_domain(summary, domain))) for domain in domains(summary)]
    return section(
        "curve",
        "Over the family",
        el(
            "p",
            "In each stream a parent comes first and its sisters right after it. Who learns passes them.",
        ),
        [_curve(domain, arms) for domain, arms in shown if arms],
    )


def _curved(arms: Iterable[Json]) -> list[Json]:
    return [arm for arm in arms if any(each["tasks"] for each in arm["curve"])]


def _curve(domain: str, arms: Sequence[Json]) -> Child:
    return [
        el("h3", domain.capitalize()),
        figure(
            "curve",
            f"Share of the trials that pass at each place of a family in {domain}.",
            f"Learning curves of the methods in {domain}",
            about=domain,
        ),
        table(
            f"{domain.capitalize()}: passed in %, with 95% interval",
            ["Method", *CURVE],
            [
                [
                    arm["title"],
                    *(share(each["value"], each["interval"], each["reason"]) for each in arm["curve"]),
                ]
                for arm in arms
            ],
        ),
    ]


def passes_section(summary: Json) -> Markup:
    """All other groups of tasks."""
    return section(
        "groups",
        "Originals, parents, controls",
        [
            folded(
                f"{domain.capitalize()}: {title.lower()}",
                _group(domain, of_domain(summary, domain), group, title),
            )
            for domain in domains(summary)
            for group, title in GROUPS.items()
            if group != "sisters" and of_domain(summary, domain)[0]["groups"][group]["tasks"]
        ],
        listed(sentences.conventions(summary)),
    )


def _group(domain: str, arms: Sequence[Json], group: str, title: str) -> Markup:
    tasks = arms[0]["groups"][group]["tasks"]
    caption = f"{domain.capitalize()}: {title.lower()} passed in %, with 95% interval; {tasks} tasks"
    return pass_table(caption, arms, group)
