"""The part of report.json about the agents together: how far they agree on the same cases."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np

from policysweep.report import agreement
from policysweep.report.agreement import AllAgree, Grid
from policysweep.report.coverage import Coverage
from policysweep.report.figures import Json, estimate_json, interval_json
from policysweep.report.outcomes import COARSE, COARSE_KEYS, KEYS, NO_OUTCOME
from policysweep.report.per_agent import Settings
from policysweep.report.statistics import Estimate, IntArray, entropy_bits
from policysweep.report.tally import Tallies, by_task

_ONE_AGENT = "it needs at least two agents"
_MATCHED = "planned conversations have a scored unit of each agent"


def agreement_section(tallies: Tallies, trials: int, settings: Settings) -> Json:
    """Agreement between the agents, of each pair, of each agent with itself, and the entropy of the tasks."""
    names = list(tallies.agents)
    grid, tasks, task_ids = tallies.matched(names)
    planned = max((tally.planned for tally in tallies.agents.values()), default=0)
    matched = Coverage(len(grid), planned, _MATCHED)
    withheld = matched.withheld(settings.min_coverage) if len(names) > 1 else _ONE_AGENT
    coarse = np.array(COARSE, dtype=np.int8)[grid]
    return {
        "agents": names,
        "matched": {"conversations": matched.scored, "planned": matched.planned, "coverage": matched.share},
        "withheld": withheld or None,
        "all_agree": _all_agree(grid, tasks, len(KEYS), withheld, settings),
        "coarse_all_agree": _all_agree(coarse, tasks, len(COARSE_KEYS), withheld, settings),
        "fleiss_kappa": estimate_json(
            Estimate(None, None, withheld)
            if withheld
            else agreement.fleiss(grid, tasks, len(KEYS), settings.seed)
        ),
        "pairwise": [_pair(tallies, first, second, settings) for first, second in combinations(names, 2)],
        "self": {name: _with_itself(tallies, name, trials, settings) for name in names} if trials > 1 else {},
        "tasks": _tasks(tallies, grid, tasks, task_ids),
    }


def _all_agree(grid: Grid, tasks: IntArray, categories: int, withheld: str, settings: Settings) -> Json:
    if withheld:
        names = ("n", "agreed", "rate", "interval", "bootstrap", "chance", "without_outcome")
        return dict.fromkeys(names)
    found: AllAgree = agreement.all_agree(grid, tasks, categories, settings.seed)
    return {
        "n": found.n,
        "agreed": found.agreed,
        "rate": found.rate.value,
        "interval": interval_json(found.rate.interval),
        "bootstrap": interval_json(found.resampled.interval),
        "chance": found.chance,
        "without_outcome": found.without_outcome,
    }


def _pair(tallies: Tallies, first: str, second: str, settings: Settings) -> Json:
    grid, tasks, _ = tallies.matched([first, second])
    planned = max(tallies.agents[name].planned for name in (first, second))
    coverage = Coverage(len(grid), planned, _MATCHED)
    withheld = coverage.withheld(settings.min_coverage)
    kappa = Estimate(None, None, withheld)
    if not withheld:
        kappa = agreement.cohen(grid, tasks, len(KEYS), settings.seed)
    return {
        "agents": [first, second],
        "n": len(grid),
        "coverage": coverage.share,
        "all_agree": _all_agree(grid, tasks, len(KEYS), withheld, settings),
        "cohen_kappa": estimate_json(kappa),
    }


def _with_itself(tallies: Tallies, name: str, trials: int, settings: Settings) -> list[Json]:
    """Agreement of two trials, of as many trials as there are agents, and of all trials."""
    tally = tallies.agents[name]
    withheld = Coverage(tally.scored, tally.planned).withheld(settings.min_coverage)
    counts, tasks = tallies.cases(name)
    rates = []
    for drawn in sorted({2, len(tallies.agents), trials} & set(range(2, trials + 1))):
        found = agreement.self_agreement(counts, tasks, drawn)
        rate = Estimate(None, None, withheld) if withheld else found.rate
        rates.append(
            {"trials": drawn, "cases": found.cases, "left_out": found.left_out, **estimate_json(rate)}
        )
    return rates


def _tasks(tallies: Tallies, grid: Grid, tasks: IntArray, task_ids: tuple[str, ...]) -> Json:
    """Entropy of each task's outcomes: over all scored units, and between agents on the same case."""
    everything: Counter[tuple[str, int]] = Counter()
    for tally in tallies.agents.values():
        everything.update(tally.categories)
    counts, all_ids = by_task(everything)
    overall = dict(zip(all_ids, entropy_bits(counts), strict=True))
    between = dict(zip(task_ids, agreement.within_case_entropy(grid, tasks, len(KEYS)), strict=True))
    return {
        task: {
            "units": int(units),
            "no_outcome": int(row[NO_OUTCOME]),
            "entropy_bits": float(overall[task]),
            "between_agents_bits": float(between[task]) if task in between else None,
        }
        for task, row, units in zip(all_ids, counts, counts.sum(axis=1), strict=True)
    }
