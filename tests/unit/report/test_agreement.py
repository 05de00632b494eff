from __future__ import annotations

from itertools import permutations
from math import log2
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from statsmodels.stats.inter_rater import cohens_kappa, fleiss_kappa

from policysweep.report import agreement, bootstrap
from policysweep.report.agreement import Grid
from policysweep.report.outcomes import KEYS
from policysweep.report.statistics import IntArray

K = len(KEYS)
FULL, DENY, HUMAN = 1, 4, 6

# Fleiss (1971), the worked example on Wikipedia: 10 subjects, 14 raters, 5 categories, kappa 0.210.
FLEISS_EXAMPLE = np.array(
    [
        [0, 0, 0, 0, 14],
        [0, 2, 6, 4, 2],
        [0, 0, 3, 5, 6],
        [0, 3, 9, 2, 0],
        [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0],
        [3, 2, 6, 3, 0],
        [2, 5, 3, 2, 2],
        [6, 5, 2, 1, 0],
        [0, 2, 2, 3, 7],
    ]
)

GRIDS = st.tuples(st.integers(1, 30), st.integers(2, 5)).flatmap(
    lambda shape: arrays(np.int8, shape, elements=st.integers(0, K - 1))
)


def _grid(*conversations: tuple[int, ...]) -> Grid:
    return np.array(conversations, dtype=np.int8)


def _tasks(grid: Grid, per_task: int = 1) -> IntArray:
    return np.arange(len(grid)) // per_task


def _pair(table: list[list[int]]) -> Grid:
    """A grid of two agents with this table of categories 1, 2, ..."""
    cells = [
        (first + 1, second + 1)
        for first, row in enumerate(table)
        for second, units in enumerate(row)
        for _ in range(units)
    ]
    return _grid(*cells)


def test_all_agree_by_hand() -> None:
    grid = _grid((FULL, FULL, FULL), (FULL, FULL, DENY), (DENY, DENY, DENY), (0, 0, 0), (HUMAN, 0, HUMAN))
    found = agreement.all_agree(grid, _tasks(grid), K, seed=0)
    # Three agents without outcome agree on nothing.
    assert (found.agreed, found.n, found.without_outcome) == (2, 5, 2)
    assert found.rate.value == 0.4
    assert found.rate.interval is not None


def test_all_agree_interval_of_a_rate_of_zero_is_not_zero() -> None:
    grid = _grid(*[(FULL, DENY)] * 400)
    found = agreement.all_agree(grid, _tasks(grid, 10), K, seed=0)
    assert found.rate.value == 0.0
    # 400 conversations of 40 tasks that do not vary are worth 40: z^2 / (40 + z^2).
    assert found.rate.interval == pytest.approx((0.0, 0.0876), abs=1e-4)
    assert found.resampled.interval is None


def test_chance_level_by_hand() -> None:
    # First agent half FULL, half DENY; second a quarter FULL: 0.5 * 0.25 + 0.5 * 0.75.
    grid = _grid((FULL, FULL), (FULL, DENY), (DENY, DENY), (DENY, DENY))
    assert agreement.chance_level(grid, K) == pytest.approx(0.5)


def test_chance_level_does_not_count_agreement_on_no_outcome() -> None:
    # Shares of FULL: 1/2 and 1/2, of no outcome as well.
    grid = _grid((FULL, 0), (0, FULL))
    assert agreement.chance_level(grid, K) == pytest.approx(0.25)


def test_chance_level_of_four_agents_equals_simulated_independence() -> None:
    generator = np.random.default_rng(0)
    shares = generator.dirichlet(np.ones(7), size=4)
    grid = np.stack([generator.choice(7, size=20_000, p=p) + 1 for p in shares], axis=1).astype(np.int8)
    simulated = (grid == grid[:, :1]).all(axis=1).mean()
    assert agreement.chance_level(grid, K) == pytest.approx(simulated, abs=0.004)


