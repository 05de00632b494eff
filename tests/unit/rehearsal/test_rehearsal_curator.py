"""The curator's script: its answers fit, and what it learns is what was explained."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from policysweep.models.chat import Json, ResponseSchema
from policysweep.models.rehearsal.roles import respond
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import policybank_pb2 as pb
from policysweep.v1 import scenario_pb2
from services.policybank import answers, prompt

from .support import misfit, request

POLICY = scenario_pb2.Policy(
    primary=scenario_pb2.PolicyDocument(
        text="# Cancelling\nA flight may be cancelled within 24 hours. You must ask for the reason.\n"
        "# Pets\n- Dogs travel for free. Cats do not."
    )
)
EPISODE = ep.Episode(
    messages=[
        ep.Message(role=ep.ROLE_CUSTOMER, content="Cancel it."),
        ep.Message(
            role=ep.ROLE_AGENT,
            tool_calls=[
                ep.ToolCall(name="find", arguments_json='{"user_id": "u1"}'),
                ep.ToolCall(name="cancel_flight", arguments_json="broken"),
            ],
        ),
    ]
)
HELD = pb.Entry(
    capability_id="cancel_flight",
    header="Cancelling a flight",
    spec=pb.Spec(trigger="The customer wants to cancel.", action="Cancel the flight within 24 hours."),
    tool_names=["cancel_flight", "find"],
)


def answer(messages: list[Json], schema: ResponseSchema) -> Any:
    asked = request(
        [dict(message) for message in messages],
        response_format={
            "type": "json_schema",
            "json_schema": {"name": schema.name, "schema": schema.schema},
        },
    )
    value = orjson.loads(respond(asked).text)
    assert misfit(value, schema.schema, dict(schema.schema)) == ""
    return value


def lesson(explanation: str = "", reward: float = 0.0, *entries: pb.Entry) -> pb.Revision:
    feedback = pb.RecordFeedbackRequest(
        task_query="Cancel my flight. Now.", reward=reward, explanation=explanation, episode=EPISODE
    )
    content = answer(prompt.feedback(POLICY, entries, feedback), answers.LESSON)
    return answers.read_lesson(content, {each.capability_id: each for each in entries})


class TestFirstBank:
    def entries(self, tool: str) -> list[pb.Entry]:
        tools = [
            ep.ToolDefinition(name="cancel_flight", description="Cancels a flight.", parameters_json="{}"),
            ep.ToolDefinition(name="book_hotel", description="Books a hotel.", parameters_json="{}"),
        ]
        asked = pb.CreateBankRequest(policy=POLICY, tools=tools)
        return answers.read_capabilities(answer(prompt.first_bank(asked, tool), answers.CAPABILITIES))

    def test_a_tool_gets_the_passages_that_are_about_it(self) -> None:
        (entry,) = self.entries("cancel_flight")
        assert entry.capability_id == "cancel_flight_cancelling"
        assert entry.spec.preconditions == "You must ask for the reason."
        assert "24 hours" in entry.spec.eligibility + entry.spec.action
        assert self.entries("book_hotel") == []

    def test_the_rest_belongs_to_no_tool(self) -> None:
        (entry,) = self.entries("")
        assert "Dogs travel for free." in entry.spec.action
        assert not entry.tool_names


class TestLesson:
    def test_an_explanation_is_written_into_the_entry_that_is_nearest(self) -> None:
        explained = "A flight may be cancelled after 24 hours if the customer is ill."
        other = pb.Entry(
            capability_id="pets", header="Pets", spec=pb.Spec(trigger="t", action="Dogs are free.")
        )
        draft = lesson(explained, 0.0, HELD, other)
        assert draft.after.capability_id == "cancel_flight"
        assert draft.after.spec.key_insight == explained
        assert draft.after.spec.action == HELD.spec.action
        assert list(draft.after.tool_names) == ["cancel_flight", "find"]
        assert draft.failure_type == pb.FAILURE_TYPE_POLICY_GAP

    def test_what_nothing_is_near_to_is_added(self) -> None:
        draft = lesson("Bicycles count as baggage.", 0.0, HELD)
        assert draft.after.capability_id.startswith("lesson_bicycles")
        assert draft.after.spec.key_insight == "Bicycles count as baggage."
        again = lesson("Bicycles count as cargo, mostly in winter nights.", 0.0, draft.after)
        assert again.after.capability_id != draft.after.capability_id

    @pytest.mark.parametrize(
        ("explanation", "reward"), [("", 0.0), ("", 1.0), ("It was right.", 1.0), ("", 0.5)]
    )
    def test_without_a_lesson_nothing_changes(self, explanation: str, reward: float) -> None:
        assert not lesson(explanation, reward, HELD).HasField("after")

    def test_what_the_bank_says_is_not_said_twice(self) -> None:
        explained = "A flight may be cancelled after 24 hours if the customer is ill."
        learnt = lesson(explained, 0.0, HELD).after
        assert not lesson(explained, 0.0, learnt).HasField("after")

    def test_revising_again_and_again_stays_usable(self) -> None:
        entry = HELD
        for number in range(8):
            entry = lesson(
                f"A flight may be cancelled for customer reason {'abcdefgh'[number] * 40}.", 0, entry
            ).after
        assert len(entry.header) <= 300
        assert entry.spec.key_insight.count("A flight may be cancelled") == 8


class TestOtherMemories:
    feedback = pb.RecordFeedbackRequest(
        task_query="Cancel order 17.", episode=EPISODE, explanation="Ask first."
    )

    def test_workflows_name_variables_and_not_values(self) -> None:
        (text,) = answers.read_workflows(answer(prompt.workflows(self.feedback), answers.WORKFLOWS))
        assert text.endswith("1. Call find with {user_id}.\n2. Call cancel_flight.")
        assert "17" not in text
        assert "u1" not in text

    def test_reasoning_rests_on_the_explanation_or_on_what_was_done(self) -> None:
        schema = answers.reasoning_schema(3)
        failed = answer(prompt.reasoning(self.feedback, success=False), schema)
        solved = answer(prompt.reasoning(self.feedback, success=True), schema)
        assert failed["items"][0]["content"] == "Ask first."
        assert "find, cancel_flight" in solved["items"][0]["content"]
