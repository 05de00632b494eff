"""Differences between two agents that met the same cases.

Each pair is one matched conversation; the difference is second minus first. Pairs of one task are not
independent, so standard errors are clustered by task, and the t distribution has T - 1 degrees of freedom
(Miller 2024, "Adding Error Bars to Evals", arXiv 2411.00640; Cameron and Miller 2015).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from policysweep.report.statistics import (
    CONFIDENCE,
    FloatArray,
    IntArray,
    Interval,
    holm,
    index,
    mean_variance,
    per_task,
)

Scores = Sequence[float | None]
"""One score per matched conversation; None is a score that could not be obtained."""


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """Mean of second minus first over `pairs` pairs of `tasks` tasks.

    `left_out` pairs lack a score on one side. What cannot be computed is None, and `reason` says why.
    `p_holm` is `p_value` adjusted for the metrics tested together; equal to it for a single metric.
    """

    mean: float | None
    standard_error: float | None
    interval: Interval | None
    p_value: float | None
    p_holm: float | None
    pairs: int
    tasks: int
    left_out: int
    reason: str = ""


def paired_difference(first: Scores, second: Scores, tasks: Sequence[str]) -> PairedDifference:
    """The difference on one metric; the three sequences run over the same matched conversations.

    Raises ValueError for sequences of different lengths and for scores that are not finite.
    """
    kept = [
        (b - a, task)
        for a, b, task in zip(first, second, tasks, strict=True)
        if a is not None and b is not None
    ]
    left_out = len(tasks) - len(kept)
    differences = np.array([difference for difference, _ in kept], dtype=np.float64)
    if not np.isfinite(differences).all():
        raise ValueError("scores must be finite; pass None for a score that could not be obtained")
    if not kept:
        return PairedDifference(None, None, None, None, None, 0, 0, left_out, "no pair has both scores")
    return _estimate(differences, index([task for _, task in kept])[1], left_out)


def paired_differences(
    metrics: Mapping[str, tuple[Scores, Scores]], tasks: Sequence[str]
) -> dict[str, PairedDifference]:
    """The difference on each metric, with p-values adjusted by Holm over the metrics that could be tested."""
    found = {name: paired_difference(first, second, tasks) for name, (first, second) in metrics.items()}
    adjusted = holm({name: difference.p_value for name, difference in found.items()})
    return {name: replace(difference, p_holm=adjusted[name]) for name, difference in found.items()}


def _estimate(differences: FloatArray, clusters: IntArray, left_out: int) -> PairedDifference:
    sums, sizes = per_task(differences, clusters), per_task(np.ones(len(differences)), clusters)
    mean, pairs, tasks = float(differences.mean()), len(differences), len(sizes)
    if tasks < 2:
        reason = "a standard error clustered by task needs at least 2 tasks"
        return PairedDifference(mean, None, None, None, None, pairs, tasks, left_out, reason)
    error = float(np.sqrt(mean_variance(sums[:, None], sizes)[0]))
    if error < 1e-12:
        reason = "the difference is the same in all tasks, so its standard error is not known"
        return PairedDifference(mean, None, None, None, None, pairs, tasks, left_out, reason)
    margin = error * float(stats.t.ppf(0.5 + CONFIDENCE / 2, tasks - 1))
    p_value = float(2 * stats.t.sf(abs(mean) / error, tasks - 1))
    return PairedDifference(
        mean, error, (mean - margin, mean + margin), p_value, p_value, pairs, tasks, left_out
    )
