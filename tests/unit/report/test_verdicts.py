from __future__ import annotations

import math

import pytest

from policysweep.errors import InputError
from policysweep.report.verdicts import NO_TURN, Verdicts
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2

from .verdict_records import CUSTOMER, judges, rubric, score, simple, taken, verdict

OUT_OF_SCALE = judge_pb2.ABSENT_REASON_OUT_OF_SCALE


def test_a_score_becomes_a_line() -> None:
    made = verdict("u", "turns")
    score(made, "drift", 4.0, turn=3, subject=CUSTOMER, mass=0.75)
    score(made, "drift", None, turn=5, subject=CUSTOMER, reason=judge_pb2.ABSENT_REASON_TRUNCATED)
    notes = taken([made]).notes["j"]
    drift = [metric.key for metric in rubric().metrics].index("drift")
    assert list(notes.metric) == [drift, drift]
    assert list(notes.turn) == [3, 5]
    assert list(notes.subject) == [CUSTOMER, CUSTOMER]
    assert notes.value[0] == 4.0
    assert math.isnan(notes.value[1])
    assert list(notes.reason) == [0, judge_pb2.ABSENT_REASON_TRUNCATED]
    assert notes.mass[0] == 0.75
    assert math.isnan(notes.spread[0])


def test_a_score_of_the_conversation_has_no_turn() -> None:
    assert list(taken(simple("u", {"support": 3.0})).notes["j"].turn) == [NO_TURN]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 0.0, 7.0, 5.01, 0.99])
def test_a_value_that_is_not_on_the_scale_is_absent(value: float) -> None:
    notes = taken(simple("u", {"support": value})).notes["j"]
    assert math.isnan(notes.value[0])
    assert list(notes.reason) == [OUT_OF_SCALE]


@pytest.mark.parametrize("value", [1.0, 3.7, 5.0, 5.0 + 1e-12])
def test_a_value_on_the_scale_stands_as_it_is(value: float) -> None:
    assert list(taken(simple("u", {"support": value})).notes["j"].value) == [value]


def test_a_value_beside_a_reason_for_its_absence_is_not_believed() -> None:
    made = verdict("u", "main")
    score(made, "support", 4.0, reason=judge_pb2.ABSENT_REASON_REFUSED)
    assert math.isnan(taken([made]).notes["j"].value[0])


def test_verdicts_on_another_question_are_left_out_and_counted() -> None:
    edited, unknown = verdict("u", "main"), verdict("u", "main")
    edited.verdict.panel_digest = "digest-of-an-older-edition"
    unknown.verdict.panel = "panel that was dropped"
    found = taken([edited, unknown])
    assert found.left_out == {"OTHER_EDITION_OF_PANEL": 2}
    assert not found.notes["j"].read
    assert not found.units


def test_a_panel_that_a_new_version_of_the_rubric_left_as_it_was_still_counts() -> None:
    made = verdict("u", "main", version=7)
    score(made, "support", 4.0)
    assert list(taken([made]).notes["j"].value) == [4.0]


def test_the_outcome_is_noted_with_its_reason() -> None:
    first, second = verdict("u", "main"), verdict("v", "main")
    first.verdict.outcome.outcome = ep.OUTCOME_DENY_REFUND
    second.verdict.outcome.absent_reason = judge_pb2.ABSENT_REASON_REFUSED
    found = taken([first, second, *simple("w", {"support": 3.0})])
    assert found.notes["j"].outcomes == {
        0: (ep.OUTCOME_DENY_REFUND, 0),
        1: (0, judge_pb2.ABSENT_REASON_REFUSED),
    }


def test_tokens_and_unusable_answers_are_summed_by_panel() -> None:
    first, second, empty = verdict("u", "main"), verdict("v", "main"), verdict("w", "main")
    first.verdict.usage.model_calls, first.verdict.usage.prompt_tokens = 3, 900
    first.verdict.unusable_answers = 2
    second.verdict.usage.model_calls = 1
    tally = taken([first, second, empty]).notes["j"].panels["main"]
    assert (tally.verdicts, tally.unusable) == (3, 2)
    # A panel that had nothing to ask made no call: it reports nothing and lacks nothing.
    assert (tally.tokens.answers, tally.tokens.calls) == (2, 4)
    assert (tally.tokens.prompt, tally.tokens.prompt_unreported) == (900, 1)


def test_two_verdicts_on_one_panel_of_a_unit_are_refused() -> None:
    with pytest.raises(InputError, match="judge 'j' on panel 'main' of unit u: there are two of them"):
        taken([verdict("u", "main"), verdict("u", "main")])
    # By two judges, or on two panels, they are not the same.
    made = [verdict("u", "main"), verdict("u", "main", "k"), verdict("u", "talk")]
    assert len(taken(made, "j", "k").units) == 1


def test_a_judge_that_the_run_does_not_describe_is_refused() -> None:
    with pytest.raises(InputError, match=r"'stranger'.*is not one of the run's judges \(j\)"):
        taken([verdict("u", "main", "stranger")])


@pytest.mark.parametrize(("metric", "subject"), [("verbosity", 2), ("nonsense", 2), ("support", CUSTOMER)])
def test_a_score_that_the_panel_does_not_ask_for_is_refused(metric: str, subject: int) -> None:
    made = verdict("u", "main")
    score(made, metric, 3.0, subject=ep.Role.ValueType(subject))
    with pytest.raises(
        InputError, match=f"metric '{metric}' for role {subject}, which panel 'main' of small@1"
    ):
        taken([made])


def test_two_scores_in_one_place_are_refused() -> None:
    made = verdict("u", "turns")
    score(made, "drift", 3.0, turn=1)
    score(made, "drift", 4.0, turn=1)
    with pytest.raises(InputError, match="two scores on metric 'drift', message 1"):
        taken([made])


def test_an_outcome_of_a_later_contract_is_refused() -> None:
    made = verdict("u", "main")
    made.verdict.outcome.outcome = ep.Outcome.ValueType(99)
    with pytest.raises(InputError, match="outcome 99, which this version"):
        taken([made])


def test_judges_keep_their_order() -> None:
    assert list(Verdicts(rubric(), judges("z", "a")).notes) == ["z", "a"]
