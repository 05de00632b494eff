from __future__ import annotations

from itertools import product

import krippendorff
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from policysweep.report.reliability import (
    POINTS,
    Level,
    alpha,
    alphas,
    coincidences,
    points,
    rating_counts,
    weighted_kappa,
    weighted_kappas,
)
from policysweep.report.statistics import FloatArray, IntArray

NAN = float("nan")

# Krippendorff's example (2011, "Computing Krippendorff's alpha-reliability"): four observers, twelve units.
OBSERVERS = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ]
)


def _counts(observers: FloatArray) -> tuple[IntArray, IntArray]:
    raters, items = np.nonzero(~np.isnan(observers))
    return rating_counts(items, points(observers[raters, items]), items % 3, POINTS)


def test_alpha_of_the_textbook() -> None:
    counts, tasks = _counts(OBSERVERS)
    assert alpha(counts, tasks, "nominal", 0).estimate.value == pytest.approx(0.743, abs=5e-4)
    found = alpha(counts, tasks, "ordinal", 0)
    assert found.estimate.value == pytest.approx(0.815, abs=5e-4)
    # The last unit was rated once.
    assert found.items == 11
    assert found.estimate.reason == "a bootstrap needs at least 10 tasks, there are 3"


@pytest.mark.parametrize("level", ["nominal", "ordinal"])
@settings(max_examples=60, deadline=None)
@given(counts=st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3), min_size=2, max_size=12))
def test_the_bootstraps_alpha_is_that_of_the_library(level: Level, counts: list[list[int]]) -> None:
    table = np.array([row for row in counts if sum(row) > 1]).reshape(-1, 3)
    if np.count_nonzero(table.sum(axis=0)) < 2:
        return
    expected = krippendorff.alpha(value_counts=table, level_of_measurement=level)
    found = alphas(coincidences(table).sum(axis=0)[None], level)
    assert found[0] == pytest.approx(expected)


def test_alpha_has_an_interval_that_holds_it() -> None:
    generator = np.random.default_rng(0)
    truth = generator.integers(0, 5, size=200)
    ratings = np.clip(truth[:, None] + generator.integers(-1, 2, size=(200, 2)), 0, 4)
    items = np.repeat(np.arange(200), 2)
    counts, tasks = rating_counts(items, ratings.ravel(), items // 10, POINTS)
    found = alpha(counts, tasks, "ordinal", 0).estimate
    assert found.value is not None
    assert found.interval is not None
    assert 0.6 < found.interval[0] < found.value < found.interval[1] < 0.95


def test_alpha_that_is_undefined_says_why() -> None:
    once = alpha(np.array([[1, 0], [0, 1]]), np.array([0, 1]), "nominal", 0)
    assert (once.estimate.value, once.estimate.reason, once.items) == (None, "no item has two ratings", 0)
    same = alpha(np.array([[2, 0], [2, 0]]), np.array([0, 1]), "nominal", 0)
    assert same.estimate.value is None
    assert same.estimate.reason == "all ratings are the same, so alpha is undefined"
    assert alpha(np.empty((0, 5), dtype=np.int64), np.array([], dtype=np.int64), "ordinal", 0).items == 0


def test_weighted_kappa_by_hand() -> None:
    # Two pairs agree, one is one point apart, one is four: observed (1 + 16) / 4.
    first, second = np.array([0, 4, 2, 0]), np.array([0, 4, 3, 4])
    expected = np.mean([(a - b) ** 2 for a, b in product(first, second)])
    found = weighted_kappa(first, second, np.arange(4), 0)
    assert found.value == pytest.approx(1 - (17 / 4) / expected)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=30))
def test_weighted_kappa_is_the_concordance_of_the_numbers(pairs: list[tuple[int, int]]) -> None:
    """Quadratic weights make kappa Lin's concordance correlation, with the variances of the population."""
    first, second = (np.array(side) for side in zip(*pairs, strict=True))
    found = weighted_kappa(first, second, np.zeros(len(pairs), dtype=np.int64), 0)
    spread = first.var() + second.var() + (first.mean() - second.mean()) ** 2
    if spread == 0:
        assert found.reason == "all ratings are the same, so kappa is undefined"
        return
    covariance = float(np.cov(first, second, bias=True)[0, 1])
    assert found.value == pytest.approx(2 * covariance / spread)
    table = np.zeros((1, POINTS, POINTS))
    np.add.at(table[0], (first, second), 1.0)
    assert weighted_kappas(table)[0] == pytest.approx(found.value)


def test_weighted_kappa_grows_with_agreement() -> None:
    generator = np.random.default_rng(3)
    truth = generator.integers(0, 5, size=300)
    tasks = np.arange(300) // 10
    close, far = (np.clip(truth + generator.integers(-width, width + 1, 300), 0, 4) for width in (1, 3))
    better, worse = (weighted_kappa(truth, other, tasks, 0) for other in (close, far))
    assert better.value is not None
    assert worse.value is not None
    assert better.interval is not None
    assert worse.value < better.interval[0] < better.value
    assert stats.spearmanr(truth, close).statistic > stats.spearmanr(truth, far).statistic


def test_scores_between_two_points_are_rounded_and_halves_go_up() -> None:
    values = np.array([1.0, 1.49, 1.5, 2.5, 3.7, 4.5, 5.0])
    assert points(values).tolist() == [0, 0, 1, 2, 3, 4, 4]


def test_ratings_are_grouped_by_item_with_its_task() -> None:
    counts, tasks = rating_counts(
        np.array([70, 7, 70, 7, 9]), np.array([0, 1, 2, 1, 0]), np.array([3, 1, 3, 1, 2]), 3
    )
    assert counts.tolist() == [[0, 2, 0], [1, 0, 0], [1, 0, 1]]
    assert tasks.tolist() == [1, 2, 3]
