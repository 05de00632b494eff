"""An arm held against another one that met the same tasks: no memory, the oracle, or another regime."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from policysweep.report.coverage import Coverage
from policysweep.report.figures import Json, estimate_json
from policysweep.report.statistics import Estimate, FloatArray, IntArray
from policysweep.report.streams import estimates
from policysweep.report.streams.arms import DomainTasks
from policysweep.report.streams.grid import FAILED, MISSING, PASSED, Cube, Pairs, pairs
from policysweep.report.streams.passes import coverage, coverage_json, pass_table


def where_all(*tables: FloatArray) -> list[FloatArray]:
    """The tables, NaN wherever one of them is: figures on the same seeds and tasks."""
    undefined = np.isnan(tables).any(axis=0)
    return [np.where(undefined, np.nan, table) for table in tables]


def matched(*cubes: Cube) -> Coverage:
    """Which part of the planned trials is scored in all arms that are compared."""
    present = np.logical_and.reduce([cube != MISSING for cube in cubes])
    return Coverage(int(np.count_nonzero(present)), present.size, "planned trials are scored on both sides")


def difference_json(cube: Cube, other: Cube, families: IntArray, minimum: float) -> Json:
    """pass^1 to pass^k minus that of another arm, paired, and the pairs of trials behind it."""
    covered = matched(cube, other)
    reason = covered.withheld(minimum)
    ks = range(1, cube.shape[1] + 1)
    return {
        **coverage_json(covered),
        "withheld": reason or None,
        "pairs": pairs_json(pairs(cube, other)),
        "pass": []
        if reason
        else [{"k": k, **estimate_json(difference(cube, other, families, k))} for k in ks],
    }


def pairs_json(found: Pairs) -> Json:
    """Counts of pairs."""
    return {"n": found.n, "both": found.both, "won": found.won, "lost": found.lost, "neither": found.neither}


def difference(cube: Cube, other: Cube, families: IntArray, k: int) -> Estimate:
    """pass^k minus that of another arm, over the seeds and tasks where both are defined."""
    own, others = where_all(pass_table(cube, k), pass_table(other, k))
    return estimates.estimate(own - others, families)


def gap_closed(cube: Cube, none: Cube, oracle: Cube, families: IntArray, k: int) -> Estimate:
    """(arm - no memory) / (oracle - no memory) in pass^k, over the seeds and tasks where all are defined.

    Undefined when the gap below the line may be 0: when it is not positive, or its interval touches 0.
    """
    own, low, high = where_all(*(pass_table(each, k) for each in (cube, none, oracle)))
    gap = estimates.estimate(high - low, families)
    if gap.value is None:
        return Estimate(None, None, gap.reason)
    if gap.value <= 0 or (gap.interval and gap.interval[0] <= 0):
        bounds = f" [{gap.interval[0]:.2f}, {gap.interval[1]:.2f}]" if gap.interval else ""
        return Estimate(
            None,
            None,
            f"the oracle is not shown to do better than no memory: a gap of {gap.value:.2f}{bounds}",
        )
    return estimates.ratio(own - low, high - low, families)


def gap_closed_json(cubes: Sequence[Cube], families: IntArray, minimum: float) -> Json:
    """The share of the gap closed for each k. `cubes` are those of the arm, no memory and the oracle."""
    covers = [coverage(cube) for cube in cubes]
    reason = next((why for each in covers if (why := each.withheld(minimum))), "")
    ks = range(1, cubes[0].shape[1] + 1)
    return {
        "withheld": reason or None,
        "pass": []
        if reason
        else [{"k": k, **estimate_json(gap_closed(cubes[0], cubes[1], cubes[2], families, k))} for k in ks],
    }


def over_generalisation_json(
    cube: Cube, none: Cube, tasks: DomainTasks, columns: Sequence[int], minimum: float
) -> Json:
    """How often an arm fails a control that no memory passes, over pairs of trials.

    A control is solved by whoever keeps to the written policy. Failing it where no memory passes shows that
    a lesson was carried too far, or that the memory does harm in another way.
    """
    own, base = cube[:, :, columns], none[:, :, columns]
    covered, found = matched(own, base), pairs(own, base)
    reason = covered.withheld(minimum) if columns else "there are no controls"
    rate = Estimate(None, None, reason)
    if not reason:
        rate = estimates.estimate(_lost_table(own, base), tasks.families(columns))
    return {
        **coverage_json(covered),
        "pairs": pairs_json(found),
        "rate": estimate_json(rate),
        "of_passed_by_none": found.lost / passed
        if (passed := found.lost + found.both) and not reason
        else None,
    }


def _lost_table(cube: Cube, other: Cube) -> FloatArray:
    """Share of the pairs of each seed and task that the arm loses, NaN where there is none."""
    paired = ((cube != MISSING) & (other != MISSING)).sum(axis=1)
    lost = ((cube == FAILED) & (other == PASSED)).sum(axis=1)
    return np.where(paired > 0, lost / np.maximum(paired, 1), np.nan)
