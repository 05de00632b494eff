from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from policysweep.report.means import ColumnMeans
from policysweep.report.paired import paired_differences

NAN = float("nan")
ONLY = {"verbosity": np.array([1.0])}


def _difference(first: list[float], second: list[float], tasks: list[int]) -> ColumnMeans:
    return ColumnMeans((np.array(second) - np.array(first))[:, None], np.array(tasks))


def test_one_pair_a_task_is_a_paired_t_test() -> None:
    generator = np.random.default_rng(1)
    first, second = generator.normal(size=(2, 25))
    found = paired_differences(_difference(list(first), list(second), list(range(25))), ONLY)["verbosity"]
    assert found.mean.p_value == pytest.approx(float(stats.ttest_rel(second, first).pvalue))
    # A single figure needs no correction.
    assert found.p_holm == found.mean.p_value


def test_the_sign_is_second_minus_first_and_turns_with_them() -> None:
    first, second, tasks = [1.0, 2.0, 3.0], [3.0, 3.0, 3.0], [0, 1, 2]
    forth = paired_differences(_difference(first, second, tasks), ONLY)["verbosity"].mean
    back = paired_differences(_difference(second, first, tasks), ONLY)["verbosity"].mean
    assert forth.value == pytest.approx(1.0)
    assert back.value == pytest.approx(-1.0)
    assert back.p_value == pytest.approx(forth.p_value)


def test_a_pair_that_lacks_a_score_counts_on_neither_side() -> None:
    found = paired_differences(_difference([1.0, NAN, 2.0, 3.0], [2.0, 5.0, NAN, 5.0], [0, 1, 2, 3]), ONLY)[
        "verbosity"
    ].mean
    assert (found.n, found.tasks) == (2, 2)
    assert found.value == pytest.approx(1.5)


def test_holm_runs_over_the_figures_that_could_be_tested() -> None:
    generator = np.random.default_rng(6)
    differences = np.stack(
        [0.6 + generator.normal(size=30), generator.normal(size=30), np.full(30, NAN)], axis=1
    )
    figures = {name: np.eye(3)[column] for column, name in enumerate(("verbosity", "tone", "security"))}
    found = paired_differences(ColumnMeans(differences, np.arange(30)), figures)
    assert found["security"].p_holm is None
    assert found["security"].mean.reason == "no scores"
    least = min((found[name] for name in ("verbosity", "tone")), key=lambda each: each.mean.p_value or 0)
    assert least.mean.p_value is not None
    assert least.p_holm == pytest.approx(min(1.0, 2 * least.mean.p_value))


def test_a_dimension_is_a_figure_like_any_other() -> None:
    differences = np.random.default_rng(2).normal(size=(40, 2))
    found = paired_differences(ColumnMeans(differences, np.arange(40)), {"dialogue": np.array([0.5, 0.5])})
    expected = stats.ttest_1samp(differences.mean(axis=1), 0.0)
    assert found["dialogue"].mean.value == pytest.approx(differences.mean())
    assert found["dialogue"].mean.p_value == pytest.approx(float(expected.pvalue))
