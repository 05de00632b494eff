"""pass^k over seeds and tasks, and how sure we are of it.

A figure is made of one value per seed and task, [seeds, tasks], NaN where it is undefined: pass^k of the
trials of the seed, or a difference of two such tables. Its value is the mean over the tasks of each seed,
then over the seeds.

The interval comes from a bootstrap over blocks, because neither tasks nor seeds are independent draws: a
replicate draws task families (a parent with its sisters, which test one lesson) and seeds (an order of the
tasks, which all trials of the seed share) at once, each with replacement, as Owen (2007) does for crossed
data. There are few families, seven in airline, and a percentile interval is too narrow for so few: the
percentiles are moved outwards as far as t is wider than the normal distribution (Hesterberg 2015, "expanded
percentile"). Equal numbers of families and seeds give equal draws, so differences and ratios are paired.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import sqrt

import numpy as np
from scipy import stats
from scipy.special import comb

from policysweep.report.bootstrap import resamples
from policysweep.report.statistics import CONFIDENCE, Estimate, FloatArray, IntArray, Interval, per_task

REPLICATES = 4000

MIN_FAMILIES = 6
"""With fewer task families the most extreme resamples do not reach far enough, so no interval is given."""


def pass_hat_k(passes: IntArray, trials: IntArray, k: int) -> FloatArray:
    """C(c, k) / C(n, k) of each seed and task, NaN where there are fewer than k trials; k of at least 1.

    The probability that k trials, drawn from the n that there are, all pass (Yao et al. 2024, arXiv
    2406.12045).
    """
    ways = comb(trials, k)
    return np.where(trials >= k, comb(passes, k) / np.where(ways, ways, 1.0), np.nan)


def seed_means(values: FloatArray) -> FloatArray:
    """Mean over the tasks of each seed, [seeds]; NaN for a seed without any."""
    defined = ~np.isnan(values)
    sizes = defined.sum(axis=1)
    sums = np.where(defined, values, 0.0).sum(axis=1)
    return np.where(sizes > 0, sums / np.maximum(sizes, 1), np.nan)


def mean(values: FloatArray) -> float | None:
    """The figure; None when it is defined nowhere."""
    means = seed_means(values)
    defined = means[~np.isnan(means)]
    return float(defined.mean()) if len(defined) else None


def replicates(values: FloatArray, families: IntArray, seed: int = 0) -> FloatArray:
    """The figure in each resample of families and seeds: [REPLICATES], NaN where it is undefined.

    `families` [tasks] are the indices, from 0, of the family of each task.
    """
    defined = ~np.isnan(values)
    sums = per_task(np.where(defined, values, 0.0).T, families)
    sizes = per_task(defined.T.astype(np.float64), families)
    drawn = resamples(len(sizes), seed, REPLICATES)
    of_seed, held = drawn @ sums, drawn @ sizes
    weights = np.where(held > 0, resamples(len(values), seed + 1, REPLICATES), 0.0)
    total = weights.sum(axis=1)
    means = (weights * of_seed / np.maximum(held, 1.0)).sum(axis=1)
    return np.where(total > 0, means / np.maximum(total, 1.0), np.nan)


def count_families(values: FloatArray, families: IntArray) -> int:
    """Families with at least one defined value."""
    return len(np.unique(families[~np.isnan(values).all(axis=0)]))


def estimate(values: FloatArray, families: IntArray, seed: int = 0) -> Estimate:
    """The figure with its interval, or with the reason why it has none."""
    value = mean(values)
    if value is None:
        return Estimate(None, None, "defined for no task")
    return bounded(value, values, families, lambda: replicates(values, families, seed))


def ratio(over: FloatArray, under: FloatArray, families: IntArray, seed: int = 0) -> Estimate:
    """Ratio of two figures that are defined in the same places; `under` is not 0."""
    value, base = mean(over), mean(under)
    if value is None or not base:
        return Estimate(None, None, "defined for no task")

    def resampled() -> FloatArray:
        bases = replicates(under, families, seed)
        usable = np.abs(bases) > 1e-12
        return np.where(usable, replicates(over, families, seed) / np.where(usable, bases, 1.0), np.nan)

    return bounded(value / base, over, families, resampled)


def bounded(
    value: float, values: FloatArray, families: IntArray, resampled: Callable[[], FloatArray]
) -> Estimate:
    """A figure over `values` with the interval of its resamples, which are asked for when they are of use."""
    count = count_families(values, families)
    if count < MIN_FAMILIES:
        reason = f"an interval needs at least {MIN_FAMILIES} task families, here: {count}"
        return Estimate(value, None, reason)
    found = resampled()
    defined = found[~np.isnan(found)]
    if len(defined) < CONFIDENCE * len(found):
        return Estimate(value, None, f"undefined in {1 - len(defined) / len(found):.0%} of the resamples")
    if np.ptp(defined) < 1e-12:
        return Estimate(value, None, "all resamples give the same value")
    return Estimate(value, expanded_percentiles(defined, count))


def expanded_percentiles(resampled: FloatArray, blocks: int) -> Interval:
    """Interval of resampled values with percentiles as far out as so few blocks ask for."""
    tail = _tail(blocks)
    low, high = np.quantile(resampled, [tail, 1.0 - tail])
    return float(low), float(high)


@lru_cache
def _tail(blocks: int) -> float:
    """Share of the resamples that is left out on either side: 2.5% for many blocks, less for few.

    The standard deviation of resamples is too small by sqrt((n - 1) / n), and t is wider than the normal.
    """
    reach = sqrt(blocks / (blocks - 1)) * stats.t.ppf(0.5 + CONFIDENCE / 2, blocks - 1)
    return float(stats.norm.sf(reach))
