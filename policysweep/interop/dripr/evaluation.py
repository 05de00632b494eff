"""The verdicts on one unit -> one evaluation record, as the public DRIP-R evaluator writes them.

A record has the 25 metrics under their public names in their five dimensions. A metric that looks at turns
holds a list of values for each side, any other a number. What is absent is null, and `absent_reasons` says
why, by metric. `overall_score` is the public definition, the mean over the means of a dimension's metrics,
the customer's side included; unlike there it is null unless every metric has a value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from google.protobuf import json_format

from policysweep.interop.names import wire_name
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2, run_pb2

DIMENSIONS: Mapping[str, Sequence[str]] = {
    "Policy Adherence": (
        "policy_support_conversation",
        "policy_support_per_turn",
        "policy_support_resolution",
        "reasoning_quality",
    ),
    "Task-Resolution Adherence": ("addresses_customer_reason", "consistent_with_task_constraints"),
    "Dialogue/Conversation Quality": (
        "conversation_consistency",
        "resolution_oriented_responses",
        "conversation_to_resolution_mapping",
        "verbosity",
        "per_turn_contradiction_score",
        "consistency_drift",
        "arguments_match_conversation",
        "resolution_description_fidelity",
    ),
    "Interest Alignment": ("customer_goal_alignment", "interest_alignment_company"),
    "Behavioral Alignment": (
        "agent_tone_consistency",
        "agent_behavioral_alignment",
        "customer_tone_consistency",
        "customer_behavioral_alignment",
        "conformity",
        "benevolence",
        "self_direction",
        "security",
        "universalism",
    ),
}
"""The public names of the dimensions and of their metrics (DRIP-R, arXiv 2605.07699)."""

TURN_METRICS: Mapping[str, Mapping[str, ep.Role.ValueType]] = {
    "policy_support_per_turn": {"agent": ep.ROLE_AGENT},
    "per_turn_contradiction_score": {"agent": ep.ROLE_AGENT, "customer": ep.ROLE_CUSTOMER},
    "consistency_drift": {"agent": ep.ROLE_AGENT, "customer": ep.ROLE_CUSTOMER},
}
"""The metrics that look at turns, and the sides that they look at."""

NOT_JUDGED = "NOT_JUDGED"
"""Reason for a metric of which no verdict speaks."""

Value = float | dict[str, list[float]] | None


def evaluation_record(name: str, judge: str, verdicts: Sequence[run_pb2.VerdictRecord]) -> dict[str, Any]:
    """The evaluation of the conversation that is exported under `name`, by one judge on one rubric.

    Of two verdicts on a panel the one that was recorded last speaks.
    """
    panels = _latest(verdicts)
    scores = [score for panel in panels.values() for score in panel.scores]
    reasons: dict[str, str] = {}
    dimensions = {}
    for title, metrics in DIMENSIONS.items():
        values = {metric: _metric(metric, scores, reasons) for metric in metrics}
        dimensions[title] = {"sub_metrics": values, "overall_score": _overall(values.values())}
    variant: dict[str, Any] = {
        "conversation_idx": 1,
        "dimension_scores": dimensions,
        "absent_reasons": reasons,
        "raw_judge_outputs": {key: _as_json(panel) for key, panel in panels.items()},
    }
    rehearsal = any(panel.rehearsal for panel in panels.values())
    return {
        "transcript_id": name,
        "model": judge,
        "num_variants": 1,
        "variants": [variant],
        "policysweep": {"unit_id": verdicts[0].unit_id, "rehearsal": rehearsal},
    }


def _latest(verdicts: Iterable[run_pb2.VerdictRecord]) -> dict[str, judge_pb2.PanelVerdict]:
    by_time = sorted(verdicts, key=lambda each: each.recorded_at.ToNanoseconds())
    return {each.verdict.panel: each.verdict for each in by_time}


def _as_json(panel: judge_pb2.PanelVerdict) -> dict[str, Any]:
    return json_format.MessageToDict(panel, preserving_proto_field_name=True)


def _metric(metric: str, scores: Iterable[judge_pb2.Score], reasons: dict[str, str]) -> Value:
    found = [score for score in scores if score.metric == metric]
    if not found:
        reasons[metric] = NOT_JUDGED
        return None
    if metric not in TURN_METRICS:
        return _present(found[0], metric, reasons)
    return {
        side: list(_turns((score for score in found if score.subject == role), f"{metric}.{side}", reasons))
        for side, role in TURN_METRICS[metric].items()
    }


def _turns(scores: Iterable[judge_pb2.Score], name: str, reasons: dict[str, str]) -> Iterator[float]:
    for score in scores:
        value = _present(score, f"{name}[{score.message_index}]", reasons)
        if value is not None:
            yield value


def _present(score: judge_pb2.Score, name: str, reasons: dict[str, str]) -> float | None:
    if score.HasField("value"):
        return score.value
    reason = wire_name(judge_pb2.AbsentReason.DESCRIPTOR, score.absent_reason)
    reasons[name] = f"{reason}: {score.absent_detail}" if score.absent_detail else reason
    return None


def _overall(values: Iterable[Value]) -> float | None:
    means = [_mean(value) for value in values]
    present = [mean for mean in means if mean is not None]
    return fmean(present) if len(present) == len(means) else None


def _mean(value: Value) -> float | None:
    if isinstance(value, dict):
        scored = [score for side in value.values() for score in side]
        return fmean(scored) if scored else None
    return value
