"""How the outcomes of the same conversations changed between two runs.

Two things are told apart. *Changed* conversations ended differently; many do so by chance, since models do
not answer twice alike, and `noise` says how many do between two trials of one run. Whether the *distribution*
over outcomes moved is tested: if the runs do not differ, it does not matter which of them is called the
second, so the change of the counts is compared with those that result when the two are swapped at random, all
conversations of a task together because they are not independent. McNemar's test and Stuart's and Maxwell's
ask the same of independent pairs.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from policysweep.report.figures import Json, difference_json, interval_json
from policysweep.report.means import ColumnMeans
from policysweep.report.outcomes import COARSE, COARSE_KEYS, KEYS
from policysweep.report.paired import paired_differences
from policysweep.report.per_agent import Settings
from policysweep.report.statistics import FloatArray, IntArray, per_task, proportion
from policysweep.report.units import Units

FLIPS = 9999
"""Random swaps of the two runs."""


def outcomes_section(
    first: Units, second: Units, ours: IntArray, theirs: IntArray, withheld: str, settings: Settings
) -> Json:
    """`ours` and `theirs` are the positions of matched units; figures other than counts can be withheld."""
    before, after, tasks = first.category[ours], second.category[theirs], first.task[ours]
    changed = before != after
    scenarios = {first.scenario[unit] for unit in ours[changed]}
    fold = np.array(COARSE)
    return {
        "changed": _changed(changed, tasks, withheld),
        "scenarios_changed": len(scenarios),
        "coarse_changed": _changed(fold[before] != fold[after], tasks, withheld),
        "noise": [_noise(units, rows) for units, rows in ((first, ours), (second, theirs))],
        "from_to": _from_to(before, after),
        "shares": None if withheld else _shares(before, after, tasks, KEYS),
        "coarse_shares": None if withheld else _shares(fold[before], fold[after], tasks, COARSE_KEYS),
        "p_value": None if withheld else swap_test(before, after, tasks, len(KEYS), settings.seed),
        "coarse_p_value": None
        if withheld
        else swap_test(fold[before], fold[after], tasks, len(COARSE_KEYS), settings.seed),
    }


def swap_test(before: IntArray, after: IntArray, tasks: IntArray, number: int, seed: int) -> float | None:
    """p-value of the hypothesis that the two runs have the same distribution over `number` categories.

    The statistic is the sum of the squared changes of the counts. None when no task changes a count, since
    there is nothing to swap.
    """
    kinds = np.eye(number)
    moved = per_task(kinds[after] - kinds[before], tasks)
    moved = moved[np.any(moved != 0.0, axis=1)]
    if not len(moved):
        return None
    signs = np.random.default_rng(seed).integers(0, 2, size=(FLIPS, len(moved))) * 2.0 - 1.0
    swapped = ((signs @ moved) ** 2).sum(axis=1)
    # Counts are whole numbers, so equal statistics are equal exactly.
    at_least = int((swapped >= (moved.sum(axis=0) ** 2).sum()).sum())
    return (at_least + 1) / (FLIPS + 1)


def _changed(changed: np.typing.NDArray[np.bool_], tasks: IntArray, withheld: str) -> Json:
    n, number = len(changed), int(changed.sum())
    if withheld or not n:
        return {"n": n, "changed": number, "share": None, "interval": None}
    dense = np.unique(tasks, return_inverse=True)[1]
    rate = proportion(per_task(changed, dense), per_task(np.ones(n), dense))
    return {"n": n, "changed": number, "share": rate.value, "interval": interval_json(rate.interval)}


def _noise(units: Units, rows: IntArray) -> float | None:
    """The chance that two trials of a case in one run end differently, over the cases with several trials."""
    cases: dict[tuple[str, int], Counter[int]] = {}
    for unit in rows.tolist():
        case = units.scenario[unit], int(units.persona[unit])
        cases.setdefault(case, Counter())[int(units.category[unit])] += 1
    shares = [
        1.0 - sum(c * (c - 1) for c in counts.values()) / (n * (n - 1))
        for counts in cases.values()
        if (n := counts.total()) > 1
    ]
    return float(np.mean(shares)) if shares else None


def _from_to(before: IntArray, after: IntArray) -> list[Json]:
    """Conversations by outcome in the first and the second run, the unchanged ones as well."""
    counts = Counter(zip(before.tolist(), after.tolist(), strict=True))
    return [
        {"from": KEYS[one], "to": KEYS[other], "conversations": counts[one, other]}
        for one, other in sorted(counts)
    ]


def _shares(before: IntArray, after: IntArray, tasks: IntArray, keys: tuple[str, ...]) -> Json:
    """Share of each outcome in both runs, and the difference; p-values adjusted over the outcomes."""
    kinds: FloatArray = np.eye(len(keys))
    means = ColumnMeans(kinds[after] - kinds[before], tasks)
    tested = paired_differences(means, dict(zip(keys, kinds, strict=True)))
    return {
        key: {
            "runs": [float((found == column).mean()) for found in (before, after)],
            "difference": difference_json(tested[key], tested[key].mean, ""),
        }
        for column, key in enumerate(keys)
    }
