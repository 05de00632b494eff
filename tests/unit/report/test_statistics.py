from __future__ import annotations

from collections.abc import Mapping
from math import log2

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from policysweep.report import bootstrap
from policysweep.report.statistics import (
    FloatArray,
    effective_size,
    entropy_bits,
    holm,
    index,
    mean_variance,
    per_task,
    proportion,
    wilson,
)

TASKS = st.lists(
    st.integers(1, 12).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=1, max_size=30
)
"""Successes and units of each task."""


def _arrays(tasks: list[tuple[int, int]]) -> tuple[FloatArray, FloatArray]:
    sums, sizes = zip(*tasks, strict=True)
    return np.array(sums, dtype=np.float64), np.array(sizes, dtype=np.float64)


@pytest.mark.parametrize(("successes", "n"), [(0, 10), (5, 20), (23, 400), (400, 400), (1, 1)])
def test_wilson_equals_scipy(successes: int, n: int) -> None:
    expected = stats.binomtest(successes, n).proportion_ci(method="wilson")
    assert wilson(successes, n) == pytest.approx((expected.low, expected.high))


def test_wilson_by_hand() -> None:
    # 0 of n: the upper end is z^2 / (n + z^2).
    assert wilson(0, 10) == pytest.approx((0.0, 1.959964**2 / (10 + 1.959964**2)))


def test_mean_variance_equals_a_cluster_robust_regression_on_a_constant() -> None:
    generator = np.random.default_rng(3)
    tasks = np.repeat(np.arange(12), generator.integers(1, 9, size=12))
    values = generator.normal(size=len(tasks)) + tasks / 4
    fit = sm.OLS(values, np.ones(len(values))).fit(cov_type="cluster", cov_kwds={"groups": tasks})
    found = mean_variance(per_task(values, tasks)[:, None], per_task(np.ones(len(tasks)), tasks))
    assert found[0] == pytest.approx(float(fit.bse[0]) ** 2)


def test_mean_variance_by_hand() -> None:
    # Tasks with 2 of 2 and 0 of 2: mean 1/2, residuals +1 and -1, so 2/1 * (1 + 1) / 4^2.
    assert mean_variance(np.array([[2.0], [0.0]]), np.array([2.0, 2.0])) == pytest.approx([0.25])


def test_effective_size_when_tasks_decide_everything_is_the_number_of_tasks() -> None:
    assert effective_size(np.array([[10.0], [0.0], [0.0], [10.0]]), np.full(4, 10.0)) == 4.0


def test_effective_size_when_nothing_varies_is_the_number_of_tasks() -> None:
    assert effective_size(np.zeros((40, 1)), np.full(40, 10.0)) == 40.0
    assert effective_size(np.array([[10.0]]), np.array([10.0])) == 1.0


def test_effective_size_of_unequal_tasks_that_do_not_vary_is_kishs() -> None:
    # 12^2 / (10^2 + 1 + 1)
    assert effective_size(np.zeros((3, 1)), np.array([10.0, 1.0, 1.0])) == pytest.approx(144 / 102)


def test_effective_size_of_equal_tasks_is_the_number_of_units() -> None:
    assert effective_size(np.full((40, 1), 5.0), np.full(40, 10.0)) == 400.0


def test_effective_size_between_the_extremes_is_n_by_the_design_effect() -> None:
    generator = np.random.default_rng(0)
    sums = generator.binomial(10, generator.beta(2, 2, size=40)).astype(float)
    share = sums.mean() / 10
    # Equal tasks: the variance of the mean is that of the task means by their number.
    clustered = (sums / 10).var(ddof=1) / 40
    shrink = (stats.norm.ppf(0.975) / stats.t.ppf(0.975, 39)) ** 2
    expected = share * (1 - share) / clustered * shrink
    assert 40 < expected < 400
    assert effective_size(sums[:, None], np.full(40, 10.0)) == pytest.approx(expected)