def test_fleiss_kappa_of_the_published_example() -> None:
    grid = np.stack([np.repeat(np.arange(1, 6), row) for row in FLEISS_EXAMPLE]).astype(np.int8)
    found = agreement.fleiss(grid, _tasks(grid), K, seed=0)
    assert found.value == pytest.approx(0.210, abs=5e-4)
    assert found.value == pytest.approx(fleiss_kappa(FLEISS_EXAMPLE))
    assert found.interval is not None
    assert found.interval[0] < 0.210 < found.interval[1]


def test_cohens_kappa_by_hand() -> None:
    # Observed 35/50, expected 0.5 * 0.6 + 0.5 * 0.4 = 0.5.
    grid = _pair([[20, 5], [10, 15]])
    found = agreement.cohen(grid, _tasks(grid), K, seed=0)
    assert found.value == pytest.approx(0.4)


def test_bootstrap_of_cohens_kappa_agrees_with_its_asymptotic_error() -> None:
    table = [[60, 15, 10], [10, 50, 5], [5, 10, 35]]
    grid = _pair(table)
    found = agreement.cohen(grid, _tasks(grid), K, seed=0)
    expected = cohens_kappa(np.array(table))
    assert found.value == pytest.approx(expected.kappa)
    assert found.interval == pytest.approx((expected.kappa_low, expected.kappa_upp), abs=0.015)


def test_bootstrap_of_kappas_moves_whole_tasks() -> None:
    """Ten copies of each conversation in one task tell no more than one: the intervals are the same."""
    generator = np.random.default_rng(5)
    once = generator.integers(1, 5, size=(60, 2)).astype(np.int8)
    copies = np.repeat(once, 10, axis=0)
    for kappa in (agreement.cohen, agreement.fleiss):
        single = kappa(once, _tasks(once), K, seed=0)
        assert kappa(copies, _tasks(copies, 10), K, seed=0).interval == pytest.approx(single.interval)


def test_replicates_equal_the_library_on_the_resampled_conversations() -> None:
    generator = np.random.default_rng(8)
    grid = generator.integers(0, K, size=(60, 3)).astype(np.int8)
    tasks = _tasks(grid, 3)
    weights = bootstrap.resamples(20, 0)
    resampled = [np.repeat(grid, counts.astype(int)[tasks], axis=0) for counts in weights]

    def library(conversations: Grid) -> float:
        counts = (conversations[:, :, None] == np.arange(K)).sum(axis=1)
        return float(fleiss_kappa(counts))

    expected = np.quantile([library(conversations) for conversations in resampled], [0.025, 0.975])
    assert agreement.fleiss(grid, tasks, K, seed=0).interval == pytest.approx(tuple(expected))


@pytest.mark.parametrize("kappa", [agreement.fleiss, agreement.cohen])
def test_kappa_of_a_constant_outcome_is_undefined(kappa: Any) -> None:
    found = kappa(_grid(*[(FULL, FULL)] * 20), np.arange(20), K, seed=0)
    assert found.value is None
    assert found.interval is None
    assert "agreement by chance is certain" in found.reason


@pytest.mark.parametrize("kappa", [agreement.fleiss, agreement.cohen])
def test_kappa_without_conversations_is_undefined(kappa: Any) -> None:
    found = kappa(np.zeros((0, 2), dtype=np.int8), np.zeros(0, dtype=np.int64), K, seed=0)
    assert (found.value, found.reason) == (None, "no matched conversations")


def test_cohens_kappa_of_one_constant_agent_is_zero() -> None:
    grid = _grid(*[(FULL, FULL), (FULL, DENY)] * 10)
    assert agreement.cohen(grid, _tasks(grid), K, seed=0).value == pytest.approx(0.0)


def test_kappa_of_perfect_agreement_has_no_interval() -> None:
    grid = _grid(*[(FULL, FULL), (DENY, DENY)] * 10)
    found = agreement.cohen(grid, _tasks(grid), K, seed=0)
    assert found.value == pytest.approx(1.0)
    assert found.interval is None
    assert found.reason == "all resamples give the same value"


