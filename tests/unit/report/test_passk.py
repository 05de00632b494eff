from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policysweep.report.passk import pass_hat_k

TRIALS = st.dictionaries(st.text(max_size=3), st.lists(st.booleans(), max_size=6), max_size=5)


def test_by_hand() -> None:
    trials = {"a": [True, True, True, False], "b": [True, False, False, False]}
    # C(3,1)/C(4,1) and C(1,1)/C(4,1)
    assert pass_hat_k(trials, 1).value == pytest.approx((3 / 4 + 1 / 4) / 2)
    # C(3,2)/C(4,2) and 0
    assert pass_hat_k(trials, 2).value == pytest.approx((3 / 6 + 0) / 2)
    assert pass_hat_k(trials, 4).value == 0.0


def test_tasks_with_too_few_trials_are_left_out_and_counted() -> None:
    found = pass_hat_k({"a": [True] * 4, "b": [True] * 3, "c": []}, 4)
    assert (found.value, found.tasks, found.left_out) == (1.0, 1, 2)


def test_undefined_without_a_task_that_has_k_trials() -> None:
    found = pass_hat_k({"a": [True, True]}, 3)
    assert (found.value, found.tasks, found.left_out) == (None, 0, 1)
    assert pass_hat_k({}, 1).value is None


@pytest.mark.parametrize("rewards", [[0.5, 0.5], [1.0], [1], [None]])
def test_rewards_are_not_successes(rewards: Any) -> None:
    with pytest.raises(ValueError, match="task 'a': each trial is True or False"):
        pass_hat_k({"a": rewards}, 1)


def test_k_is_at_least_one() -> None:
    with pytest.raises(ValueError, match="at least 1, not 0"):
        pass_hat_k({"a": [True]}, 0)


@given(TRIALS, st.integers(1, 4))
def test_equals_the_share_of_k_subsets_that_pass(trials: dict[str, list[bool]], k: int) -> None:
    shares = [
        sum(map(all, combinations(done, k))) / len(list(combinations(done, k)))
        for done in trials.values()
        if len(done) >= k
    ]
    found = pass_hat_k(trials, k)
    assert found.tasks + found.left_out == len(trials)
    assert found.value == (pytest.approx(sum(shares) / len(shares)) if shares else None)
