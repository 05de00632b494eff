from __future__ import annotations

import json
from typing import Any

import pytest

from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2
from services.judge.answer import read_answer
from services.judge.score_sheet import ScoreSheet, score_sheet
from services.judge.verdict import fill_verdict

from .support import DRIP_R, GOALS, answer_to, episode, panel, reply, scores_by, sheet, unresolved


def verdict(of: ScoreSheet, *contents: Any) -> judge_pb2.PanelVerdict:
    found = judge_pb2.PanelVerdict()
    fill_verdict(found, of, [read_answer(reply(content), of) for content in contents])
    return found


def one(found: judge_pb2.PanelVerdict, metric: str) -> judge_pb2.Score:
    (score,) = [score for score in found.scores if score.metric == metric]
    return score


# ------------------------------------------------------------------ every metric once


@pytest.mark.parametrize(
    "of", [episode(), unresolved(), ep.Episode(messages=[ep.Message(role=ep.ROLE_TOOL)])]
)
def test_every_metric_of_a_panel_has_a_score_or_a_reason(of: ep.Episode) -> None:
    for each in DRIP_R.panels:
        asked = score_sheet(each, of, GOALS)
        found = verdict(asked, answer_to(asked))
        assert {score.metric for score in found.scores} == {metric.key for metric in each.metrics}
        assert all(score.HasField("value") != bool(score.absent_reason) for score in found.scores)
        assert len(scores_by(found)) == len(found.scores)


def test_subjects_tell_the_customers_turns_from_the_agents() -> None:
    asked = sheet("turn_level")
    found = scores_by(verdict(asked, answer_to(asked)))
    assert {(key, subject, turn) for key, subject, turn in found if key == "consistency_drift"} == {
        ("consistency_drift", ep.ROLE_AGENT, 3),
        ("consistency_drift", ep.ROLE_AGENT, 5),
        ("consistency_drift", ep.ROLE_CUSTOMER, 0),
        ("consistency_drift", ep.ROLE_CUSTOMER, 4),
    }


def test_what_does_not_apply_is_absent_for_that_reason() -> None:
    asked = score_sheet(panel("policy_resolution"), unresolved(), ())
    found = verdict(asked, answer_to(asked))
    absent = {score.metric for score in found.scores if score.absent_reason}
    assert absent == {
        "policy_support_resolution",
        "reasoning_quality",
        "addresses_customer_reason",
        "consistent_with_task_constraints",
    }
    assert {score.absent_reason for score in found.scores if score.absent_reason} == {
        judge_pb2.ABSENT_REASON_NOT_APPLICABLE
    }
    assert one(found, "policy_support_conversation").value == 4.0


def test_turn_metrics_without_turns_do_not_apply_once_for_each_side() -> None:
    silent = ep.Episode(messages=[ep.Message(role=ep.ROLE_CUSTOMER, content="Hello?")])
    asked = score_sheet(panel("turn_level"), silent, ())
    found = scores_by(verdict(asked, answer_to(asked)))
    assert set(found) == {
        ("policy_support_per_turn", ep.ROLE_AGENT, None),
        ("per_turn_contradiction_score", ep.ROLE_AGENT, None),
        ("consistency_drift", ep.ROLE_AGENT, None),
        ("per_turn_contradiction_score", ep.ROLE_CUSTOMER, 0),
        ("consistency_drift", ep.ROLE_CUSTOMER, 0),
    }
    assert found["consistency_drift", ep.ROLE_CUSTOMER, 0].value == 4.0


# ------------------------------------------------------------------ derived


@pytest.mark.parametrize(
    ("met", "expected"), [([True, True], 5.0), ([True, False], 3.0), ([False, False], 1.0)]
)
def test_the_goals_score_is_computed_from_the_proportion_met(met: list[bool], expected: float) -> None:
    asked = sheet("interest")
    content = answer_to(asked)
    for entry, value in zip(content["goals"], met, strict=True):
        entry["met"] = value
    found = verdict(asked, content)
    score = one(found, "customer_goal_alignment")
    assert score.value == expected
    assert score.justification == f"{sum(met)} of 2 goals met"
    assert not score.HasField("written")
    assert [goal.met for goal in found.goals] == met
    assert [goal.goal_index for goal in found.goals] == [0, 1]


def test_a_goal_without_an_answer_leaves_the_score_absent() -> None:
    asked = sheet("interest")
    content = answer_to(asked)
    content["goals"][1]["met"] = "no"
    found = verdict(asked, content)
    score = one(found, "customer_goal_alignment")
    assert not score.HasField("value")
    assert score.absent_reason == judge_pb2.ABSENT_REASON_UNPARSEABLE
    assert found.goals[0].met
    assert not found.goals[1].HasField("met")
    assert found.goals[1].absent_reason == judge_pb2.ABSENT_REASON_UNPARSEABLE


def test_the_judge_cannot_give_a_derived_score_itself() -> None:
    asked = sheet("interest")
    content = {**answer_to(asked), "customer_goal_alignment": {"justification": "x", "score": 2}}
    assert one(verdict(asked, content), "customer_goal_alignment").value == 5.0


# ------------------------------------------------------------------ samples


def test_several_samples_give_mean_spread_and_count() -> None:
    asked = sheet("dialogue")
    found = verdict(asked, *(answer_to(asked, score) for score in (2, 4, 4)))
    score = one(found, "verbosity")
    assert score.value == pytest.approx(10 / 3)
    assert score.spread == pytest.approx((4 / 3) ** 0.5)
    assert score.samples == 3
    assert not score.HasField("written")


def test_one_sample_has_no_spread() -> None:
    asked = sheet("dialogue")
    score = one(verdict(asked, answer_to(asked, 3)), "verbosity")
    assert (score.value, score.written, score.samples) == (3.0, 3, 1)
    assert not score.HasField("spread")
    assert not score.HasField("scale_mass")


def test_a_sample_without_the_score_shows_in_the_count() -> None:
    asked = sheet("dialogue")
    found = verdict(asked, answer_to(asked, 2), "no JSON", answer_to(asked, 4))
    score = one(found, "verbosity")
    assert (score.value, score.samples) == (3.0, 2)


def test_without_any_usable_sample_the_first_reason_stands() -> None:
    asked = sheet("dialogue")
    off_scale = json.dumps(answer_to(asked)).replace('"score": 4', '"score": 7')
    score = one(verdict(asked, off_scale, "no JSON"), "verbosity")
    assert score.absent_reason == judge_pb2.ABSENT_REASON_OUT_OF_SCALE
    assert (score.absent_detail, score.samples) == ("7 is not on the scale", 0)


def test_the_outcome_of_several_samples_is_the_commonest() -> None:
    asked = sheet("policy_resolution")
    contents = [answer_to(asked) for _ in range(3)]
    for content, name in zip(contents, ("DENY_REFUND", "NONE", "NONE"), strict=True):
        content["outcome"] = {"justification": f"it is {name}", "outcome": name}
    outcome = verdict(asked, *contents).outcome
    assert outcome.outcome == ep.OUTCOME_UNSPECIFIED
    assert outcome.absent_reason == judge_pb2.ABSENT_REASON_UNSPECIFIED
    assert outcome.justification == "it is NONE"


def test_only_the_panel_that_classifies_has_an_outcome() -> None:
    for each in DRIP_R.panels:
        asked = sheet(each.key)
        assert verdict(asked, answer_to(asked)).HasField("outcome") == (each.key == "policy_resolution")
