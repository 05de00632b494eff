"""How far agents that met the same cases came to the same outcome, and how far one agent does with itself.

Agents are compared on matched conversations only: the same scenario, agent persona and trial, with a scored
unit of every agent compared. The data is a grid of categories (`outcomes.py`), [conversations, agents], with
the task of each conversation. Two units agree when they have the same outcome; units that an agent's fault
left without outcome agree with nothing in the rates, and are a category of their own in the kappas.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import comb
from statsmodels.stats.inter_rater import cohens_kappa, fleiss_kappa

from policysweep.report import bootstrap
from policysweep.report.outcomes import NO_OUTCOME
from policysweep.report.statistics import (
    Estimate,
    FloatArray,
    IntArray,
    entropy_bits,
    per_task,
    proportion,
)

Grid = NDArray[np.int8]
"""Categories [conversations, agents]."""


@dataclass(frozen=True, slots=True)
class AllAgree:
    """How often all agents gave the same outcome.

    `rate` carries the headline interval (Wilson at the effective number of conversations), `resampled` the
    interval of the bootstrap over tasks. `without_outcome` counts the conversations that could not agree
    because at least one agent's fault left it without outcome.
    """

    agreed: int
    n: int
    rate: Estimate
    resampled: Estimate
    chance: float | None
    without_outcome: int


@dataclass(frozen=True, slots=True)
class SelfAgreement:
    """How often `trials` trials of one agent on the same case have the same outcome.

    A case is a scenario with an agent persona. `cases` have that many scored trials, `left_out` have fewer.
    """

    trials: int
    cases: int
    left_out: int
    rate: Estimate


def all_agree(grid: Grid, tasks: IntArray, categories: int, seed: int) -> AllAgree:
    """All-agree rate and chance level of a grid with at least two agents and no gaps.

    `tasks` are indices 0..T-1 without gaps, `categories` the number of categories with NO_OUTCOME.
    """
    same = (grid == grid[:, :1]).all(axis=1) & (grid[:, 0] != NO_OUTCOME)
    sums, sizes = per_task(same, tasks), per_task(np.ones(len(grid)), tasks)
    return AllAgree(
        agreed=int(same.sum()),
        n=len(grid),
        rate=proportion(sums, sizes),
        resampled=bootstrap.rate(sums, sizes, seed),
        chance=chance_level(grid, categories),
        without_outcome=int((grid == NO_OUTCOME).any(axis=1).sum()),
    )


def chance_level(grid: Grid, categories: int) -> float | None:
    """The all-agree rate of agents that keep their own distribution but ignore the case.

    Product over agents of the share of an outcome, summed over outcomes; None for an empty grid.
    """
    if not len(grid):
        return None
    shares = _one_hot(grid, categories).mean(axis=0)
    return float(np.delete(shares.prod(axis=0), NO_OUTCOME).sum())


def fleiss(grid: Grid, tasks: IntArray, categories: int, seed: int) -> Estimate:
    """Fleiss' kappa (1971) of a grid with at least two agents and no gaps, with its bootstrap interval."""
    counts = _one_hot(grid, categories).sum(axis=1)
    if reason := _undefined(counts):
        return Estimate(None, None, reason)
    agents = grid.shape[1]
    pairs_agree = ((counts**2).sum(axis=1) - agents) / (agents * (agents - 1))
    sizes = per_task(np.ones(len(grid)), tasks)
    weights = bootstrap.resamples(len(sizes), seed)
    n = weights @ sizes
    shares = weights @ per_task(counts, tasks) / (n * agents)[:, None]
    replicates = _kappa(weights @ per_task(pairs_agree, tasks) / n, (shares**2).sum(axis=1))
    return bootstrap.with_interval(float(fleiss_kappa(counts)), replicates, len(sizes))


def cohen(grid: Grid, tasks: IntArray, categories: int, seed: int) -> Estimate:
    """Cohen's kappa (1960) of a grid of exactly two agents and no gaps, with its bootstrap interval."""
    hot = _one_hot(grid, categories)
    if reason := _undefined(hot.sum(axis=1)):
        return Estimate(None, None, reason)
    first, second = hot[:, 0], hot[:, 1]
    tables = per_task(first[:, :, None] * second[:, None, :], tasks)
    weights = bootstrap.resamples(len(tables), seed)
    resampled = (weights @ tables.reshape(len(tables), -1)).reshape(-1, categories, categories)
    resampled /= resampled.sum(axis=(1, 2), keepdims=True)
    expected = (resampled.sum(axis=1) * resampled.sum(axis=2)).sum(axis=1)
    replicates = _kappa(np.trace(resampled, axis1=1, axis2=2), expected)
    value = float(cohens_kappa(tables.sum(axis=0), return_results=False))
    return bootstrap.with_interval(value, replicates, len(tables))


def self_agreement(counts: FloatArray, tasks: IntArray, trials: int) -> SelfAgreement:
    """The noise ceiling: how far one model agrees with itself when it meets the same case again.

    `counts` [cases, categories] holds the outcomes of a case's scored trials, `tasks` [cases] its task. The
    probability that `trials` trials, drawn without replacement, have the same outcome is
    sum over outcomes of C(count, trials) / C(n, trials); its mean over the cases is the rate. With
    `trials` = number of agents it is comparable to the all-agree rate between agents.
    """
    n = counts.sum(axis=1)
    enough = n >= trials
    kept = np.delete(counts[enough], NO_OUTCOME, axis=1)
    same = comb(kept, trials).sum(axis=1) / comb(n[enough], trials)
    # Tasks without a case that counts must not appear as tasks of size 0.
    dense = np.unique(tasks[enough], return_inverse=True)[1]
    rate = proportion(per_task(same, dense), per_task(np.ones(len(dense)), dense))
    if rate.value is None:
        rate = Estimate(None, None, f"no case has {trials} scored trials")
    return SelfAgreement(trials, int(enough.sum()), int((~enough).sum()), rate)


def within_case_entropy(grid: Grid, tasks: IntArray, categories: int) -> FloatArray:
    """Per task, the mean over its conversations of the entropy in bits of the agents' categories: [tasks].

    0 when all agents always agree; at most log2 of the number of agents.
    """
    bits = entropy_bits(_one_hot(grid, categories).sum(axis=1))
    mean: FloatArray = per_task(bits, tasks) / per_task(np.ones(len(grid)), tasks)
    return mean


def _one_hot(grid: Grid, categories: int) -> FloatArray:
    """[conversations, agents] -> [conversations, agents, categories]."""
    return np.eye(categories)[grid]


def _undefined(counts: FloatArray) -> str:
    """Why kappa is undefined for counts [conversations, categories]; "" when it is defined."""
    if not len(counts):
        return "no matched conversations"
    if np.count_nonzero(counts.sum(axis=0)) == 1:
        return "all units have the same category, so agreement by chance is certain and kappa undefined"
    return ""


def _kappa(observed: FloatArray, expected: FloatArray) -> FloatArray:
    """(observed - expected) / (1 - expected), NaN where chance agreement is certain."""
    possible = 1.0 - expected
    undefined = np.full_like(expected, np.nan)
    return np.divide(observed - expected, possible, out=undefined, where=possible > 1e-12)
