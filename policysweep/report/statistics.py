"""Estimates from clustered data: what one figure is, how sure we are of it, and when it is undefined.

The unit of sampling is the task, because the scenarios of a task share their policy clauses and their order:
ten scenarios of one task tell far less than ten scenarios of ten tasks. All figures here take sums and
sizes per task. Intervals are two-sided at 95%.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Interval = tuple[float, float]

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure. `value` is None when undefined, `interval` when none can be given; `reason` says why."""

    value: float | None
    interval: Interval | None = None
    reason: str = ""


def index(names: Sequence[str]) -> tuple[tuple[str, ...], IntArray]:
    """The distinct names in order, and the position of each given name among them."""
    distinct = tuple(sorted(set(names)))
    position = {name: number for number, name in enumerate(distinct)}
    return distinct, np.array([position[name] for name in names], dtype=np.int64)


def per_task(values: NDArray[np.generic], tasks: IntArray) -> FloatArray:
    """Sums over the units of each task: [units, ...] and task indices [units] -> [tasks, ...]."""
    sums = np.zeros((int(tasks.max(initial=-1)) + 1, *values.shape[1:]))
    np.add.at(sums, tasks, values)
    return sums


def mean_variance(sums: FloatArray, sizes: FloatArray) -> FloatArray:
    """Cluster-robust variance of the means sum(sums) / sum(sizes), for at least two tasks.

    `sums` is [tasks, figures], `sizes` the units of each task. Linearised between-cluster variance with the
    correction T / (T - 1), as in Cameron and Miller (2015); equal to that of a regression on a constant
    with cluster-robust errors.
    """
    n, clusters = sizes.sum(), len(sizes)
    residuals = sums - sizes[:, None] * (sums.sum(axis=0) / n)
    variance: FloatArray = clusters / (clusters - 1) * (residuals**2).sum(axis=0) / n**2
    return variance


def effective_size(sums: FloatArray, sizes: FloatArray) -> float:
    """How many independent units the clustered units are worth for means of values within 0 to 1.

    `sums` is [tasks, figures]; for shares, the counts of each category. n divided by the design effect,
    which is averaged over the figures with their variances as weights, so that a rare category borrows from
    the common ones; reduced for the few degrees of freedom as in Korn and Graubard (1998). Never above n,
    never below Kish's effective number of tasks n^2 / sum(sizes^2), which is what n is worth when all units
    of a task come out alike, and which is taken when nothing varies.
    """
    n, tasks = float(sizes.sum()), len(sizes)
    least = n**2 / float((sizes**2).sum())
    if tasks < 2:
        return least
    means = sums.sum(axis=0) / n
    independent = float((means * (1.0 - means)).sum())
    clustered = float(mean_variance(sums, sizes).sum())
    if independent < 1e-12:
        return least
    tail = 0.5 + CONFIDENCE / 2
    shrink = float(stats.norm.ppf(tail) / stats.t.ppf(tail, tasks - 1)) ** 2
    # Compared before dividing: tasks that all have the same mean leave a variance of 0.
    return n if independent * shrink >= n * clustered else max(independent * shrink / clustered, least)


def wilson(successes: float, n: float) -> Interval:
    """Wilson score interval for `successes` out of `n` > 0; both may be fractional."""
    low, high = proportion_confint(successes, n, alpha=1.0 - CONFIDENCE, method="wilson")
    share = successes / n
    # At 0 and n the bound is the share itself; rounding must not put it beyond.
    return max(0.0, min(float(low), share)), min(1.0, max(float(high), share))


def proportion(sums: FloatArray, sizes: FloatArray) -> Estimate:
    """Mean of values within 0 to 1 with the Wilson interval at the effective number of units.

    `sums` and `sizes` are [tasks]; every task has at least one unit.
    """
    if len(sizes) == 0:
        return Estimate(None, None, "no units")
    value = float(sums.sum() / sizes.sum())
    effective = effective_size(sums[:, None], sizes)
    return Estimate(value, wilson(value * effective, effective))


def entropy_bits(counts: FloatArray) -> FloatArray:
    """Shannon entropy in bits of each row of counts [rows, categories]; every row has a count."""
    shares = counts / counts.sum(axis=1, keepdims=True)
    bits: FloatArray = stats.entropy(shares, base=2, axis=1)
    return bits


def holm(p_values: Mapping[str, float | None]) -> dict[str, float | None]:
    """Holm's step-down adjustment of p-values over a family of tests.

    A test that could not be made (None) stays None and does not count as a member of the family. By hand,
    because statsmodels' `multipletests` collects garbage on each call, which takes 0.1 s in a large report.
    """
    made = sorted((p, name) for name, p in p_values.items() if p is not None)
    adjusted: dict[str, float | None] = dict.fromkeys(p_values)
    largest = 0.0
    for rank, (p, name) in enumerate(made):
        largest = max(largest, min(1.0, (len(made) - rank) * p))
        adjusted[name] = largest
    return adjusted
