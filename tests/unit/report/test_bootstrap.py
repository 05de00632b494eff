from __future__ import annotations

import numpy as np
import pytest

from policysweep.report import bootstrap


def test_each_replicate_draws_as_many_tasks_as_there_are() -> None:
    weights = bootstrap.resamples(40, seed=0)
    assert weights.shape == (bootstrap.REPLICATES, 40)
    assert (weights.sum(axis=1) == 40).all()
    assert weights.mean() == pytest.approx(1.0)
    assert weights.var() == pytest.approx(1 - 1 / 40, rel=0.02)


def test_the_seed_decides_and_nothing_else() -> None:
    first = bootstrap.resamples(20, seed=1).copy()
    np.random.seed(99)  # the global generator must not matter
    bootstrap.resamples.cache_clear()
    assert (bootstrap.resamples(20, seed=1) == first).all()
    assert (bootstrap.resamples(20, seed=2) != first).any()


def test_resamples_cannot_be_changed_by_a_caller() -> None:
    with pytest.raises(ValueError, match="read-only"):
        bootstrap.resamples(20, seed=1)[0, 0] = 5.0


def test_rate_moves_whole_tasks() -> None:
    """With tasks that are all or nothing, the standard error is that of as many units as tasks."""
    sums, sizes = np.repeat([10.0, 0.0], 50), np.full(100, 10.0)
    found = bootstrap.rate(sums, sizes, seed=0)
    assert found.value == 0.5
    assert found.interval is not None
    low, high = found.interval
    assert (high - low) / 2 == pytest.approx(1.96 * 0.05, rel=0.08)
    assert low < 0.5 < high


def test_rate_weighs_tasks_by_their_units() -> None:
    sums, sizes = np.array([9.0, *[0.0] * 9]), np.array([9.0, *[1.0] * 9])
    assert bootstrap.rate(sums, sizes, seed=0).value == 0.5


def test_no_interval_from_few_tasks() -> None:
    found = bootstrap.rate(np.array([1.0, 0.0, 1.0]), np.ones(3), seed=0)
    assert found.value == pytest.approx(2 / 3)
    assert found.interval is None
    assert found.reason == "a bootstrap needs at least 10 tasks, there are 3"


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_no_interval_of_width_zero(share: float) -> None:
    found = bootstrap.rate(np.full(40, share), np.ones(40), seed=0)
    assert (found.value, found.interval) == (share, None)
    assert found.reason == "all resamples give the same value"


def test_undefined_replicates() -> None:
    values = np.linspace(0.0, 1.0, 1000)
    values[:40] = np.nan
    assert bootstrap.with_interval(0.5, values, 40).interval is not None
    values[:60] = np.nan
    found = bootstrap.with_interval(0.5, values, 40)
    assert found.interval is None
    assert found.reason == "undefined in 6% of the bootstrap's resamples"


def test_rate_without_units() -> None:
    assert bootstrap.rate(np.zeros(0), np.zeros(0), seed=0).reason == "no units"
