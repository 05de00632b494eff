"""Means of scores on several metrics, and sums and differences of them, clustered by task.

The data is a table of scores [units, columns] with NaN where a unit has none, and the task of each unit. A
column is a metric; a dimension is the mean of its columns' means, a contrast gives some columns a negative
weight. Each is a weighted sum of column means, so one formula serves all: every task's share in the error of
a column's mean is (sum - n * mean) / N, the shares are summed over the columns with their weights, and the
standard error is the square root of T / (T - 1) times the sum of their squares. For one column that is the
cluster-robust error of a mean (Cameron and Miller 2015); scores of one unit on several metrics may depend on
one another as they like.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from policysweep.report.statistics import CONFIDENCE, FloatArray, IntArray, Interval, per_task

ONE_TASK = "a standard error clustered by task needs at least 2 tasks"
ALL_THE_SAME = "the same in all tasks, so its standard error is not known"


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean or a difference of means over `n` units of `tasks` tasks.

    What cannot be computed is None, and `reason` says why. The interval is two-sided at 95%, from the t
    distribution with tasks - 1 degrees of freedom.
    """

    value: float | None
    standard_error: float | None
    interval: Interval | None
    n: int
    tasks: int
    reason: str = ""

    @property
    def p_value(self) -> float | None:
        """Two-sided p-value of the hypothesis that the true value is 0."""
        if self.value is None or self.standard_error is None:
            return None
        return float(2 * stdtr(self.tasks - 1, -abs(self.value) / self.standard_error))


class ColumnMeans:
    """The means of the columns of a table of scores; `combine` gives weighted sums of them."""

    def __init__(self, values: FloatArray, tasks: IntArray) -> None:
        """`values` is [units, columns], NaN for no score; `tasks` [units] are indices from 0."""
        self._present = ~np.isnan(values)
        self._counts = per_task(self._present, tasks)
        sums = per_task(np.where(self._present, values, 0.0), tasks)
        self.n = self._counts.sum(axis=0).astype(np.int64)
        """Units with a score: [columns]."""
        held = np.maximum(self.n, 1)
        self._means: FloatArray = sums.sum(axis=0) / held
        self._shares = (sums - self._counts * self._means) / held

    def column(self, column: int) -> Mean:
        """The mean of one column."""
        weights = np.zeros(len(self.n))
        weights[column] = 1.0
        return self.combine(weights)

    def combine(self, weights: FloatArray) -> Mean:
        """Sum over the columns of weight times mean; `weights` is [columns], 0 for a column not used."""
        used = weights != 0.0
        n = int(self._present[:, used].any(axis=1).sum())
        tasks = int((self._counts[:, used] > 0).any(axis=1).sum())
        if not used.any() or not self.n[used].all():
            return Mean(None, None, None, n, tasks, "no scores" if used.any() else "no metrics")
        value = float(self._means[used] @ weights[used])
        if tasks < 2:
            return Mean(value, None, None, n, tasks, ONE_TASK)
        shares = self._shares[:, used] @ weights[used]
        error = float(np.sqrt(tasks / (tasks - 1) * (shares**2).sum()))
        if error < 1e-12:
            return Mean(value, None, None, n, tasks, ALL_THE_SAME)
        margin = error * float(stdtrit(tasks - 1, 0.5 + CONFIDENCE / 2))
        return Mean(value, error, (value - margin, value + margin), n, tasks)
