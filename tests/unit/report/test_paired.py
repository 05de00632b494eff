from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats

from policysweep.report.paired import paired_difference, paired_differences


def test_equals_a_cluster_robust_regression_on_a_constant() -> None:
    generator = np.random.default_rng(4)
    tasks = np.repeat(np.arange(15), generator.integers(2, 8, size=15))
    first = generator.integers(1, 6, size=len(tasks)).astype(float)
    second = first + generator.normal(size=len(tasks)) + (tasks % 4) / 3
    fit = sm.OLS(second - first, np.ones(len(tasks))).fit(
        cov_type="cluster", cov_kwds={"groups": tasks}, use_t=True
    )
    found = paired_difference(first.tolist(), second.tolist(), [f"task_{task}" for task in tasks])
    assert found.mean == pytest.approx(float(fit.params[0]))
    assert found.standard_error == pytest.approx(float(fit.bse[0]))
    assert found.p_value == pytest.approx(float(fit.pvalues[0]))
    assert found.interval == pytest.approx(tuple(fit.conf_int()[0]))
    assert (found.pairs, found.tasks, found.left_out) == (len(tasks), 15, 0)


def test_one_pair_a_task_is_a_paired_t_test() -> None:
    generator = np.random.default_rng(1)
    first, second = generator.normal(size=(2, 25))
    found = paired_difference(first.tolist(), second.tolist(), [str(task) for task in range(25)])
    assert found.p_value == pytest.approx(float(stats.ttest_rel(second, first).pvalue))


def test_the_sign_is_second_minus_first_and_turns_with_them() -> None:
    first, second, tasks = [1.0, 2.0, 3.0], [3.0, 3.0, 3.0], ["a", "b", "c"]
    forth, back = paired_difference(first, second, tasks), paired_difference(second, first, tasks)
    assert forth.mean == pytest.approx(1.0)
    assert back.mean == pytest.approx(-1.0)
    assert back.p_value == pytest.approx(forth.p_value)


def test_a_missing_score_leaves_out_its_pair_and_is_counted() -> None:
    found = paired_difference([1.0, None, 2.0, 3.0], [2.0, 5.0, None, 5.0], ["a", "b", "c", "d"])
    assert (found.pairs, found.tasks, found.left_out) == (2, 2, 2)
    assert found.mean == pytest.approx(1.5)


def test_without_pairs() -> None:
    found = paired_difference([None], [1.0], ["a"])
    assert (found.mean, found.p_value, found.reason) == (None, None, "no pair has both scores")


def test_one_task_has_no_standard_error() -> None:
    found = paired_difference([1.0, 1.0], [2.0, 3.0], ["a", "a"])
    assert (found.mean, found.standard_error, found.p_value) == (1.5, None, None)
    assert found.reason == "a standard error clustered by task needs at least 2 tasks"


def test_a_constant_difference_is_not_a_certain_one() -> None:
    found = paired_difference([1.0, 2.0], [2.0, 3.0], ["a", "b"])
    assert (found.mean, found.interval, found.p_value) == (1.0, None, None)
    assert "the same in all tasks" in found.reason


@pytest.mark.parametrize("score", [float("nan"), float("inf")])
def test_scores_are_finite(score: float) -> None:
    with pytest.raises(ValueError, match="pass None for a score"):
        paired_difference([score], [1.0], ["a"])


def test_lengths_agree() -> None:
    with pytest.raises(ValueError, match="zip"):
        paired_difference([1.0], [1.0, 2.0], ["a", "b"])


def test_holm_runs_over_the_metrics_that_could_be_tested() -> None:
    generator = np.random.default_rng(6)
    tasks = [str(task) for task in range(30)]
    base = generator.normal(size=30)
    metrics = {
        "verbosity": (base.tolist(), (base + 0.6 + generator.normal(size=30)).tolist()),
        "conformity": (base.tolist(), (base + generator.normal(size=30)).tolist()),
        "security": ([None] * 30, base.tolist()),
    }
    found = paired_differences(metrics, tasks)
    assert found["security"].p_holm is None
    tested = sorted((found[name] for name in ("verbosity", "conformity")), key=lambda each: each.p_value or 0)
    assert tested[0].p_value is not None
    assert tested[0].p_holm == pytest.approx(min(1.0, 2 * tested[0].p_value))
    assert found["verbosity"].p_value == paired_difference(*metrics["verbosity"], tasks).p_value
