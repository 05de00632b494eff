"""The recorded units of a run as columns of numbers, in an order that does not depend on the rows'."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from policysweep.report.rows import Row
from policysweep.report.statistics import IntArray, index
from policysweep.report.tally import Conversation, category

UNSCORED = -1
"""Category of a unit that is recorded but not scored (see `tally.py`)."""


class Units:
    """Recorded units, sorted by conversation and agent; every array runs over them."""

    def __init__(self, rows: Iterable[Row], agents: Sequence[str]) -> None:
        """`agents` are the agents of the sweep, in its order; every row is of one of them."""
        column = {name: position for position, name in enumerate(agents)}
        placed = sorted((_conversation(row), column[row.agent], row.unit_id, category(row)) for row in rows)
        self.agents = tuple(agents)
        self.position = {unit_id: place for place, (_, _, unit_id, _) in enumerate(placed)}
        """Position of each unit by its id."""
        self.agent: IntArray = np.array([agent for _, agent, _, _ in placed], dtype=np.int64)
        self.category: IntArray = np.array(
            [UNSCORED if found is None else found for _, _, _, found in placed], dtype=np.int64
        )
        self.scenario = [key.scenario_id for key, _, _, _ in placed]
        self.persona: IntArray = np.array([key.agent_persona for key, _, _, _ in placed], dtype=np.int64)
        self.task_ids, self.task = index([key.task_id for key, _, _, _ in placed])
        keys = sorted({key for key, _, _, _ in placed})
        self._number = {key: number for number, key in enumerate(keys)}
        self._case: IntArray = np.array([self._number[key] for key, _, _, _ in placed], dtype=np.int64)

    def __len__(self) -> int:
        return len(self.scenario)

    def of(self, agent: int) -> IntArray:
        """Positions of an agent's scored units."""
        return np.flatnonzero((self.agent == agent) & (self.category != UNSCORED))

    def matched(self, first: int, second: int) -> tuple[IntArray, IntArray]:
        """Positions of two agents' scored units in the conversations in which both have one, in order."""
        one, other = self.of(first), self.of(second)
        _, at_one, at_other = np.intersect1d(self._case[one], self._case[other], return_indices=True)
        return one[at_one], other[at_other]

    def conversations(self, agent: int) -> dict[Conversation, int]:
        """Positions of an agent's scored units by conversation, in order."""
        names = list(self._number)
        return {names[self._case[unit]]: int(unit) for unit in self.of(agent)}


def _conversation(row: Row) -> Conversation:
    return Conversation(row.task_id, row.scenario_id, row.agent_persona, row.trial)
