from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st

from policysweep.report.means import ALL_THE_SAME, ONE_TASK, ColumnMeans
from policysweep.report.statistics import FloatArray, IntArray

NAN = float("nan")


def _table(seed: int = 4, columns: int = 1) -> tuple[FloatArray, IntArray]:
    generator = np.random.default_rng(seed)
    tasks = np.repeat(np.arange(15), generator.integers(2, 8, size=15))
    values = generator.integers(1, 6, size=(len(tasks), columns)) + (tasks % 4)[:, None] / 3
    return values, tasks


def test_one_column_equals_a_cluster_robust_regression_on_a_constant() -> None:
    values, tasks = _table()
    fit = sm.OLS(values[:, 0], np.ones(len(tasks))).fit(
        cov_type="cluster", cov_kwds={"groups": tasks}, use_t=True
    )
    found = ColumnMeans(values, tasks).column(0)
    assert found.value == pytest.approx(float(fit.params[0]))
    assert found.standard_error == pytest.approx(float(fit.bse[0]))
    assert found.interval == pytest.approx(tuple(fit.conf_int()[0]))
    assert (found.n, found.tasks, found.reason) == (len(tasks), 15, "")


def test_complete_columns_equal_the_regression_of_their_mean_per_unit() -> None:
    """Scores of one unit on several metrics are not independent, and are not taken to be."""
    values, tasks = _table(columns=3)
    together = ColumnMeans(values, tasks).combine(np.full(3, 1 / 3))
    alone = ColumnMeans(values.mean(axis=1, keepdims=True), tasks).column(0)
    assert together.value == pytest.approx(alone.value)
    assert together.standard_error == pytest.approx(alone.standard_error)


def test_a_combination_is_the_mean_of_the_means_and_not_of_the_scores() -> None:
    values = np.array([[1.0, 5.0], [1.0, NAN], [1.0, NAN]])
    found = ColumnMeans(values, np.array([0, 1, 2])).combine(np.array([0.5, 0.5]))
    assert found.value == pytest.approx(3.0)
    assert (found.n, found.tasks) == (3, 3)


def test_the_error_of_a_combination_by_hand() -> None:
    # Column 0: mean 2 over three tasks; column 1: mean 3 over the first two.
    values = np.array([[1.0, 2.0], [2.0, 4.0], [3.0, NAN]])
    found = ColumnMeans(values, np.array([0, 1, 2])).combine(np.array([0.5, 0.5]))
    shares = [(1 - 2) / 3 / 2 + (2 - 3) / 2 / 2, 0 + (4 - 3) / 2 / 2, (3 - 2) / 3 / 2]
    assert found.standard_error == pytest.approx((3 / 2 * sum(share**2 for share in shares)) ** 0.5)


def test_a_contrast_of_two_groups_of_units() -> None:
    values, tasks = _table(columns=1)
    first = np.arange(len(tasks)) % 2 == 0
    split = np.where(first[:, None], np.hstack([values, np.full_like(values, NAN)]), NAN)
    split[~first, 1] = values[~first, 0]
    found = ColumnMeans(split, tasks).combine(np.array([1.0, -1.0]))
    # The same as a regression on group membership; its small-sample factor is undone first.
    fit = sm.OLS(values[:, 0], np.stack([np.ones(len(tasks)), first], axis=1)).fit(
        cov_type="cluster", cov_kwds={"groups": tasks, "use_correction": False}, use_t=True
    )
    assert found.value == pytest.approx(float(fit.params[1]))
    assert found.standard_error == pytest.approx(float(fit.bse[1]) * (15 / 14) ** 0.5)


def test_a_column_without_scores_leaves_the_combination_without_value() -> None:
    values = np.array([[1.0, NAN], [2.0, NAN]])
    means = ColumnMeans(values, np.array([0, 1]))
    assert means.combine(np.array([0.5, 0.5])).value is None
    assert means.column(1).reason == "no scores"
    assert means.combine(np.zeros(2)).reason == "no metrics"
    assert means.column(0).value == pytest.approx(1.5)


def test_one_task_and_equal_tasks_have_no_interval() -> None:
    one = ColumnMeans(np.array([[1.0], [2.0]]), np.array([3, 3])).column(0)
    assert (one.value, one.standard_error, one.p_value, one.reason) == (1.5, None, None, ONE_TASK)
    same = ColumnMeans(np.array([[4.0], [4.0]]), np.array([0, 1])).column(0)
    assert (same.value, same.interval, same.p_value, same.reason) == (4.0, None, None, ALL_THE_SAME)


def test_no_units() -> None:
    found = ColumnMeans(np.empty((0, 2)), np.array([], dtype=np.int64)).column(0)
    assert (found.value, found.n, found.tasks) == (None, 0, 0)


cells = st.one_of(st.none(), st.integers(1, 5).map(float))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), cells, cells), min_size=1, max_size=30))
def test_a_score_that_is_absent_is_as_if_its_unit_had_never_been(
    rows: list[tuple[int, float | None, float | None]],
) -> None:
    values = np.array([[NAN if cell is None else cell for cell in row[1:]] for row in rows])
    tasks = np.array([row[0] for row in rows])
    means = ColumnMeans(values, tasks)
    for column in range(2):
        kept = [(task, row[column]) for task, *row in rows if row[column] is not None]
        alone = ColumnMeans(
            np.array([[value] for _, value in kept], dtype=np.float64).reshape(-1, 1),
            np.array([task for task, _ in kept], dtype=np.int64),
        ).column(0)
        found = means.column(column)
        assert found.n == alone.n
        assert found.value == pytest.approx(alone.value)
        assert found.standard_error == pytest.approx(alone.standard_error)
        assert (found.interval is None) == bool(found.reason)
