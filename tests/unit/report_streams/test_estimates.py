from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from policysweep.report.streams import estimates

TRIALS = 4


def counts(rows: list[list[int]]) -> np.ndarray:
    return np.array(rows, dtype=np.int64)


def test_pass_k_by_hand() -> None:
    passes, trials = counts([[4, 3, 2, 0]]), counts([[4, 4, 4, 4]])
    assert estimates.pass_hat_k(passes, trials, 1).tolist() == [[1.0, 0.75, 0.5, 0.0]]
    assert estimates.pass_hat_k(passes, trials, 2).tolist() == [[1.0, 3 / 6, 1 / 6, 0.0]]
    assert estimates.pass_hat_k(passes, trials, 4).tolist() == [[1.0, 0.0, 0.0, 0.0]]


def test_pass_k_is_undefined_with_fewer_than_k_trials() -> None:
    values = estimates.pass_hat_k(counts([[1, 1, 0]]), counts([[1, 2, 0]]), 2)
    assert np.isnan(values[0, 0])
    assert values[0, 1] == 0.0
    assert np.isnan(values[0, 2])


def test_mean_over_tasks_then_over_seeds() -> None:
    # The second seed has one task that counts; it weighs as much as the first.
    values = np.array([[1.0, 0.0, 0.5], [np.nan, 0.2, np.nan]])
    assert estimates.seed_means(values).tolist() == [0.5, 0.2]
    assert estimates.mean(values) == pytest.approx(0.35)


def test_a_seed_without_any_value_is_left_out_and_none_at_all_is_none() -> None:
    assert estimates.mean(np.array([[0.5], [np.nan]])) == 0.5
    assert estimates.mean(np.full((2, 3), np.nan)) is None
    assert estimates.estimate(np.full((2, 3), np.nan), np.arange(3)).reason == "defined for no task"


def test_a_replicate_is_the_mean_of_what_it_drew() -> None:
    # One family of two tasks and one of one; drawn twice, the first family weighs four tasks.
    values = np.array([[1.0, 0.0, 1.0]])
    found = set(np.round(estimates.replicates(values, np.array([0, 0, 1])), 9).tolist())
    assert found == {0.5, round(2 / 3, 9), 1.0}


def test_tasks_of_a_family_are_drawn_together() -> None:
    values = np.array([[1.0, 0.0] * 6])
    apart = estimates.replicates(values, np.arange(12))
    together = estimates.replicates(values, np.repeat(np.arange(6), 2))
    assert np.ptp(apart) > 0
    assert np.ptp(together) == 0  # every family is half passed


def test_seeds_are_drawn_too() -> None:
    values = np.array([[1.0] * 6, [0.0] * 6])
    assert set(estimates.replicates(values, np.arange(6)).tolist()) == {0.0, 0.5, 1.0}
    assert np.ptp(estimates.replicates(values[:1], np.arange(6))) == 0


def test_few_families_give_no_interval_and_say_so() -> None:
    values = np.array([[1.0, 0.0, 1.0, 0.0, 1.0]])
    found = estimates.estimate(values, np.arange(5))
    assert found.value == pytest.approx(0.6)
    assert found.interval is None
    assert "at least 6 task families, here: 5" in found.reason
    assert estimates.estimate(np.array([[1.0, 0.0] * 3]), np.arange(6)).interval is not None


def test_families_without_a_value_do_not_count() -> None:
    values = np.array([[1.0, 0.0, 1.0, 0.0, 1.0, np.nan]])
    assert "here: 5" in estimates.estimate(values, np.arange(6)).reason


def test_no_variation_is_no_certainty() -> None:
    found = estimates.estimate(np.ones((2, 8)), np.arange(8))
    assert found.value == 1.0
    assert found.interval is None
    assert found.reason == "all resamples give the same value"


