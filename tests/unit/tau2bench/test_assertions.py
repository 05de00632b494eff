"""What a judge's answer about assertions is read as, and what it is asked."""

from __future__ import annotations

import json
from typing import Any

import pytest

from policysweep.models.chat import ChatReply
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2
from services.judge.tau2_assertions import read_decisions

UNPARSEABLE = judge_pb2.ABSENT_REASON_UNPARSEABLE


def reply(content: Any, finish: ep.FinishReason.ValueType = ep.FINISH_REASON_STOP) -> ChatReply:
    text = content if isinstance(content, str) else json.dumps(content)
    return ChatReply(text, (), finish, ep.Usage(), rehearsal=False)


def entry(number: object, met: object, justification: object = "[1] shows it.") -> dict[str, object]:
    return {"assertion": number, "justification": justification, "met": met}


def test_each_assertion_gets_its_decision_whatever_the_order() -> None:
    found = read_decisions(reply({"assertions": [entry(2, False), entry(1, True)]}), 2)
    assert [decision.met for decision in found.each] == [True, False]
    assert found.each[0].justification == "[1] shows it."
    assert not found.missing


@pytest.mark.parametrize(
    ("entries", "detail"),
    [
        ([], "0 entries for assertion 1"),
        ([entry(2, True)], "0 entries for assertion 1"),
        ([entry(True, True)], "0 entries for assertion 1"),
        ([entry("1", True)], "0 entries for assertion 1"),
        ([entry(1, True), entry(1, False)], "2 entries for assertion 1"),
        ([entry(1, "true")], "neither true nor false for assertion 1"),
        ([entry(1, None)], "neither true nor false for assertion 1"),
        ([entry(1, 1)], "neither true nor false for assertion 1"),
        ("none", "0 entries for assertion 1"),
        (None, "0 entries for assertion 1"),
    ],
)
def test_what_is_no_decision_is_absent_with_a_reason(entries: object, detail: str) -> None:
    found = read_decisions(reply({"assertions": entries}), 1)
    (decision,) = found.each
    assert decision.met is None
    assert decision.absent is not None
    assert (decision.absent.reason, decision.absent.detail) == (UNPARSEABLE, detail)


def test_an_answer_that_is_none_leaves_all_absent() -> None:
    found = read_decisions(reply("Both hold."), 2)
    assert [decision.absent.reason for decision in found.each if decision.absent] == [UNPARSEABLE] * 2
    cut = read_decisions(reply('{"assertions": [', ep.FINISH_REASON_LENGTH), 2)
    assert cut.missing[0].reason == judge_pb2.ABSENT_REASON_TRUNCATED


@pytest.mark.parametrize(("written", "kept"), [(None, ""), (7, ""), ("\ud83d", "?")])
def test_grounds_are_optional_and_can_be_sent(written: object, kept: str) -> None:
    (decision,) = read_decisions(reply({"assertions": [entry(1, True, written)]}), 1).each
    assert decision.met is True
    assert decision.justification == kept
