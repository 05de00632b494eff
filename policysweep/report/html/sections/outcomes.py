"""What each agent decides: its distribution over the outcomes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from policysweep.report.html.markup import Child, Markup, el
from policysweep.report.html.parts import dim, figure, folded, section, table
from policysweep.report.outcomes import COARSE_KEYS, DISPLAY
from policysweep.report.sentences import count, interval, percent

Json = Mapping[str, Any]

_COARSE = {
    "GRANT": "Granted: money, credit or goods",
    "DENY": "Denied",
    "OTHER": "Neither: escalated, or the customer gave up",
    COARSE_KEYS[0]: DISPLAY[COARSE_KEYS[0]],
}


def outcomes_section(summary: Json) -> Markup:
    """Composition, intervals, and both tables."""
    agents = summary["agents"]
    sizes = ", ".join(f"{name} n = {count(found['coverage']['scored'])}" for name, found in agents.items())
    return section(
        "outcomes",
        "What the agents decide",
        figure(
            "composition", f"Share of each outcome among the scored units: {sizes}.", "Outcomes of each agent"
        ),
        figure(
            "outcome-intervals",
            f"The same shares with their {_level(summary)} intervals, clustered by task: {sizes}.",
            "Share of each outcome by agent, with intervals",
        ),
        table(
            f"Outcomes in % of scored units, with {_level(summary)} interval",
            ["Outcome", *agents],
            _rows(agents, DISPLAY, lambda found: found),
        ),
        folded(
            "Coarse map: granted, denied, neither",
            table(
                f"Coarse outcomes in % of scored units, with {_level(summary)} interval",
                ["Outcome", *agents],
                _rows(agents, _COARSE, lambda found: found["coarse"]),
            ),
        ),
        [
            el(
                "p",
                el("strong", f"{name}: shares are withheld. "),
                found["outcomes"]["withheld"],
                ".",
                class_="withheld",
            )
            for name, found in agents.items()
            if found["outcomes"]["withheld"]
        ],
    )


def _level(summary: Json) -> str:
    return f"{100 * summary['methods']['confidence']:g}%"


def _rows(agents: Json, names: Mapping[str, str], part: Any) -> Iterator[list[Child]]:
    for key, name in names.items():
        yield [name, *(_cell(part(found["outcomes"]), key) for found in agents.values())]
    yield ["Scored units (n)", *(count(found["coverage"]["scored"]) for found in agents.values())]


def _cell(found: Json, key: str) -> Child:
    """A share with its interval; the bare count where shares are withheld."""
    if found["shares"] is None:
        return dim(f"withheld; {count(found['counts'][key])} units")
    share = found["shares"][key]
    return [percent(share["share"]), " ", dim(interval(share["interval"]))]