def test_percentiles_are_expanded_for_few_families() -> None:
    resampled = np.linspace(0.0, 1.0, 100_001)
    # t with 6 degrees of freedom is 2.4469; times sqrt(7 / 6) that is 2.6430, of which 0.41% lie beyond.
    assert estimates.expanded_percentiles(resampled, 7) == pytest.approx([0.00411, 0.99589], abs=2e-5)
    assert estimates.expanded_percentiles(resampled, 10_000) == pytest.approx([0.025, 0.975], abs=1e-4)


def test_the_interval_covers_where_a_percentile_interval_does_not() -> None:
    """Seven families of three sisters, five seeds, four trials, chances that differ between families."""
    draw = np.random.default_rng(7)
    families = np.repeat(np.arange(7), 3)
    runs, expanded, plain = 150, 0, 0
    for _ in range(runs):
        chance = np.repeat(draw.beta(1.75, 0.58, size=7), 3)  # mean 0.75, correlation 0.3
        passes = draw.binomial(TRIALS, np.tile(chance, (5, 1)))
        values = estimates.pass_hat_k(passes, np.full_like(passes, TRIALS), 1)
        resampled = estimates.replicates(values, families)
        low, high = estimates.expanded_percentiles(resampled, 7)
        expanded += low <= 0.751 <= high
        low, high = np.quantile(resampled, [0.025, 0.975])
        plain += low <= 0.751 <= high
    assert expanded / runs >= 0.91
    assert plain / runs < expanded / runs


def test_a_ratio_is_of_the_same_resamples() -> None:
    under = np.array([np.linspace(0.2, 1.0, 8)])
    found = estimates.ratio(under / 2, under, np.arange(8))
    assert found.value == pytest.approx(0.5)
    # Half of it in every resample: not an interval, but no variation.
    assert found.reason == "all resamples give the same value"


def test_a_ratio_by_hand() -> None:
    assert estimates.ratio(
        np.array([[0.5, 0.1]]), np.array([[1.0, 0.5]]), np.arange(2)
    ).value == pytest.approx(0.4)


passes_and_trials = st.lists(
    st.integers(0, TRIALS).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
    min_size=1,
    max_size=12,
)


@settings(deadline=None)
@given(passes_and_trials, st.integers(1, TRIALS))
def test_pass_k_agrees_with_the_definition_and_falls_with_k(found: list[tuple[int, int]], k: int) -> None:
    passes, trials = counts([[c for c, _ in found]]), counts([[n for _, n in found]])
    values = estimates.pass_hat_k(passes, trials, k)[0]
    for value, (c, n) in zip(values, found, strict=True):
        if n < k:
            assert np.isnan(value)
        else:
            assert value == pytest.approx(comb(c, k) / comb(n, k))
            assert 0.0 <= value <= 1.0
    following = estimates.pass_hat_k(passes, trials, k + 1)[0]
    both = ~np.isnan(values) & ~np.isnan(following)
    assert (following[both] <= values[both] + 1e-12).all()


@settings(deadline=None)
@given(passes_and_trials, st.integers(1, TRIALS))
def test_missing_as_failure_is_never_better(found: list[tuple[int, int]], k: int) -> None:
    passes, trials = counts([[c for c, _ in found]]), counts([[n for _, n in found]])
    strict = estimates.pass_hat_k(passes, np.full_like(trials, TRIALS), k)
    lenient = estimates.pass_hat_k(passes, trials, k)
    held = ~np.isnan(lenient)
    assert (strict[held] <= lenient[held] + 1e-12).all()


@settings(max_examples=25, deadline=None)
@given(npst.arrays(np.float64, (3, 9), elements=st.floats(0, 1)), st.permutations(range(9)))
def test_the_order_of_tasks_changes_no_value(values: np.ndarray, order: list[int]) -> None:
    assert estimates.mean(values[:, order]) == pytest.approx(estimates.mean(values))
    families = np.arange(9) // 3
    one = np.sort(estimates.replicates(values, families))
    other = np.sort(estimates.replicates(values[:, order], families[order]))
    assert one == pytest.approx(other)
