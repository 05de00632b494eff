"""How far raters (judges, people) agree on a scale: Krippendorff's alpha and the quadratic-weighted kappa.

Both work on the five points of the scale: a score between two points, from token probabilities or repeated
samples, is rounded to the nearer one. Intervals are those of the bootstrap over tasks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import krippendorff
import numpy as np
from statsmodels.stats.inter_rater import cohens_kappa

from policysweep.report import bootstrap
from policysweep.report.criteria import HIGHEST, LOWEST
from policysweep.report.statistics import Estimate, FloatArray, IntArray, per_task

POINTS = HIGHEST - LOWEST + 1

Level = Literal["ordinal", "nominal"]


@dataclass(frozen=True, slots=True)
class Alpha:
    """Krippendorff's alpha over the `items` that at least two raters rated."""

    estimate: Estimate
    items: int


def points(values: FloatArray) -> IntArray:
    """The nearest point of the scale, counted from 0; the upper one of two equally near."""
    return np.floor(values + 0.5).astype(np.int64) - LOWEST


def rating_counts(
    items: IntArray, categories: IntArray, item_tasks: IntArray, number: int
) -> tuple[IntArray, IntArray]:
    """Ratings one by one -> how often each item got each category, and the task of each item.

    `items` [ratings] are any numbers, equal for the same item; `categories` [ratings] are 0..number-1;
    `item_tasks` [ratings] is the task of the rating's item.
    """
    distinct, first, position = np.unique(items, return_index=True, return_inverse=True)
    counts = np.zeros((len(distinct), number), dtype=np.int64)
    np.add.at(counts, (position, categories), 1)
    return counts, item_tasks[first]


def alpha(counts: IntArray, tasks: IntArray, level: Level, seed: int) -> Alpha:
    """Krippendorff's alpha (Krippendorff 2018) of counts [items, categories]; items rated once do not count.

    Undefined without an item that two raters rated, and when all ratings are the same.
    """
    rated = counts.sum(axis=1) > 1
    counts, tasks = counts[rated], np.unique(tasks[rated], return_inverse=True)[1]
    if not len(counts):
        return Alpha(Estimate(None, None, "no item has two ratings"), 0)
    if np.count_nonzero(counts.sum(axis=0)) == 1:
        return Alpha(Estimate(None, None, "all ratings are the same, so alpha is undefined"), len(counts))
    value = float(krippendorff.alpha(value_counts=counts, level_of_measurement=level))
    observed = per_task(coincidences(counts), tasks)
    weights = bootstrap.resamples(len(observed), seed)
    replicates = np.tensordot(weights, observed, axes=1)
    return Alpha(bootstrap.with_interval(value, alphas(replicates, level), len(observed)), len(counts))


def weighted_kappa(first: IntArray, second: IntArray, tasks: IntArray, seed: int) -> Estimate:
    """Cohen's kappa with quadratic weights (Cohen 1968) of pairs of points of the scale."""
    if not len(first):
        return Estimate(None, None, "no pairs")
    tables = np.zeros((len(first), POINTS, POINTS))
    tables[np.arange(len(first)), first, second] = 1.0
    tables = per_task(tables, np.unique(tasks, return_inverse=True)[1])
    table = tables.sum(axis=0)
    if np.count_nonzero(table.sum(axis=0) + table.sum(axis=1)) == 1:
        return Estimate(None, None, "all ratings are the same, so kappa is undefined")
    value = float(cohens_kappa(table, wt="quadratic", return_results=False))
    weights = bootstrap.resamples(len(tables), seed)
    replicates = weighted_kappas(np.tensordot(weights, tables, axes=1))
    return bootstrap.with_interval(value, replicates, len(tables))


def coincidences(counts: IntArray) -> FloatArray:
    """Coincidences of each item: [items, categories, categories]."""
    pairs = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(counts.shape[1])
    shares: FloatArray = pairs / (counts.sum(axis=1) - 1.0)[:, None, None]
    return shares


def alphas(observed: FloatArray, level: Level) -> FloatArray:
    """Alpha of each matrix of coincidences: [replicates, categories, categories] -> [replicates]."""
    margins = observed.sum(axis=2)
    n = margins.sum(axis=1)[:, None, None]
    expected = margins[:, :, None] * margins[:, None, :] - margins[:, :, None] * np.eye(margins.shape[1])
    distances = _distances(margins, level)
    disagreement = (observed * distances).sum(axis=(1, 2))
    return _one_minus(disagreement, (expected / (n - 1) * distances).sum(axis=(1, 2)))


def _distances(margins: FloatArray, level: Level) -> FloatArray:
    """Squared distance of two categories: for ordinal ones, how many ratings lie between them."""
    categories = margins.shape[1]
    if level == "nominal":
        return np.broadcast_to(1.0 - np.eye(categories), (len(margins), categories, categories))
    middle = margins.cumsum(axis=1) - margins / 2
    squares: FloatArray = (middle[:, :, None] - middle[:, None, :]) ** 2
    return squares


def weighted_kappas(tables: FloatArray) -> FloatArray:
    """Quadratic-weighted kappa of each table of pairs: [replicates, points, points] -> [replicates]."""
    shares = tables / tables.sum(axis=(1, 2), keepdims=True)
    place = np.arange(POINTS)
    weights = (place[:, None] - place) ** 2
    by_chance = shares.sum(axis=2)[:, :, None] * shares.sum(axis=1)[:, None, :]
    return _one_minus((weights * shares).sum(axis=(1, 2)), (weights * by_chance).sum(axis=(1, 2)))


def _one_minus(observed: FloatArray, expected: FloatArray) -> FloatArray:
    """1 - observed / expected, NaN where nothing is expected."""
    ratio = np.divide(observed, expected, out=np.full_like(expected, np.nan), where=expected > 1e-12)
    difference: FloatArray = 1.0 - ratio
    return difference
