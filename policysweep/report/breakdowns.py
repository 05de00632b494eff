"""Outcomes and dimension scores by ambiguity type, complexity, customer persona and agent persona.

A task has several types of ambiguity and counts in each, so those groups overlap. Coverage of a group is
scored over recorded and failed units: units that are still pending belong to no group, and when they are too
many the agent's figures are withheld in every group.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from policysweep.report.coverage import Coverage
from policysweep.report.criteria import Side
from policysweep.report.design import Design, Group, agent_persona
from policysweep.report.figures import Json, dimension_levels
from policysweep.report.judged import Judged
from policysweep.report.outcomes import KEYS
from policysweep.report.per_agent import Settings, distribution
from policysweep.report.statistics import FloatArray, IntArray
from policysweep.report.units import UNSCORED, Units
from policysweep.v1 import run_pb2

Facet = Callable[[Design, str, int], Iterable[Group]]
"""The groups of a unit by its scenario and agent persona."""


def _optional(group: Group | None) -> Sequence[Group]:
    return () if group is None else (group,)


FACETS: Mapping[str, Facet] = {
    "ambiguity_type": lambda design, scenario, persona: design.case(scenario).ambiguity,
    "complexity": lambda design, scenario, persona: _optional(design.case(scenario).complexity),
    "customer_persona": lambda design, scenario, persona: _optional(design.case(scenario).customer),
    "agent_persona": lambda design, scenario, persona: (agent_persona(persona),),
}


def breakdowns_section(
    units: Units,
    failures: Iterable[run_pb2.UnitFailure],
    planned: Mapping[str, int],
    design: Design,
    judged: Judged | None,
    settings: Settings,
) -> Json:
    """Each facet as a list of groups. `failures` may hold units that have a record; those are history."""
    failed = [failure.unit for failure in failures if failure.unit.unit_id not in units.position]
    totals = _Totals(units, planned, settings.min_coverage)

    def facet_section(facet: Facet) -> list[Json]:
        lost = _lost(failed, facet, design)
        return [
            {
                "key": group.key,
                "title": group.title,
                "tasks": len(np.unique(units.task[rows])),
                "agents": {
                    agent: _figures(totals, agent, rows, lost[agent, group], judged, settings)
                    for agent in units.agents
                },
            }
            for group, rows in _groups(units, facet, design)
        ]

    return {name: facet_section(facet) for name, facet in FACETS.items()}


class _Totals:
    """The units, and why an agent's figures are withheld as a whole."""

    def __init__(self, units: Units, planned: Mapping[str, int], minimum: float) -> None:
        self.units = units
        self.withheld = {
            agent: Coverage(len(units.of(number)), planned[agent]).withheld(minimum)
            for number, agent in enumerate(units.agents)
        }


def _groups(units: Units, facet: Facet, design: Design) -> list[tuple[Group, IntArray]]:
    """Groups in their order, with the positions of their recorded units."""
    found: dict[Group, list[int]] = defaultdict(list)
    cache: dict[tuple[str, int], Iterable[Group]] = {}
    for position, key in enumerate(zip(units.scenario, units.persona.tolist(), strict=True)):
        if key not in cache:
            cache[key] = tuple(facet(design, *key))
        for group in cache[key]:
            found[group].append(position)
    ordered = sorted(found, key=lambda group: (group.order, group.key))
    return [(group, np.array(found[group], dtype=np.int64)) for group in ordered]


def _lost(failed: Sequence[run_pb2.Unit], facet: Facet, design: Design) -> Counter[tuple[str, Group]]:
    """Units without record, by agent and group."""
    return Counter(
        (unit.agent, group)
        for unit in failed
        for group in facet(design, unit.scenario_id, unit.agent_persona)
    )


def _figures(
    totals: _Totals, agent: str, rows: IntArray, lost: int, judged: Judged | None, settings: Settings
) -> Json:
    units = totals.units
    own = rows[units.agent[rows] == units.agents.index(agent)]
    scored = own[units.category[own] != UNSCORED]
    known = len(own) + lost
    coverage = Coverage(len(scored), known, "recorded and failed units are scored")
    withheld = totals.withheld[agent] or coverage.withheld(settings.min_coverage)
    counts = _counts(units, scored)
    return {
        "units": len(scored),
        "coverage": coverage.share,
        "withheld": withheld or None,
        **distribution(counts, KEYS, withheld=bool(withheld)),
        "dimensions": {} if judged is None or withheld else _dimensions(judged, scored, known, settings),
    }


def _counts(units: Units, rows: IntArray) -> FloatArray:
    """Units by task and category: [tasks that have units, categories]."""
    tasks = np.unique(units.task[rows], return_inverse=True)[1]
    counts = np.zeros((int(tasks.max(initial=-1)) + 1, len(KEYS)))
    np.add.at(counts, (tasks, units.category[rows]), 1.0)
    return counts


def _dimensions(judged: Judged, rows: IntArray, known: int, settings: Settings) -> Json:
    """Dimension scores by judge; the metrics of a dimension stand in the rubric."""
    criteria, found = judged.criteria, {}
    for judge in judged.judges:
        table = judged.table(judge, Side.AGENT, rows, known)
        levels = dimension_levels(table, criteria.by_dimension(Side.AGENT), criteria, settings.min_coverage)
        found[judge] = {
            dimension: {key: value for key, value in level.items() if key != "metrics"}
            for dimension, level in levels.items()
        }
    return found
