"""pass^k of an arm on a group of tasks, with what it rests on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from policysweep.report.coverage import Coverage
from policysweep.report.figures import Json, estimate_json
from policysweep.report.statistics import Estimate, FloatArray, IntArray
from policysweep.report.streams import estimates
from policysweep.report.streams.arms import CURVE, DomainTasks
from policysweep.report.streams.grid import MISSING, PASSED, Cube

MIN_COVERAGE = 0.95
"""Least share of the planned trials that a figure is given for."""


def counted_trials(cube: Cube) -> tuple[IntArray, IntArray]:
    """Passes and scored trials of each seed and task, [seeds, tasks] each."""
    return (cube == PASSED).sum(axis=1), (cube != MISSING).sum(axis=1)


def pass_table(cube: Cube, k: int) -> FloatArray:
    """pass^k of each seed and task, NaN where fewer than k trials are scored."""
    return estimates.pass_hat_k(*counted_trials(cube), k)


def coverage(cube: Cube) -> Coverage:
    """Which part of the planned trials is scored."""
    return Coverage(int(np.count_nonzero(cube != MISSING)), cube.size, "planned trials are scored")


def coverage_json(found: Coverage) -> Json:
    """A coverage."""
    return {"scored": found.scored, "planned": found.planned, "coverage": found.share}


def group_json(
    rewards: Cube, strict: Cube, tasks: DomainTasks, columns: Sequence[int], minimum: float
) -> Json:
    """pass^1 to pass^k of some tasks; without figures where too few trials are scored."""
    held, strictly = rewards[:, :, columns], strict[:, :, columns]
    covered = coverage(held)
    reason = covered.withheld(minimum) if columns else "there are no such tasks"
    families = tasks.families(columns)
    return {
        **coverage_json(covered),
        "tasks": len(columns),
        "families": len(np.unique(families)),
        "withheld": reason or None,
        "passed": int(np.count_nonzero(held == PASSED)),
        "pass": []
        if reason
        else [_pass_json(held, strictly, families, k) for k in range(1, held.shape[1] + 1)],
    }


def _pass_json(held: Cube, strictly: Cube, families: IntArray, k: int) -> Json:
    passes, trials = counted_trials(held)
    values = estimates.pass_hat_k(passes, trials, k)
    everything = np.full_like(trials, held.shape[1])
    return {
        "k": k,
        **estimate_json(estimates.estimate(values, families)),
        "left_out": int(np.isnan(values).sum()),
        "missing_as_failure": estimates.mean(estimates.pass_hat_k(passes, everything, k)),
        "strict": estimates.mean(pass_table(strictly, k)),
        "by_seed": [None if np.isnan(each) else float(each) for each in estimates.seed_means(values)],
    }


def curve_json(rewards: Cube, tasks: DomainTasks, minimum: float) -> list[Json]:
    """pass^1 at each place of the families: how an arm does on the parent and on each sister after it."""
    return [_place_json(rewards, tasks, place, name, minimum) for place, name in enumerate(CURVE)]


def _place_json(rewards: Cube, tasks: DomainTasks, place: int, name: str, minimum: float) -> Json:
    columns = tasks.place(place)
    covered = coverage(rewards[:, :, columns])
    reason = covered.withheld(minimum) if columns else "there are no such tasks"
    found = Estimate(None, None, reason)
    if not reason:
        found = estimates.estimate(pass_table(rewards[:, :, columns], 1), tasks.families(columns))
    return {"place": name, **estimate_json(found), **coverage_json(covered), "tasks": len(columns)}
