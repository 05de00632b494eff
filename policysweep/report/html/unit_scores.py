"""The scores of one unit by dimension, for a reader who looks for conversations by their score.

Means over agents are the business of `scores.py`; this is the same rule for a single unit: turns are averaged
first, then the metrics of a dimension that look at the agent, then the judges. A metric that does not apply
is left out; a dimension that lacks a score for any other reason has none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from statistics import fmean

from policysweep.report.criteria import Criteria, Side
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2, run_pb2

_Values = Mapping[str, list[float | None]]


def unit_scores(verdicts: Iterable[run_pb2.VerdictRecord], criteria: Criteria) -> dict[str, float]:
    """Mean score of the agent, 1 to 5, by dimension; two decimals."""
    by_judge: defaultdict[str, defaultdict[str, list[float | None]]] = defaultdict(lambda: defaultdict(list))
    for record in verdicts:
        if criteria.panels.get(record.verdict.panel) == record.verdict.panel_digest:
            for score in record.verdict.scores:
                _add(by_judge[record.judge], score)
    means = {}
    for dimension, metrics in _members(criteria).items():
        found = [_mean(values, metrics) for values in by_judge.values()]
        if present := [mean for mean in found if mean is not None]:
            means[dimension] = round(fmean(present), 2)
    return means


@lru_cache(maxsize=1)
def _members(criteria: Criteria) -> Mapping[str, Sequence[str]]:
    """Metrics of each dimension that look at the agent; a report asks for one rubric's, once a unit."""
    members = criteria.by_dimension(Side.AGENT)
    return {
        dimension: [criteria.metrics[column] for column in columns] for dimension, columns in members.items()
    }


def _add(values: defaultdict[str, list[float | None]], score: judge_pb2.Score) -> None:
    if score.subject != ep.ROLE_AGENT or score.absent_reason == judge_pb2.ABSENT_REASON_NOT_APPLICABLE:
        return
    values[score.metric].append(score.value if score.HasField("value") else None)


def _mean(values: _Values, metrics: Iterable[str]) -> float | None:
    """Mean over the metrics; None when there is none, or when one lacks a score."""
    means = []
    for metric in metrics:
        present = [value for value in values.get(metric, ()) if value is not None]
        if present:
            means.append(fmean(present))
        elif metric in values:
            return None
    return fmean(means) if means else None
