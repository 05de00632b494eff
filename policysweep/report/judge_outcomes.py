"""The outcome that a judge read off a conversation, held against the one that was recorded."""

from __future__ import annotations

from collections import Counter

import numpy as np

from policysweep.report import agreement
from policysweep.report.coverage import Coverage
from policysweep.report.figures import Json, estimate_json, interval_json
from policysweep.report.judged import Judged
from policysweep.report.outcomes import KEYS, NO_OUTCOME
from policysweep.report.per_agent import Settings
from policysweep.report.scores import reason_name
from policysweep.report.statistics import Estimate, IntArray, per_task, proportion


def outcome_section(judged: Judged, judge: str, agent: str, settings: Settings) -> Json:
    """Agreement and confusion of recorded and judged outcome over an agent's scored units.

    "No outcome" is an answer on both sides: a judge that sees nothing settled agrees with a unit that the
    agent's fault ended before any outcome.
    """
    number = judged.units.agents.index(agent)
    notes = {
        unit: note for unit, note in judged.outcomes(judge).items() if judged.units.agent[unit] == number
    }
    seen = {unit: category for unit, (category, reason) in notes.items() if not reason}
    units = np.array(list(seen), dtype=np.int64)
    grid = np.stack([judged.units.category[units], np.array(list(seen.values()), dtype=np.int64)], axis=1)
    coverage = Coverage(len(units), judged.planned[agent], "planned units have a judged outcome")
    reason = coverage.withheld(settings.min_coverage)
    return {
        "n": len(units),
        "coverage": coverage.share,
        "agreed": int((grid[:, 0] == grid[:, 1]).sum()),
        **_agreement(grid, judged.units.task[units], reason, settings),
        "absent": _absent(Counter(reason for _, reason in notes.values() if reason)),
        "confusion": _confusion(grid),
    }


def _agreement(grid: IntArray, tasks: IntArray, withheld: str, settings: Settings) -> Json:
    rate, kappa = Estimate(None, None, withheld), Estimate(None, None, withheld)
    if not withheld:
        # Tasks without a judged unit must not appear as tasks of size 0.
        tasks = np.unique(tasks, return_inverse=True)[1]
        same = per_task(grid[:, 0] == grid[:, 1], tasks)
        rate = proportion(same, per_task(np.ones(len(tasks)), tasks))
        kappa = agreement.cohen(grid.astype(np.int8), tasks, len(KEYS), settings.seed)
    return {
        "rate": rate.value,
        "interval": interval_json(rate.interval),
        "reason": rate.reason or None,
        "cohen_kappa": estimate_json(kappa),
    }


def _absent(counts: Counter[int]) -> dict[str, int]:
    return {reason_name(reason): counts[reason] for reason in sorted(counts)}


def _confusion(grid: IntArray) -> list[Json]:
    """Units by recorded and judged outcome; None is no outcome."""
    pairs = Counter((recorded, judged) for recorded, judged in grid.tolist())
    return [
        {"recorded": _name(recorded), "judged": _name(judged), "units": pairs[recorded, judged]}
        for recorded, judged in sorted(pairs)
    ]


def _name(category: int) -> str | None:
    return None if category == NO_OUTCOME else KEYS[category]
