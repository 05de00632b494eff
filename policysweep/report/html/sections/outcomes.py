"""What each agent decides: its distribution over the outcomes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from policysweep.report.html.markup import Child, Markup
from policysweep.report.html.numbers import share, sizes
from policysweep.report.html.parts import dim, figure, folded, section, table, withheld
from policysweep.report.outcomes import COARSE_KEYS, DISPLAY
from policysweep.report.sentences import count, counted

Json = Mapping[str, Any]

_COARSE = {
    "GRANT": "Granted: money, credit or goods",
    "DENY": "Denied",
    "OTHER": "Neither: escalated, or the customer gave up",
    COARSE_KEYS[0]: DISPLAY[COARSE_KEYS[0]],
}


def outcomes_section(summary: Json) -> Markup:
    """Composition, intervals, and both tables."""
    agents, level = summary["agents"], f"{100 * summary['methods']['confidence']:g}%"
    n = sizes({name: found["coverage"]["scored"] for name, found in agents.items()})
    return section(
        "outcomes",
        "What the agents decide",
        _withheld(agents),
        figure(
            "composition", f"Share of each outcome among the scored units; {n}.", "Outcomes of each agent"
        ),
        figure(
            "outcome-intervals",
            f"The same shares with their {level} intervals, clustered by task; {n}.",
            "Share of each outcome by agent, with intervals",
        ),
        table(
            f"Outcomes in % of scored units, with {level} interval",
            ["Outcome", *agents],
            _rows({name: found["outcomes"] for name, found in agents.items()}, DISPLAY),
        ),
        folded(
            "Coarse map: granted, denied, neither",
            table(
                f"Coarse outcomes in % of scored units, with {level} interval",
                ["Outcome", *agents],
                _rows({name: found["outcomes"]["coarse"] for name, found in agents.items()}, _COARSE),
            ),
        ),
    )


def _withheld(agents: Json) -> Child:
    reasons = {name: found["outcomes"]["withheld"] for name, found in agents.items()}
    return [withheld(f"shares of {name}. {reason}.") for name, reason in reasons.items() if reason]


def _rows(agents: Mapping[str, Json], names: Mapping[str, str]) -> Iterator[list[Child]]:
    for key, name in names.items():
        yield [name, *(_cell(found, key) for found in agents.values())]
    yield ["Scored units (n)", *(count(sum(found["counts"].values())) for found in agents.values())]


def _cell(found: Json, key: str) -> Child:
    """A share with its interval; the bare count where shares are withheld."""
    if found["shares"] is None:
        return dim(counted(found["counts"][key], "unit"))
    return share(found["shares"][key]["share"], found["shares"][key]["interval"])
