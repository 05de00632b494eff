from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from statsmodels.stats.contingency_tables import SquareTable

from policysweep.report.outcome_changes import FLIPS, swap_test


def test_the_p_value_is_that_of_all_swaps() -> None:
    """With seven tasks all 128 swaps can be counted; 9,999 random ones come close."""
    before = np.array([1, 1, 1, 4, 4, 1, 1, 4, 1, 1])
    after = np.array([1, 4, 4, 4, 1, 4, 4, 4, 4, 2])
    tasks = np.array([0, 0, 1, 1, 2, 3, 4, 5, 5, 6])
    moved = np.zeros((7, 5))
    for one, other, task in zip(before, after, tasks, strict=True):
        moved[task, other] += 1
        moved[task, one] -= 1
    statistics = [
        float((np.array(signs) @ moved) @ (np.array(signs) @ moved)) for signs in product([-1, 1], repeat=7)
    ]
    exact = np.mean([each >= statistics[-1] for each in statistics])
    found = swap_test(before, after, tasks, 5, seed=0)
    assert found == pytest.approx(exact, abs=0.015)


def test_nothing_to_swap() -> None:
    same = np.array([1, 2, 4])
    assert swap_test(same, same, np.arange(3), 8, 0) is None
    # Two conversations of a task trade places: the task's counts stay.
    assert swap_test(np.array([1, 4]), np.array([4, 1]), np.array([0, 0]), 8, 0) is None


def test_a_clear_move_is_found_and_the_least_p_value_is_not_zero() -> None:
    tasks = np.arange(40)
    found = swap_test(np.full(40, 1), np.full(40, 4), tasks, 8, 0)
    assert found == pytest.approx(1 / (FLIPS + 1))


def test_one_task_alone_shows_nothing_however_many_conversations_it_has() -> None:
    assert swap_test(np.full(40, 1), np.full(40, 4), np.zeros(40, dtype=np.int64), 8, 0) == 1.0


def test_the_test_keeps_its_level_when_tasks_are_clusters() -> None:
    """Outcomes that the conversations of a task share; a test of independent pairs sees what is not there."""
    generator = np.random.default_rng(0)
    tasks = np.repeat(np.arange(12), 10)
    found, independent = [], []
    for draw in range(120):
        before, after = (np.repeat(generator.integers(0, 3, size=12), 10) for _ in range(2))
        p_value = swap_test(before, after, tasks, 3, draw)
        found.append(p_value is not None and p_value < 0.05)
        table = np.zeros((3, 3))
        np.add.at(table, (before, after), 1.0)
        independent.append(SquareTable(table).homogeneity().pvalue < 0.05)
    assert np.mean(found) < 0.11
    assert np.mean(independent) > 0.5
