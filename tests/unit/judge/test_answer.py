"""A judge that misbehaves: what is absent, why, and what is kept."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2
from services.judge.answer import Answer, Reading, problem, read_answer
from services.judge.verdict import fill_verdict

from .support import DRIP_R, answer_to, reply, sheet, tokens

UNPARSEABLE = judge_pb2.ABSENT_REASON_UNPARSEABLE
OUT_OF_SCALE = judge_pb2.ABSENT_REASON_OUT_OF_SCALE
TRUNCATED = judge_pb2.ABSENT_REASON_TRUNCATED
REFUSED = judge_pb2.ABSENT_REASON_REFUSED
DIALOGUE = sheet("dialogue")
KEYS = [
    *(metric.key for metric in DRIP_R.metrics),
    *("score", "justification", "turn", "goal", "met", "goals", "outcome", "agent_turns", "customer_turns"),
]


def read(content: Any, key: str = "dialogue", **changes: Any) -> Answer:
    return read_answer(reply(content, **changes), sheet(key))


def reasons(answer: Answer) -> set[int]:
    return {absent.reason for absent in answer.missing}


def by_metric(answer: Answer, key: str = "dialogue") -> dict[str, Reading]:
    return {slot.metric: found for slot, found in zip(sheet(key).slots, answer.scores, strict=True)}


def test_a_good_answer_has_everything() -> None:
    answer = read(answer_to(DIALOGUE, score=2))
    assert not answer.missing
    assert [found.value for found in answer.scores] == [2.0] * 6
    assert {found.justification for found in answer.scores} == {"because of [3]"}


@pytest.mark.parametrize(
    ("written", "reason", "detail"),
    [
        ("7", OUT_OF_SCALE, "7 is not on the scale"),
        ("0", OUT_OF_SCALE, "0 is not on the scale"),
        ("-1", OUT_OF_SCALE, "-1 is not on the scale"),
        ("4.5", OUT_OF_SCALE, "4.5 is not on the scale"),
        ("NaN", OUT_OF_SCALE, "NaN is not on the scale"),
        ("Infinity", OUT_OF_SCALE, "Infinity is not on the scale"),
        ("1e400", OUT_OF_SCALE, "Infinity is not on the scale"),
        ("9" * 400, OUT_OF_SCALE, "999"),
        ('"4"', UNPARSEABLE, '"4" instead of a number'),
        ("true", UNPARSEABLE, "true instead of a number"),
        ("null", UNPARSEABLE, "null instead of a number"),
        ("[4]", UNPARSEABLE, "[4] instead of a number"),
        ('{"value": 4}', UNPARSEABLE, '{"value": 4} instead of a number'),
    ],
)
def test_a_value_that_is_no_score_is_absent_and_costs_no_other(
    written: str, reason: int, detail: str
) -> None:
    text = json.dumps(answer_to(DIALOGUE)).replace('"score": 4', f'"score": {written}', 1)
    found = list(read(text).scores)
    assert found[0].absent is not None
    assert (found[0].value, found[0].written, found[0].absent.reason) == (None, None, reason)
    assert found[0].absent.detail.startswith(detail)
    assert found[0].justification == "because of [3]"
    assert [other.value for other in found[1:]] == [4.0] * 5


def test_four_point_zero_is_the_number_four() -> None:
    text = json.dumps(answer_to(DIALOGUE)).replace('"score": 4', '"score": 4.0', 1)
    assert read(text).scores[0].written == 4


@pytest.mark.parametrize("entry", [None, 4, "good", []])
def test_a_metric_that_is_no_object_is_absent(entry: Any) -> None:
    found = by_metric(read({**answer_to(DIALOGUE), "verbosity": entry}))
    assert found["verbosity"].absent is not None
    assert found["verbosity"].absent.reason == UNPARSEABLE
    assert found["conversation_consistency"].value == 4.0


def test_a_missing_metric_or_score_is_absent() -> None:
    content = answer_to(DIALOGUE)
    del content["verbosity"]
    del content["conversation_consistency"]["score"]
    found = by_metric(read(content))
    assert [found[key].absent for key in ("verbosity", "conversation_consistency")] != [None, None]
    for key in ("verbosity", "conversation_consistency"):
        absent = found[key].absent
        assert absent is not None
        assert absent.detail.startswith("nothing instead of")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", UNPARSEABLE),
        ("The agent did well: 4 out of 5.", UNPARSEABLE),
        ("[1, 2, 3]", UNPARSEABLE),
        ("4", UNPARSEABLE),
        ('{"verbosity": {"justification": "x", "sco', UNPARSEABLE),
        ('```json\n{"verbosity": 4}\n```', UNPARSEABLE),
        ("{" * 100_000, UNPARSEABLE),
        ("[" * 100_000, UNPARSEABLE),
        ("I'm sorry, but I can't help with that request.", REFUSED),
        ("I\u2019m unable to judge this conversation.", REFUSED),
        ("I cannot assess people.", REFUSED),
        ("As an AI, I do not judge.", REFUSED),
    ],
)
def test_an_answer_that_is_no_json_object_has_nothing(text: str, reason: int) -> None:
    answer = read(text, "policy_resolution")
    assert reasons(answer) == {reason}
    assert len(answer.missing) == 5 + 1
    assert all(found.value is None for found in answer.scores)


def test_the_finish_reason_tells_truncated_and_withheld_answers() -> None:
    half = json.dumps(answer_to(DIALOGUE))[:200]
    assert reasons(read(half, finish_reason=ep.FINISH_REASON_LENGTH)) == {TRUNCATED}
    assert reasons(read("", finish_reason=ep.FINISH_REASON_CONTENT_FILTER)) == {REFUSED}


def test_halves_of_surrogate_pairs_can_be_sent_on() -> None:
    text = json.dumps(answer_to(DIALOGUE)).replace("because", "\\ud83d because", 1)
    found = read(text).scores[0]
    assert found.justification.startswith("? because")
    judge_pb2.Score(justification=found.justification)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 9) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=8,
)


@given(
    st.sampled_from([each.key for each in DRIP_R.panels]), st.dictionaries(st.sampled_from(KEYS), ANYTHING)
)
def test_no_answer_breaks_the_reading_and_every_slot_has_a_value_or_a_reason(key: str, content: Any) -> None:
    of = sheet(key)
    answer = read({**answer_to(of), **content}, key)
    for found in answer.scores:
        assert (found.value is None) == (found.absent is not None)
        assert found.value is None or found.value in (1, 2, 3, 4, 5)
    verdict = judge_pb2.PanelVerdict()
    fill_verdict(verdict, of, [answer])
    assert all(score.HasField("value") != bool(score.absent_reason) for score in verdict.scores)


# ------------------------------------------------------------------ turns


def turn_scores(answer: Answer) -> dict[tuple[str, int | None], float | None]:
    slots = sheet("turn_level").slots
    return {
        (f"{slot.metric} {ep.Role.Name(slot.subject)}", slot.message_index): found.value
        for slot, found in zip(slots, answer.scores, strict=True)
    }


def test_each_turn_gets_its_scores_by_index_not_by_position() -> None:
    content = answer_to(sheet("turn_level"))
    content["agent_turns"].reverse()
    content["agent_turns"][0]["consistency_drift"] = 2
    found = turn_scores(read(content, "turn_level"))
    assert found["consistency_drift ROLE_AGENT", 5] == 2.0
    assert found["consistency_drift ROLE_AGENT", 3] == 4.0
    assert found["consistency_drift ROLE_CUSTOMER", 4] == 4.0
    assert len(found) == 2 * 3 + 2 * 2


def test_a_turn_left_out_is_absent_and_an_invented_one_is_ignored() -> None:
    content = answer_to(sheet("turn_level"))
    content["agent_turns"][0]["turn"] = 99
    answer = read(content, "turn_level")
    assert len(answer.missing) == 3
    assert {absent.detail for absent in answer.missing} == {"no entry for turn 3"}


def test_a_turn_scored_twice_is_absent() -> None:
    content = answer_to(sheet("turn_level"))
    content["customer_turns"][1]["turn"] = 0
    details = [absent.detail for absent in read(content, "turn_level").missing]
    assert sorted(details) == ["2 entries for turn 0"] * 2 + ["no entry for turn 4"] * 2


@pytest.mark.parametrize("turn", [True, "3", None, [3]])
def test_an_entry_without_a_turn_number_belongs_to_no_turn(turn: Any) -> None:
    content = answer_to(sheet("turn_level"))
    content["agent_turns"][0]["turn"] = turn
    assert len(read(content, "turn_level").missing) == 3


@pytest.mark.parametrize("turns", [None, {}, "none", [4]])
def test_a_list_of_turns_that_is_none_is_absent(turns: Any) -> None:
    answer = read({**answer_to(sheet("turn_level")), "agent_turns": turns}, "turn_level")
    assert len(answer.missing) == 6
    assert reasons(answer) == {UNPARSEABLE}


# ------------------------------------------------------------------ outcome and goals


@pytest.mark.parametrize("name", [*ep.Outcome.keys()[1:], "NONE"])
def test_the_judge_names_an_outcome_or_none(name: str) -> None:
    content = answer_to(sheet("policy_resolution"))
    content["outcome"]["outcome"] = name.removeprefix("OUTCOME_")
    outcome = read(content, "policy_resolution").outcome
    assert outcome is not None
    assert outcome.absent is None
    assert outcome.outcome == (0 if name == "NONE" else ep.Outcome.Value(name))


@pytest.mark.parametrize("name", ["UNSPECIFIED", "refund", 1, None, ["DENY_REFUND"]])
def test_any_other_outcome_is_absent(name: Any) -> None:
    content = answer_to(sheet("policy_resolution"))
    content["outcome"]["outcome"] = name
    answer = read(content, "policy_resolution")
    assert answer.outcome is not None
    assert answer.outcome.absent is not None
    assert answer.outcome.absent.reason == UNPARSEABLE
    assert len(answer.missing) == 1


@pytest.mark.parametrize("met", ["true", 1, None, "yes"])
def test_a_goal_is_met_or_not_and_nothing_else(met: Any) -> None:
    content = answer_to(sheet("interest"))
    content["goals"][1]["met"] = met
    answer = read(content, "interest")
    assert [goal.met for goal in answer.goals] == [True, None]
    assert reasons(answer) == {UNPARSEABLE}


def test_goals_go_by_their_number() -> None:
    content = answer_to(sheet("interest"))
    content["goals"].reverse()
    content["goals"][0]["met"] = False
    assert [goal.met for goal in read(content, "interest").goals] == [True, False]


def test_a_goal_left_out_is_absent() -> None:
    content = answer_to(sheet("interest"))
    del content["goals"][0]
    missing = read(content, "interest").missing
    assert [absent.detail for absent in missing] == ["no entry for goal 1"]


# ------------------------------------------------------------------ weighted


def test_probabilities_weigh_a_score_that_is_on_the_scale() -> None:
    text = json.dumps(answer_to(DIALOGUE))
    cut = text.split('"score": 4', 1)
    entries = tokens(
        cut[0], '"score": ', "4", cut[1], at={2: {"4": math.log(0.6), "2": math.log(0.2), "x": math.log(0.2)}}
    )
    found = read(text, logprobs=entries).scores[0]
    assert found.written == 4
    assert found.value == pytest.approx((4 * 0.6 + 2 * 0.2) / 0.8)
    assert found.mass == pytest.approx(0.8)


def test_probabilities_do_not_save_a_score_that_is_off_the_scale() -> None:
    text = json.dumps(answer_to(DIALOGUE)).replace('"score": 4', '"score": 7', 1)
    cut = text.split("7", 1)
    entries = tokens(cut[0], "7", cut[1], at={1: {"7": math.log(0.5), "4": math.log(0.5)}})
    found = read(text, logprobs=entries).scores[0]
    assert found.value is None
    assert found.absent is not None
    assert found.absent.reason == OUT_OF_SCALE


def test_the_problem_is_named_by_its_commonest_reason() -> None:
    content = answer_to(DIALOGUE)
    content["verbosity"]["score"] = 9
    assert problem(read(content).missing) == "out of scale"
    assert problem(read("").missing) == "unparseable"
