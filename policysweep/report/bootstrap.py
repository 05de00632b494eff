"""Bootstrap over tasks: what a figure would have been with other tasks of the same kind.

A replicate draws as many tasks as there are, with replacement; all units of a task go with it. Figures that
are functions of sums over tasks are computed for all replicates at once: `resamples(...) @ sums` gives the
sums of each replicate.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from policysweep.report.statistics import CONFIDENCE, Estimate, FloatArray

REPLICATES = 2000

MIN_TASKS = 10
"""With fewer tasks a percentile interval is far too narrow, so none is given."""


@lru_cache(maxsize=8)
def resamples(tasks: int, seed: int, replicates: int = REPLICATES) -> FloatArray:
    """How often each replicate draws each task: [replicates, tasks], read-only.

    Equal for equal arguments, so that figures over the same tasks see the same replicates.
    """
    generator = np.random.default_rng(seed)
    draws = generator.multinomial(tasks, np.full(tasks, 1.0 / tasks), size=replicates)
    weights = draws.astype(np.float64)
    weights.setflags(write=False)
    return weights


def with_interval(value: float, replicates: FloatArray, tasks: int) -> Estimate:
    """The figure with its percentile interval, or with the reason why it has none.

    `replicates` are the figure's values [REPLICATES], NaN where it is undefined. As many undefined ones are
    left out as the interval leaves out on both sides; with more, its ends are not known.
    """
    if tasks < MIN_TASKS:
        return Estimate(value, None, f"a bootstrap needs at least {MIN_TASKS} tasks, there are {tasks}")
    defined = replicates[~np.isnan(replicates)]
    if len(defined) < CONFIDENCE * len(replicates):
        share = 1.0 - len(defined) / len(replicates)
        return Estimate(value, None, f"undefined in {share:.0%} of the bootstrap's resamples")
    if np.ptp(defined) < 1e-12:
        return Estimate(value, None, "all resamples give the same value")
    low, high = np.quantile(defined, [0.5 - CONFIDENCE / 2, 0.5 + CONFIDENCE / 2])
    return Estimate(value, (float(low), float(high)))


def rate(sums: FloatArray, sizes: FloatArray, seed: int) -> Estimate:
    """The mean sum(sums) / sum(sizes) with its bootstrap interval; both are [tasks], every task has units."""
    if len(sizes) == 0:
        return Estimate(None, None, "no units")
    weights = resamples(len(sizes), seed)
    return with_interval(float(sums.sum() / sizes.sum()), weights @ sums / (weights @ sizes), len(sizes))
