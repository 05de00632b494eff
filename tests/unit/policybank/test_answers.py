"""How the curator's answers are read: whole and consistent, or not at all."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from policysweep.models.chat import ChatReply, ResponseSchema
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import policybank_pb2 as pb
from services.policybank import answers
from services.policybank.answers import Unusable

FIELDS = ("trigger", "preconditions", "eligibility", "action", "key_insight")
ENTRY: dict[str, Any] = {
    "capability_id": "cancel",
    "header": "About\n  cancelling",
    **{field: f" {field} text " for field in FIELDS},
    "tool_names": ["cancel_reservation"],
}
LESSON: dict[str, Any] = {
    "rationale": "why",
    "failure_type": "policy_gap",
    "gap_class": "ambiguous_scope",
    "operation": "ADD",
    **ENTRY,
}
HELD = {"cancel": pb.Entry(capability_id="cancel", header="Old")}


def reply(text: str, reason: ep.FinishReason.ValueType = ep.FINISH_REASON_STOP) -> ChatReply:
    return ChatReply(text, (), reason, ep.Usage(), rehearsal=False)


class TestObject:
    @pytest.mark.parametrize(
        ("text", "reason", "problem"),
        [
            ("prose", ep.FINISH_REASON_STOP, "not JSON"),
            ('{"a": 1', ep.FINISH_REASON_STOP, "not JSON"),
            ("[1]", ep.FINISH_REASON_STOP, "not a JSON object"),
            ('{"a": NaN}', ep.FINISH_REASON_STOP, "not JSON"),
            ('{"a": 1}', ep.FINISH_REASON_LENGTH, "cut at the token limit after 8 characters"),
            ("", ep.FINISH_REASON_CONTENT_FILTER, "withheld"),
        ],
    )
    def test_what_is_none(self, text: str, reason: ep.FinishReason.ValueType, problem: str) -> None:
        with pytest.raises(Unusable, match=problem):
            answers.read_object(reply(text, reason))

    def test_what_is_one(self) -> None:
        assert answers.read_object(reply(' {"a": "{}"} ')) == {"a": "{}"}


class TestLesson:
    def test_an_entry_is_taken_with_its_texts_trimmed_and_its_header_on_one_line(self) -> None:
        draft = answers.read_lesson(LESSON, {})
        assert (draft.failure_type, draft.gap_class) == (
            pb.FAILURE_TYPE_POLICY_GAP,
            pb.GAP_CLASS_AMBIGUOUS_SCOPE,
        )
        assert draft.after.header == "About cancelling"
        assert draft.after.spec == pb.Spec(**{field: f"{field} text" for field in FIELDS})
        assert list(draft.after.tool_names) == ["cancel_reservation"]

    def test_an_omission_needs_no_entry(self) -> None:
        empty = {**LESSON, **dict.fromkeys((*FIELDS, "capability_id", "header"), ""), "operation": "OMIT"}
        draft = answers.read_lesson({**empty, "failure_type": "none", "gap_class": "none"}, HELD)
        assert not draft.HasField("after")
        assert draft.rationale == "why"

    @pytest.mark.parametrize(
        ("changes", "problem"),
        [
            ({"operation": "add"}, "operation must be one of ADD, REVISE, OMIT"),
            ({"operation": None}, "operation must be one of"),
            ({"failure_type": "typo"}, "failure_type must be one of none, policy_violation"),
            ({"gap_class": 3}, "gap_class must be one of"),
            ({"rationale": " "}, "rationale must be a text that says something"),
            ({"capability_id": ""}, "capability_id must be a text that says something"),
            ({"header": "\n"}, "header must be a text that says something"),
            ({"header": "x" * 301}, "header has 301 characters"),
            ({"action": ["a"]}, "action must be a text that says something"),
            ({"eligibility": None}, "eligibility must be a text"),
            ({"tool_names": "cancel"}, "tool_names must be a list of texts"),
            ({"tool_names": [1]}, "tool_names must be a list of texts"),
        ],
    )
    def test_what_cannot_be_used(self, changes: dict[str, Any], problem: str) -> None:
        with pytest.raises(Unusable, match=problem):
            answers.read_lesson({**LESSON, **changes}, {})

    def test_the_operation_has_to_fit_the_bank(self) -> None:
        with pytest.raises(Unusable, match="ADD, but the bank already holds 'cancel'"):
            answers.read_lesson(LESSON, HELD)
        with pytest.raises(Unusable, match="REVISE, but the bank holds no 'cancel'"):
            answers.read_lesson({**LESSON, "operation": "REVISE"}, {})
        same = answers.read_lesson(LESSON, {}).after
        with pytest.raises(Unusable, match="the entry would not change"):
            answers.read_lesson({**LESSON, "operation": "REVISE"}, {"cancel": same})
        assert answers.read_lesson({**LESSON, "operation": "REVISE"}, HELD).after.header == "About cancelling"


class TestLists:
    def test_capabilities(self) -> None:
        second = {**ENTRY, "capability_id": "other", "key_insight": ""}
        read = answers.read_capabilities({"capabilities": [ENTRY, second]})
        assert [entry.capability_id for entry in read] == ["cancel", "other"]
        assert answers.read_capabilities({"capabilities": []}) == []

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            ({}, "capabilities must be a list of objects"),
            ({"capabilities": ["text"]}, "capabilities must be a list of objects"),
            ({"capabilities": [ENTRY, ENTRY]}, "a capability_id occurs twice"),
            ({"capabilities": [ENTRY] * 9}, "capabilities has 9 entries, and 8 are the most"),
        ],
    )
    def test_capabilities_that_cannot_be_used(self, content: dict[str, Any], problem: str) -> None:
        with pytest.raises(Unusable, match=problem):
            answers.read_capabilities(content)

    def test_workflows_have_two_steps_or_more(self) -> None:
        one = {"title": "T", "description": "D", "steps": ["look\nup", "act"]}
        assert answers.read_workflows({"workflows": [one]}) == ["# T\nD\n1. look up\n2. act"]
        with pytest.raises(Unusable, match="steps must be a list of 2 to 20 texts"):
            answers.read_workflows({"workflows": [{**one, "steps": ["look up"]}]})
        with pytest.raises(Unusable, match="step must be a text"):
            answers.read_workflows({"workflows": [{**one, "steps": ["look up", 3]}]})

    def test_reasoning_items(self) -> None:
        item = {"title": "T", "description": "D", "content": "C\nC"}
        assert answers.read_reasoning({"items": [item]}, 3) == ["# T\nD\nC\nC"]
        with pytest.raises(Unusable, match="items has 4 entries, and 3 are the most"):
            answers.read_reasoning({"items": [item] * 4}, 3)


@pytest.mark.parametrize(
    "schema", [answers.CAPABILITIES, answers.LESSON, answers.WORKFLOWS, answers.reasoning_schema(3)]
)
def test_schemas_keep_to_what_every_grammar_backend_understands(schema: ResponseSchema) -> None:
    text = orjson.dumps(schema.schema).decode()
    for keyword in ("pattern", "oneOf", "anyOf", "$ref", "uniqueItems", "format", "maxLength"):
        assert f'"{keyword}"' not in text
    assert text.count('"additionalProperties":false') == text.count('"type":"object"')
