"""Verdicts -> an evaluation record of the public layout: null where a score is absent, with the reason."""

from __future__ import annotations

from typing import Any

import pytest

from policysweep.interop.dripr.evaluation import DIMENSIONS, NOT_JUDGED, TURN_METRICS, evaluation_record
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2, run_pb2

from .samples import verdict

UNIT = "ab" * 16


def score(
    metric: str, value: float | None, turn: int | None = None, side: ep.Role.ValueType = ep.ROLE_AGENT
) -> judge_pb2.Score:
    found = judge_pb2.Score(metric=metric, subject=side, value=value, message_index=turn)
    if value is None:
        found.absent_reason = judge_pb2.ABSENT_REASON_OUT_OF_SCALE
        found.absent_detail = "7"
    return found


def everything(**absent: None) -> list[judge_pb2.Score]:
    """Every metric: 4 for the agent, 2 for the customer's turns; those of `absent` without a value."""
    found = []
    for metric in (metric for metrics in DIMENSIONS.values() for metric in metrics):
        for side in TURN_METRICS.get(metric, {"": ep.ROLE_AGENT}).values():
            value = None if metric in absent else 2.0 if side == ep.ROLE_CUSTOMER else 4.0
            found.append(score(metric, value, 1 if metric in TURN_METRICS else None, side))
    return found


def variant(*verdicts: run_pb2.VerdictRecord) -> Any:
    return evaluation_record("s_r00000", "gpt", verdicts)["variants"][0]


def test_it_has_the_25_metrics_under_their_public_names() -> None:
    record = evaluation_record("s_r00000", "gpt", [verdict(UNIT, "all", *everything())])
    assert (record["transcript_id"], record["model"], record["num_variants"]) == ("s_r00000", "gpt", 1)
    [found] = record["variants"]
    metrics = [key for each in found["dimension_scores"].values() for key in each["sub_metrics"]]
    assert len(metrics) == len(set(metrics)) == 25
    assert list(found["dimension_scores"]) == list(DIMENSIONS)
    assert found["absent_reasons"] == {}
    dialogue = found["dimension_scores"]["Dialogue/Conversation Quality"]
    assert dialogue["sub_metrics"]["verbosity"] == 4
    assert dialogue["sub_metrics"]["consistency_drift"] == {"agent": [4], "customer": [2]}
    assert dialogue["overall_score"] == pytest.approx((6 * 4 + 2 * 3) / 8)
    assert found["dimension_scores"]["Policy Adherence"]["sub_metrics"]["policy_support_per_turn"] == {
        "agent": [4]
    }


def test_an_absent_score_is_null_with_its_reason_and_its_dimension_has_no_score() -> None:
    found = variant(verdict(UNIT, "all", *everything(verbosity=None)))
    dialogue = found["dimension_scores"]["Dialogue/Conversation Quality"]
    assert dialogue["sub_metrics"]["verbosity"] is None
    assert dialogue["overall_score"] is None
    assert found["absent_reasons"] == {"verbosity": "OUT_OF_SCALE: 7"}
    assert found["dimension_scores"]["Policy Adherence"]["overall_score"] == 4


def test_an_absent_turn_is_left_out_of_its_list_and_told() -> None:
    turns = [
        score("per_turn_contradiction_score", 5, 1),
        score("per_turn_contradiction_score", None, 3),
        score("per_turn_contradiction_score", 1, 2, ep.ROLE_CUSTOMER),
    ]
    found = variant(verdict(UNIT, "turn_level", *turns))
    values = found["dimension_scores"]["Dialogue/Conversation Quality"]["sub_metrics"]
    assert values["per_turn_contradiction_score"] == {"agent": [5], "customer": [1]}
    assert found["absent_reasons"]["per_turn_contradiction_score.agent[3]"] == "OUT_OF_SCALE: 7"


def test_what_no_panel_judged_is_told_as_such() -> None:
    found = variant(verdict(UNIT, "dialogue", score("verbosity", 3)))
    assert len(found["absent_reasons"]) == 24
    assert set(found["absent_reasons"].values()) == {NOT_JUDGED}
    assert found["dimension_scores"]["Interest Alignment"] == {
        "sub_metrics": {"customer_goal_alignment": None, "interest_alignment_company": None},
        "overall_score": None,
    }


def test_the_last_verdict_on_a_panel_speaks() -> None:
    late = verdict(UNIT, "dialogue", score("verbosity", 5), at=9)
    early = verdict(UNIT, "dialogue", score("verbosity", 1), at=3)
    found = variant(late, early)
    assert found["dimension_scores"]["Dialogue/Conversation Quality"]["sub_metrics"]["verbosity"] == 5
    assert found["raw_judge_outputs"]["dialogue"]["scores"][0]["value"] == 5


def test_rehearsal_is_marked() -> None:
    record = evaluation_record("s", "gpt", [verdict(UNIT, rehearsal=True), verdict(UNIT, "interest")])
    assert record["policysweep"] == {"unit_id": UNIT, "rehearsal": True}