@given(TASKS)
@settings(max_examples=100, deadline=None)
def test_proportion_lies_in_its_interval_and_in_0_to_1(tasks: list[tuple[int, int]]) -> None:
    sums, sizes = _arrays(tasks)
    found = proportion(sums, sizes)
    assert found.value is not None
    assert found.interval is not None
    assert 0.0 <= found.interval[0] <= found.value <= found.interval[1] <= 1.0
    assert found.value == pytest.approx(sums.sum() / sizes.sum())


@given(TASKS, st.randoms(use_true_random=False))
@settings(max_examples=50, deadline=None)
def test_the_order_of_tasks_does_not_matter(tasks: list[tuple[int, int]], random: object) -> None:
    shuffled = list(tasks)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis gives a random.Random
    assert effective_size(*_column(shuffled)) == pytest.approx(effective_size(*_column(tasks)))


def _column(tasks: list[tuple[int, int]]) -> tuple[FloatArray, FloatArray]:
    sums, sizes = _arrays(tasks)
    return sums[:, None], sizes


def test_proportion_without_units() -> None:
    found = proportion(np.zeros(0), np.zeros(0))
    assert (found.value, found.interval, found.reason) == (None, None, "no units")


def test_the_headline_interval_covers_where_the_others_do_not() -> None:
    """The reason for the headline interval: a rare outcome (6%) that tasks decide to a good part."""
    generator = np.random.default_rng(11)
    truth, correlation, draws = 0.06, 0.5, 400
    concentration = 1 / correlation - 1
    covered = dict.fromkeys(("headline", "wilson", "bootstrap"), 0)
    for _ in range(draws):
        chances = generator.beta(truth * concentration, (1 - truth) * concentration, size=40)
        sums, sizes = generator.binomial(10, chances).astype(float), np.full(40, 10.0)
        intervals = {
            "headline": proportion(sums, sizes).interval,
            "wilson": wilson(float(sums.sum()), 400),
            "bootstrap": bootstrap.rate(sums, sizes, seed=0).interval or (0.0, 0.0),
        }
        for name, bounds in intervals.items():
            covered[name] += bounds is not None and bounds[0] <= truth <= bounds[1]
    shares = {name: hits / draws for name, hits in covered.items()}
    assert shares["headline"] >= 0.9
    assert shares["wilson"] < 0.7
    assert shares["wilson"] < shares["bootstrap"] < shares["headline"]


def test_entropy_by_hand() -> None:
    found = entropy_bits(np.array([[4.0, 0.0, 0.0], [2.0, 2.0, 0.0], [1.0, 1.0, 1.0], [3.0, 1.0, 0.0]]))
    assert found == pytest.approx([0.0, 1.0, log2(3), 0.75 * log2(4 / 3) + 0.25 * 2])
    assert not np.signbit(found[0])


def test_index_sorts_names() -> None:
    names, positions = index(["b", "a", "b", "c"])
    assert names == ("a", "b", "c")
    assert positions.tolist() == [1, 0, 1, 2]
    assert index([])[1].tolist() == []


@pytest.mark.parametrize(
    ("given_p", "expected"),
    [
        # Ordered: 0.01 * 3, max(0.03 * 2, .), max(0.04 * 1, .)
        ({"a": 0.04, "b": 0.01, "c": 0.03}, {"a": 0.06, "b": 0.03, "c": 0.06}),
        # A test that was not made is no member of the family.
        ({"a": 0.04, "b": None, "c": 0.03}, {"a": 0.06, "b": None, "c": 0.06}),
        ({"a": None}, {"a": None}),
        ({}, {}),
        ({"a": 0.9, "b": 0.8}, {"a": 1.0, "b": 1.0}),
    ],
)
def test_holm_by_hand(given_p: Mapping[str, float | None], expected: Mapping[str, float | None]) -> None:
    assert holm(given_p) == pytest.approx(dict(expected))


def test_holm_is_that_of_statsmodels() -> None:
    p_values = [*np.random.default_rng(0).uniform(size=40) ** 3, 0.0, 0.02, 0.02, 1.0]
    found = holm({str(place): p for place, p in enumerate(p_values)})
    assert list(found.values()) == pytest.approx(list(multipletests(p_values, method="holm")[1]))
