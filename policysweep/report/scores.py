"""The scores of one judge on one side, one row per unit and one column per metric.

A metric that looks at turns is averaged within the unit first, over the turns of the side that were scored. A
unit without a score in a column is NaN there, and `status` says why: the metric does not apply to it, its
scores are all absent, or it was not judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from policysweep.report.coverage import Coverage
from policysweep.report.criteria import Criteria, Side
from policysweep.report.means import ColumnMeans, Mean
from policysweep.report.statistics import FloatArray, IntArray
from policysweep.report.tally import UNSTATED
from policysweep.report.units import Units
from policysweep.report.verdicts import JudgeNotes, Verdicts
from policysweep.v1 import judge_pb2

BoolArray = NDArray[np.bool_]

_SCORED = "planned units have this score"


@dataclass(frozen=True, slots=True)
class Lines:
    """The scores of one judge as arrays of equal length, sorted by unit, metric, subject and turn."""

    unit: IntArray
    """Positions in `Units`."""
    metric: IntArray
    turn: IntArray
    subject: IntArray
    value: FloatArray
    reason: IntArray
    mass: FloatArray
    spread: FloatArray

    def where(self, kept: BoolArray) -> Lines:
        """Some of the lines."""
        return Lines(
            unit=self.unit[kept],
            metric=self.metric[kept],
            turn=self.turn[kept],
            subject=self.subject[kept],
            value=self.value[kept],
            reason=self.reason[kept],
            mass=self.mass[kept],
            spread=self.spread[kept],
        )


def lines_of(notes: JudgeNotes, verdicts: Verdicts, units: Units) -> Lines:
    """What a judge wrote about units that have a record, in an order of its own."""
    place = positions(verdicts, units)
    unit = place[np.array(notes.unit, dtype=np.int64)]
    order = np.lexsort((np.array(notes.turn), np.array(notes.subject), np.array(notes.metric), unit))
    order = order[unit[order] >= 0]
    return Lines(
        unit=unit[order],
        metric=np.array(notes.metric, dtype=np.int64)[order],
        turn=np.array(notes.turn, dtype=np.int64)[order],
        subject=np.array(notes.subject, dtype=np.int64)[order],
        value=np.array(notes.value)[order],
        reason=np.array(notes.reason, dtype=np.int64)[order],
        mass=np.array(notes.mass)[order],
        spread=np.array(notes.spread)[order],
    )


def positions(verdicts: Verdicts, units: Units) -> IntArray:
    """Position in `Units` of each number of `Verdicts.units`; -1 for a unit without record."""
    return np.array([units.position.get(unit_id, -1) for unit_id in verdicts.units], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores [units, metrics] of one judge on one side.

    `incomplete` marks a turn-level score whose unit lacks the score of at least one turn.
    """

    values: FloatArray
    not_applicable: BoolArray
    incomplete: BoolArray
    judged: BoolArray
    """Whether the unit has a line in the column at all."""


def scores_of(lines: Lines, units: int, metrics: int, side: Side) -> Scores:
    """The scores of all units on one side."""
    lines = lines.where(np.isin(lines.subject, list(side.value)))
    cell = lines.unit * metrics + lines.metric
    present = ~np.isnan(lines.value)
    beside = lines.reason == judge_pb2.ABSENT_REASON_NOT_APPLICABLE

    def count(of: BoolArray) -> IntArray:
        return np.bincount(cell[of], minlength=units * metrics).reshape(units, metrics)

    n = count(present)
    sums = np.bincount(cell[present], lines.value[present], units * metrics).reshape(units, metrics)
    values = np.divide(sums, n, out=np.full(n.shape, np.nan), where=n > 0)
    absent = count(~present & ~beside)
    return Scores(
        values=values,
        not_applicable=(n == 0) & (absent == 0) & (count(beside) > 0),
        incomplete=(n > 0) & (absent > 0),
        judged=(n > 0) | (absent > 0) | (count(beside) > 0),
    )


class Missing(NamedTuple):
    """A metric that a dimension's score lacks, and why."""

    metric: str
    reason: str


class ScoreTable:
    """Scores of some units, or differences of some pairs: [rows, metrics], with what they should rest on."""

    def __init__(
        self,
        values: FloatArray,
        not_applicable: BoolArray,
        tasks: IntArray,
        planned: int,
        kind: str = _SCORED,
    ) -> None:
        """NaN in `values` is no score; `planned` rows were planned, those without record included."""
        self.values = values
        self.not_applicable: IntArray = not_applicable.sum(axis=0)
        """Rows to which a metric does not apply: [metrics]. They lower no coverage."""
        self.tasks = tasks
        self.planned = planned
        self._kind = kind

    @cached_property
    def means(self) -> ColumnMeans:
        """The means of the metrics."""
        return ColumnMeans(self.values, self.tasks)

    def coverage(self, column: int) -> Coverage:
        """Rows with a score on a metric, of those that should have one."""
        return Coverage(
            int(self.means.n[column]), self.planned - int(self.not_applicable[column]), self._kind
        )

    def withheld(self, column: int, minimum: float) -> str:
        """Why a metric's mean is not given; "" when it is."""
        coverage = self.coverage(column)
        if not coverage.planned and self.planned:
            return "the metric applies to none of the units"
        return coverage.withheld(minimum)

    def missing(self, columns: Sequence[int], criteria: Criteria, minimum: float) -> list[Missing]:
        """Which metrics of a dimension have no mean, and why."""
        return [
            Missing(criteria.metrics[column], reason)
            for column in columns
            if (reason := self.withheld(column, minimum))
        ]

    def combined(self, columns: Sequence[int], criteria: Criteria) -> Mean:
        """The mean over some metrics of their means."""
        return self.means.combine(criteria.weights(columns))


def absences(lines: Lines) -> Counter[tuple[int, int]]:
    """Absent scores, those that do not apply left out, by metric and reason."""
    gone = np.isnan(lines.value) & (lines.reason != judge_pb2.ABSENT_REASON_NOT_APPLICABLE)
    return Counter(zip(lines.metric[gone].tolist(), lines.reason[gone].tolist(), strict=True))


def low_mass(lines: Lines, criteria: Criteria) -> BoolArray:
    """Which scores have less probability mass on the scale than the rubric asks for."""
    low: BoolArray = ~np.isnan(lines.value) & (lines.mass < criteria.rubric.min_scale_mass)
    return low


def reason_name(number: int) -> str:
    """Name of a reason without its prefix; UNSTATED for none and for a number that we do not know."""
    if number == judge_pb2.ABSENT_REASON_UNSPECIFIED or number not in judge_pb2.AbsentReason.values():
        return UNSTATED
    name = judge_pb2.AbsentReason.Name(judge_pb2.AbsentReason.ValueType(number))
    return name.removeprefix("ABSENT_REASON_")
