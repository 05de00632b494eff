"""Figures as they stand in report.json. A figure that is not given is None beside its n and the reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from policysweep.report.criteria import HIGHEST, LOWEST, Criteria
from policysweep.report.means import Mean
from policysweep.report.paired import PairedDifference, paired_differences
from policysweep.report.scores import Missing, ScoreTable
from policysweep.report.statistics import Estimate, Interval

Json = dict[str, Any]


def interval_json(interval: Interval | None) -> list[float] | None:
    """[low, high]."""
    return list(interval) if interval else None


def estimate_json(estimate: Estimate) -> Json:
    """Value, interval and, where either is absent, the reason."""
    return {
        "value": estimate.value,
        "interval": interval_json(estimate.interval),
        "reason": estimate.reason or None,
    }


def mean_json(mean: Mean) -> Json:
    """A mean or a difference."""
    return {
        "mean": mean.value,
        "standard_error": mean.standard_error,
        "interval": interval_json(mean.interval),
        "n": mean.n,
        "tasks": mean.tasks,
        "reason": mean.reason or None,
    }


def level_json(mean: Mean) -> Json:
    """A mean of scores: its interval ends where the scale does."""
    figure = mean_json(mean)
    if mean.interval:
        figure["interval"] = [max(mean.interval[0], LOWEST), min(mean.interval[1], HIGHEST)]
    return figure


def withheld(mean: Mean, reason: str) -> Mean:
    """The mean without its value when there is a reason; else as it is."""
    return Mean(None, None, None, mean.n, mean.tasks, reason) if reason else mean


def partial(missing: Sequence[Missing], metrics: int) -> str:
    """Why a dimension has no score; "" when none of its metrics is missing."""
    return f"partial: {len(missing)} of {metrics} metrics are missing" if missing else ""


def metric_levels(
    table: ScoreTable, columns: Iterable[int], criteria: Criteria, minimum: float
) -> dict[str, Json]:
    """The mean of each metric with its coverage, withheld below the least one."""
    return {
        criteria.metrics[column]: {
            **level_json(withheld(table.means.column(column), table.withheld(column, minimum))),
            "coverage": table.coverage(column).share,
            "not_applicable": int(table.not_applicable[column]),
        }
        for column in columns
    }


def dimension_levels(
    table: ScoreTable, members: Mapping[str, Sequence[int]], criteria: Criteria, minimum: float
) -> dict[str, Json]:
    """The mean over the means of each dimension's metrics: given when all of them are."""
    found = {}
    for dimension, columns in members.items():
        missing = table.missing(columns, criteria, minimum)
        mean = withheld(table.combined(columns, criteria), partial(missing, len(columns)))
        found[dimension] = {**level_json(mean), **_rests_on(table, columns, missing, criteria)}
    return found


def metric_differences(
    table: ScoreTable, columns: Iterable[int], criteria: Criteria, minimum: float
) -> dict[str, Json]:
    """The paired difference of each metric, adjusted over those that are given."""
    reasons = {column: table.withheld(column, minimum) for column in columns}
    given = {
        criteria.metrics[column]: criteria.weights([column])
        for column, reason in reasons.items()
        if not reason
    }
    tested = paired_differences(table.means, given)
    return {
        criteria.metrics[column]: {
            **difference_json(tested.get(criteria.metrics[column]), table.means.column(column), reason),
            "coverage": table.coverage(column).share,
        }
        for column, reason in reasons.items()
    }


def dimension_differences(
    table: ScoreTable, members: Mapping[str, Sequence[int]], criteria: Criteria, minimum: float
) -> dict[str, Json]:
    """The paired difference of each dimension, adjusted over those that are given."""
    missing = {name: table.missing(columns, criteria, minimum) for name, columns in members.items()}
    given = {name: criteria.weights(members[name]) for name, lacks in missing.items() if not lacks}
    tested = paired_differences(table.means, given)
    return {
        name: {
            **difference_json(
                tested.get(name), table.combined(columns, criteria), partial(missing[name], len(columns))
            ),
            **_rests_on(table, columns, missing[name], criteria),
        }
        for name, columns in members.items()
    }


def difference_json(tested: PairedDifference | None, mean: Mean, reason: str) -> Json:
    """A difference with its p-values; without value when there is a reason."""
    return {
        **mean_json(withheld(mean, reason)),
        "p_value": tested.mean.p_value if tested else None,
        "p_holm": tested.p_holm if tested else None,
    }


def _rests_on(
    table: ScoreTable, columns: Sequence[int], missing: Sequence[Missing], criteria: Criteria
) -> Json:
    """What a dimension's figure rests on; its coverage is that of its least covered metric."""
    shares = [share for column in columns if (share := table.coverage(column).share) is not None]
    return {
        "coverage": min(shares, default=None),
        "metrics": [criteria.metrics[column] for column in columns],
        "missing": [{"metric": lacks.metric, "reason": lacks.reason} for lacks in missing],
    }
