"""The judged units of a run: verdicts held against the records, as scores of any group of units."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, cached_property

import numpy as np

from policysweep.report.criteria import Side
from policysweep.report.scores import Lines, Scores, ScoreTable, lines_of, positions, scores_of
from policysweep.report.statistics import IntArray
from policysweep.report.units import UNSCORED, Units
from policysweep.report.verdicts import Verdicts


class Judged:
    """Verdicts and recorded units of a run. `planned` is the number of planned units of each agent."""

    def __init__(self, verdicts: Verdicts, units: Units, planned: Mapping[str, int]) -> None:
        self.verdicts = verdicts
        self.criteria = verdicts.criteria
        self.units = units
        self.planned = {name: planned[name] for name in units.agents}
        self.judges = tuple(verdicts.notes)
        # Cached per run: every section asks for the same few tables again.
        self.lines = cache(self._lines)
        self.scores = cache(self._scores)

    @cached_property
    def left_out(self) -> dict[str, int]:
        """Verdicts that no figure rests on, by why."""
        place = positions(self.verdicts, self.units)
        orphans = sum(place[unit] < 0 for notes in self.verdicts.notes.values() for unit, _ in notes.read)
        counts = {**self.verdicts.left_out, "NO_RECORD": int(orphans)}
        return {why: counts[why] for why in sorted(counts) if counts[why]}

    def _lines(self, judge: str) -> Lines:
        """All scores of a judge."""
        return lines_of(self.verdicts.notes[judge], self.verdicts, self.units)

    def _scores(self, judge: str, side: Side) -> Scores:
        """Scores of a judge on one side, of all units."""
        return scores_of(self.lines(judge), len(self.units), len(self.criteria.metrics), side)

    def rows(self, agent: str, side: Side) -> IntArray:
        """Positions of the units that an agent's figures rest on.

        Scored ones for the agent. The simulated customer is held to account for all that it took part in,
        those that it ended by its own fault above all.
        """
        number = self.units.agents.index(agent)
        return np.flatnonzero(self.units.agent == number) if side is Side.CUSTOMER else self.units.of(number)

    def all_scored(self) -> IntArray:
        """Positions of the scored units of all agents."""
        return np.flatnonzero(self.units.category != UNSCORED)

    def table(self, judge: str, side: Side, rows: IntArray, planned: int) -> ScoreTable:
        """The scores of a judge on one side of some units."""
        found = self.scores(judge, side)
        return ScoreTable(found.values[rows], found.not_applicable[rows], self.units.task[rows], planned)

    def outcomes(self, judge: str) -> dict[int, tuple[int, int]]:
        """What a judge saw as outcome, category and reason, by position of the scored unit."""
        place = positions(self.verdicts, self.units)
        placed = {int(place[unit]): note for unit, note in self.verdicts.notes[judge].outcomes.items()}
        scored = self.units.category != UNSCORED
        return {unit: placed[unit] for unit in sorted(placed) if unit >= 0 and scored[unit]}