@given(GRIDS)
@settings(max_examples=60, deadline=None)
def test_no_figure_depends_on_the_order_of_the_agents(grid: Grid) -> None:
    order = list(permutations(range(grid.shape[1])))[-1]
    tasks = _tasks(grid, 2)
    first = agreement.all_agree(grid, tasks, K, seed=0)
    second = agreement.all_agree(grid[:, order], tasks, K, seed=0)
    assert (first.agreed, first.without_outcome) == (second.agreed, second.without_outcome)
    assert second.chance == pytest.approx(first.chance)
    kappas = [agreement.fleiss(cells, tasks, K, seed=0) for cells in (grid, grid[:, order])]
    assert kappas[0].value == pytest.approx(kappas[1].value)


@given(GRIDS)
@settings(max_examples=60, deadline=None)
def test_cohens_kappa_is_symmetric_and_at_most_one(grid: Grid) -> None:
    tasks = _tasks(grid, 2)
    one = agreement.cohen(grid[:, :2], tasks, K, seed=0)
    other = agreement.cohen(grid[:, 1::-1], tasks, K, seed=0)
    assert one.value == pytest.approx(other.value)
    assert one.interval == pytest.approx(other.interval)
    assert one.value is None or one.value <= 1.0 + 1e-12


@given(GRIDS, st.permutations(range(1, K)))
@settings(max_examples=60, deadline=None)
def test_the_names_of_the_outcomes_do_not_matter(grid: Grid, names: list[int]) -> None:
    renamed = np.array([0, *names], dtype=np.int8)[grid]
    tasks = _tasks(grid, 2)
    first, second = (agreement.all_agree(cells, tasks, K, seed=0) for cells in (grid, renamed))
    assert first.rate == second.rate
    assert second.chance == pytest.approx(first.chance)


def test_self_agreement_by_hand() -> None:
    # Outcomes FULL FULL DENY: two of three drawn trials agree in 1 of 3 draws. FULL FULL FULL: always.
    counts = np.zeros((3, K))
    counts[0, FULL], counts[0, DENY] = 2, 1
    counts[1, FULL] = 3
    counts[2, FULL] = 1
    pairs = agreement.self_agreement(counts, np.array([0, 1, 2]), trials=2)
    assert (pairs.trials, pairs.cases, pairs.left_out) == (2, 2, 1)
    assert pairs.rate.value == pytest.approx((1 / 3 + 1) / 2)
    triples = agreement.self_agreement(counts, np.array([0, 1, 2]), trials=3)
    assert triples.rate.value == pytest.approx(0.5)


def test_self_agreement_on_no_outcome_is_none() -> None:
    counts = np.zeros((1, K))
    counts[0, 0] = 3
    assert agreement.self_agreement(counts, np.array([0]), trials=2).rate.value == 0.0


def test_self_agreement_without_enough_trials_is_undefined() -> None:
    counts = np.zeros((1, K))
    counts[0, FULL] = 3
    found = agreement.self_agreement(counts, np.array([0]), trials=4)
    assert (found.rate.value, found.rate.reason) == (None, "no case has 4 scored trials")
    assert (found.cases, found.left_out) == (0, 1)


def test_self_agreement_is_the_all_agree_rate_of_an_agent_with_its_copies() -> None:
    """Drawing k trials of an agent that ignores its case gives the all-agree rate of k such agents."""
    generator = np.random.default_rng(2)
    trials = generator.integers(1, 4, size=(3000, 4)).astype(np.int8)
    counts = (trials[:, :, None] == np.arange(K)).sum(axis=1).astype(float)
    own = agreement.self_agreement(counts, np.arange(3000), trials=4).rate.value
    assert own == pytest.approx((trials == trials[:, :1]).all(axis=1).mean())
    two = agreement.self_agreement(counts, np.arange(3000), trials=2).rate.value
    assert two == pytest.approx(1 / 3, abs=0.01)


def test_entropy_within_cases_by_hand() -> None:
    grid = _grid((FULL, FULL, FULL), (FULL, DENY, HUMAN), (FULL, DENY, FULL))
    found = agreement.within_case_entropy(grid, np.array([0, 0, 1]), K)
    two_of_three = -(2 / 3 * log2(2 / 3) + 1 / 3 * log2(1 / 3))
    assert found == pytest.approx([log2(3) / 2, two_of_three])
