"""Counts of a run, taken in one pass over its rows.

`Tallies` keeps, per agent, sums and counters, and for the comparison of agents one byte per unit: the
category of the unit at its case (task, scenario, agent persona) and trial. Nothing depends on the order of
the rows.

A unit is *scored* when its episode ended cleanly or by the agent's own fault. Ends by another fault
(customer, tools, budget) are recorded but not scored; they lower the coverage, as do units without record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from policysweep.errors import InputError
from policysweep.report.agreement import Grid
from policysweep.report.outcomes import KEYS, NO_OUTCOME
from policysweep.report.rows import ERROR_FIELDS, Row, Tokens
from policysweep.report.statistics import FloatArray, IntArray, index
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import run_pb2

UNSTATED = "UNSTATED"
"""Name of a fault or failure whose record does not say who or why."""

_MISSING = 255
_NO_TOKENS = Tokens()


class Conversation(NamedTuple):
    """What units of different agents share when they are matched."""

    task_id: str
    scenario_id: str
    agent_persona: int
    trial: int


def category(row: Row) -> int | None:
    """The category of a scored unit (see `outcomes.py`); None for a unit that is not scored."""
    if row.fault == ep.FAULT_PARTY_AGENT:
        return NO_OUTCOME
    if row.fault == ep.FAULT_PARTY_UNSPECIFIED and row.outcome != ep.OUTCOME_UNSPECIFIED:
        return row.outcome
    return None


@dataclass(slots=True)
class AgentTally:
    """Counts of one agent. Counters over enum numbers of `episode_pb2`."""

    planned: int
    recorded: int = 0
    categories: Counter[tuple[str, int]] = field(default_factory=Counter)
    """Scored units by task and category."""
    ends: Counter[tuple[int, int]] = field(default_factory=Counter)
    """Recorded units by fault and end reason."""
    unstated: int = 0
    """Recorded units without outcome whose end names no fault."""
    failures: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Units that failed without record, by party and reason of the last attempt."""
    mismatches: Counter[tuple[int, int]] = field(default_factory=Counter)
    """Units whose declared and executed outcome contradict each other, by the two."""
    errors: list[int] = field(default_factory=lambda: [0] * len(ERROR_FIELDS))
    agent_tokens: Tokens = _NO_TOKENS
    customer_tokens: Tokens = _NO_TOKENS
    turns: int = 0
    durations: list[float] = field(default_factory=list)
    rehearsal: int = 0

    @property
    def scored(self) -> int:
        """Units that ended cleanly or by the agent's fault."""
        return self.categories.total()

    @property
    def failed(self) -> int:
        """Units that failed and have no record."""
        return self.failures.total()

    @property
    def pending(self) -> int:
        """Planned units that have neither a record nor a failure."""
        return self.planned - self.recorded - self.failed

    def add(self, row: Row) -> None:
        """Count a row."""
        self.recorded += 1
        found = category(row)
        if found is not None:
            self.categories[row.task_id, found] += 1
        elif row.fault == ep.FAULT_PARTY_UNSPECIFIED:
            self.unstated += 1
        self.ends[row.fault, row.end_reason] += 1
        if row.mismatch:
            self.mismatches[row.declared, row.executed] += 1
        for position, count in enumerate(row.errors):
            self.errors[position] += count
        self.agent_tokens = self.agent_tokens.plus(row.agent_tokens)
        self.customer_tokens = self.customer_tokens.plus(row.customer_tokens)
        self.turns += row.turns
        self.durations.append(row.duration_seconds)
        self.rehearsal += row.rehearsal


