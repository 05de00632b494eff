from __future__ import annotations

from policysweep.report.html.unit_scores import unit_scores
from policysweep.v1 import judge_pb2

from .builders import CUSTOMER, criteria, score, verdict

NOT_APPLICABLE = judge_pb2.ABSENT_REASON_NOT_APPLICABLE
UNPARSEABLE = judge_pb2.ABSENT_REASON_UNPARSEABLE


def test_turns_first_then_metrics_then_judges() -> None:
    first, second = verdict(judge="a"), verdict(judge="b")
    score(score(first, "support", 2.0), "reasoning", 4.0)
    score(score(score(first, "drift", 1.0, turn=1), "drift", 2.0, turn=3), "drift", 3.0, turn=5)
    score(score(second, "support", 5.0), "reasoning", 5.0)
    assert unit_scores([first, second], criteria()) == {"policy": 4.0, "dialogue": 2.0}


def test_the_customers_scores_are_not_the_agents() -> None:
    made = verdict()
    score(score(made, "drift", 5.0, turn=1), "drift", 1.0, CUSTOMER, turn=2)
    score(made, "customer_tone", 1.0, CUSTOMER)
    assert unit_scores([made], criteria()) == {"dialogue": 5.0}


def test_a_metric_that_does_not_apply_is_left_out() -> None:
    made = score(score(verdict(), "support", 3.0), "reasoning", None, reason=NOT_APPLICABLE)
    assert unit_scores([made], criteria()) == {"policy": 3.0}


def test_a_dimension_without_one_of_its_scores_has_none() -> None:
    made = score(score(verdict(), "support", 3.0), "reasoning", None, reason=UNPARSEABLE)
    assert unit_scores([made], criteria()) == {}


def test_another_judge_can_stand_in() -> None:
    broken = score(score(verdict(judge="a"), "support", 1.0), "reasoning", None, reason=UNPARSEABLE)
    whole = score(score(verdict(judge="b"), "support", 4.0), "reasoning", 4.0)
    assert unit_scores([broken, whole], criteria()) == {"policy": 4.0}


def test_verdicts_of_another_edition_of_the_panel_do_not_count() -> None:
    made = score(score(verdict(), "support", 3.0), "reasoning", 3.0)
    made.verdict.panel_digest = "another"
    assert unit_scores([made], criteria()) == {}