class Tallies:
    """Counts of all agents of a run, and their outcomes side by side."""

    def __init__(self, planned: Mapping[str, int]) -> None:
        """Planned units of each agent; the order of the agents is kept."""
        self.agents = {name: AgentTally(units) for name, units in planned.items()}
        self._column = {name: position for position, name in enumerate(planned)}
        self._cells: dict[Conversation, bytearray] = {}
        self._recorded: set[str] = set()

    def add_rows(self, rows: Iterable[Row]) -> None:
        """Count rows, once each. Raises InputError for a row that is not of the plan or comes twice."""
        for row in rows:
            if row.agent not in self.agents:
                raise InputError(_unplanned("The record", row.unit_id, row.agent))
            key = Conversation(row.task_id, row.scenario_id, row.agent_persona, row.trial)
            cell = self._cells.setdefault(key, bytearray([_MISSING]) * len(self.agents))
            column = self._column[row.agent]
            if row.unit_id in self._recorded or cell[column] != _MISSING:
                raise InputError(
                    f"Two records for unit {row.unit_id} (agent {row.agent!r}, scenario {row.scenario_id!r}, "
                    f"trial {row.trial}); run `policysweep verify` on the run."
                )
            found = category(row)
            # A unit that is not scored is marked too, or a second record of it would go unnoticed.
            cell[column] = len(KEYS) if found is None else found
            self._recorded.add(row.unit_id)
            self.agents[row.agent].add(row)

    def add_failures(self, failures: Iterable[run_pb2.UnitFailure]) -> None:
        """Count failed units, after all rows: a failure whose unit has a record is history."""
        last = {failure.unit.unit_id: failure for failure in failures}
        for unit_id, failure in last.items():
            if failure.unit.agent not in self.agents:
                raise InputError(_unplanned("The failure", unit_id, failure.unit.agent))
            if unit_id not in self._recorded:
                self.agents[failure.unit.agent].failures[_cause(failure)] += 1

    def matched(self, agents: Sequence[str]) -> tuple[Grid, IntArray, tuple[str, ...]]:
        """Conversations in which each of `agents` has a scored unit.

        Categories [conversations, agents], the index of each conversation's task, and the task ids in order.
        """
        columns = [self._column[agent] for agent in agents]
        found: list[list[int]] = []
        names: list[str] = []
        for key in sorted(self._cells):
            cell = self._cells[key]
            picked = [cell[column] for column in columns]
            if max(picked) < len(KEYS):
                found.append(picked)
                names.append(key.task_id)
        task_ids, tasks = index(names)
        return np.array(found, dtype=np.int8).reshape(len(found), len(columns)), tasks, task_ids

    def cases(self, agent: str) -> tuple[FloatArray, IntArray]:
        """Cases (task, scenario, agent persona) with at least one scored trial of `agent`.

        Counts [cases, categories] over the trials, and the index of each case's task.
        """
        column = self._column[agent]
        counts: dict[tuple[str, str, int], list[int]] = {}
        for key in sorted(self._cells):
            found = self._cells[key][column]
            if found < len(KEYS):
                counts.setdefault(key[:3], [0] * len(KEYS))[found] += 1
        table = np.array(list(counts.values()), dtype=np.float64).reshape(-1, len(KEYS))
        return table, index([task for task, _, _ in counts])[1]


def by_task(categories: Mapping[tuple[str, int], int]) -> tuple[FloatArray, tuple[str, ...]]:
    """Units by (task, category) -> counts [tasks, categories] and the task ids in order."""
    task_ids, tasks = index([task for task, _ in categories])
    counts = np.zeros((len(task_ids), len(KEYS)))
    for task, ((_, found), units) in zip(tasks, categories.items(), strict=True):
        counts[task, found] = units
    return counts, task_ids


def _cause(failure: run_pb2.UnitFailure) -> tuple[str, str]:
    """Party and reason of the last attempt."""
    if not failure.attempts:
        return UNSTATED, UNSTATED
    attempt = failure.attempts[-1]
    return party_name(attempt.party), attempt.reason or UNSTATED


def party_name(number: int) -> str:
    """Name of a fault party without its prefix; UNSTATED for none and for a number that we do not know."""
    if number == ep.FAULT_PARTY_UNSPECIFIED or number not in ep.FaultParty.values():
        return UNSTATED
    return ep.FaultParty.Name(ep.FaultParty.ValueType(number)).removeprefix("FAULT_PARTY_")


def _unplanned(what: str, unit_id: str, agent: str) -> str:
    return (
        f"{what} of unit {unit_id} is of agent {agent!r}, which the run's plan does not have; "
        "run `policysweep verify` on the run."
    )
