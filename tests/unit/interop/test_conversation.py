"""One conversation record -> one episode: who said and called what, and how it ended."""

from __future__ import annotations

from typing import Any

import pytest

from policysweep.interop.dripr.conversation import Conversation, read, write
from policysweep.interop.dripr.shape import conversation_shape
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import run_pb2

from .samples import TALK, answered, called, conversation, episode, said, scenarios

LEAVE = "withdraw_from_conversation"


def taken(record: dict[str, Any], max_turns: int = 20) -> Conversation:
    """The conversation of a record that is sound."""
    assert [str(each) for each in conversation_shape(record)] == []
    found, findings = read(record, max_turns)
    assert findings == []
    return found


def wrong(record: dict[str, Any]) -> list[str]:
    """What is wrong with a record, `field: message`."""
    shape = [each for each in conversation_shape(record) if each.severity == "error"]
    findings = shape or read(record)[1]
    return [f"{'.'.join(map(str, each.path))}: {each.message}" for each in findings]


def shown(found: ep.Episode) -> list[tuple[str, str, list[str]]]:
    return [
        (ep.Role.Name(message.role)[5:], message.content, [call.id for call in message.tool_calls])
        for message in found.messages
    ]


def test_a_call_belongs_to_the_message_that_makes_it() -> None:
    found = taken(conversation())
    assert shown(found.episode) == [
        ("CUSTOMER", "I want my money back.", []),
        ("AGENT", "", ["call_0"]),
        ("TOOL", '{"order_id":"ORD-1","status":"delivered"}', []),
        ("AGENT", "You get half of it.", []),
        ("CUSTOMER", "Fine.", []),
        ("AGENT", "Done.", ["process_return_1"]),
        ("TOOL", '{"status":"success"}', []),
    ]
    result = found.episode.messages[2]
    assert (result.tool_call_id, result.tool_name) == ("call_0", "get_order_details")
    assert result.tool_status == ep.TOOL_STATUS_OK
    assert found.episode.messages[1].tool_calls[0].arguments_json == '{"order_id":"ORD-1"}'


def test_what_was_declared_is_the_outcome() -> None:
    found = taken(conversation()).episode
    assert found.outcome == found.resolution.outcome == ep.OUTCOME_RETURN_REFUND_PARTIAL_BANK
    assert found.resolution.description == "Half of it."
    assert found.end == ep.EpisodeEnd(reason=ep.END_REASON_RESOLVED)
    assert (found.turns, found.agent_persona) == (2, ep.AGENT_PERSONA_FAIR)
    assert not found.HasField("reconciliation")
    assert not found.rehearsal


def test_the_row_is_taken_off_the_scenario_id() -> None:
    assert taken(conversation(row=17)).row == 17
    assert taken(conversation(row=None)).row == 0


def test_calls_in_a_row_are_one_message() -> None:
    talk = [
        said("customer", "Hello"),
        called(call_id="a"),
        called(call_id="b"),
        answered(call_id="b", n=2),
        answered(call_id="a", n=1),
    ]
    found = taken(conversation(talk)).episode
    assert shown(found)[1] == ("AGENT", "", ["a", "b"])
    assert [message.tool_call_id for message in found.messages[2:]] == ["b", "a"]


def test_the_customers_tools_stay_out_of_the_conversation() -> None:
    talk = [
        *TALK[:4],
        called("customer_inspect_profile", "call_0", section="orders"),
        answered("customer_inspect_profile", "call_0", status="error"),
        *TALK[4:],
    ]
    found = taken(conversation(talk, by_customer=["customer_inspect_profile"])).episode
    assert shown(found) == shown(taken(conversation()).episode)
    [event] = found.customer_tool_events
    assert (event.after_message, event.call.name) == (4, "customer_inspect_profile")
    assert (event.result_json, event.status) == ('{"status":"error"}', ep.TOOL_STATUS_ERROR)


def test_ids_that_repeat_become_unique_and_keep_their_results() -> None:
    talk = [
        said("customer", "Hello"),
        called("process_return", "process_return_1", n=1),
        answered("process_return", "process_return_1", status="verification_required"),
        said("agent", "Was it open?"),
        said("customer", "Yes."),
        called("process_return", "process_return_1", n=2),
        answered("process_return", "process_return_1", status="success"),
    ]
    found = taken(conversation(talk)).episode
    ids = [call.id for message in found.messages for call in message.tool_calls]
    assert ids == ["process_return_1", "process_return_1#2"]
    results = [message for message in found.messages if message.role == ep.ROLE_TOOL]
    assert [message.tool_call_id for message in results] == ids
    assert [message.tool_status for message in results] == [
        ep.TOOL_STATUS_VERIFICATION_REQUIRED,
        ep.TOOL_STATUS_OK,
    ]


@pytest.mark.parametrize(
    ("result", "status"),
    [
        ({"status": "success"}, ep.TOOL_STATUS_OK),
        ({}, ep.TOOL_STATUS_OK),
        ({"error": "no such order"}, ep.TOOL_STATUS_ERROR),
        ({"status": "Failed"}, ep.TOOL_STATUS_ERROR),
        ({"status": 3}, ep.TOOL_STATUS_OK),
        ({"status": "ALREADY_CALLED"}, ep.TOOL_STATUS_ALREADY_CALLED),
    ],
)
def test_what_a_call_led_to_comes_from_its_result(
    result: dict[str, Any], status: ep.ToolStatus.ValueType
) -> None:
    talk = [said("customer", "Hello"), called(), answered(**result)]
    assert taken(conversation(talk)).episode.messages[-1].tool_status == status


# ------------------------------------------------------------------------------------------------- endings


def test_a_withdrawal_is_user_abort() -> None:
    talk = [*TALK[:4], called(LEAVE, "w", reason="too slow")]
    record = conversation(talk, by_customer=[LEAVE], customer_withdrew_1=True, resolution_1=None)
    found = taken(record).episode
    assert found.outcome == ep.OUTCOME_USER_ABORT
    assert found.end == ep.EpisodeEnd(reason=ep.END_REASON_CUSTOMER_WITHDREW, detail="too slow")
    assert not found.HasField("resolution")
    stated = {"resolution_type": "USER_ABORT", "resolution_description": "They left."}
    assert taken(record | {"resolution_1": stated}).episode == found


def test_a_conversation_that_was_broken_off_names_nobody_without_evidence() -> None:
    found = taken(conversation(TALK[:4], finished=False, resolution_1=None)).episode
    assert found.outcome == ep.OUTCOME_UNSPECIFIED
    assert (found.end.reason, found.end.fault) == (ep.END_REASON_ERROR_LIMIT, ep.FAULT_PARTY_UNSPECIFIED)
    assert "does not say who failed" in found.end.detail


def test_a_conversation_at_the_turn_limit_is_the_agents_fault_as_in_our_own_runs() -> None:
    talk = [said(turn, "and so on") for _ in range(3) for turn in ("customer", "agent")]
    record = conversation(talk, finished=False, resolution_1=None)
    found = taken(record, max_turns=2).episode
    assert (found.end.reason, found.end.fault) == (ep.END_REASON_TURN_LIMIT, ep.FAULT_PARTY_AGENT)
    assert taken(record, max_turns=3).episode.end.reason == ep.END_REASON_ERROR_LIMIT


def test_a_file_without_resolutions_has_no_outcomes() -> None:
    found = taken(conversation(resolution_1=None)).episode
    assert (found.outcome, found.end.reason) == (ep.OUTCOME_UNSPECIFIED, ep.END_REASON_RESOLVED)
    assert "--no_resolution" in found.end.detail


def test_an_agent_that_names_its_persona_in_its_own_way() -> None:
    record = conversation(agent_persona_1=" very-helpful")
    assert taken(record).episode.agent_persona == ep.AGENT_PERSONA_VERY_HELPFUL


# -------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"finished": None}, "finished: must be true or false, is null"),
        ({"agent_persona_1": "KIND"}, "agent_persona_1: is 'KIND', must be one of 'DIRECT', 'FAIR'"),
        (
            {"resolution_1": {"resolution_type": "UNKNOWN", "resolution_description": ""}},
            "resolution_1.resolution_type: is 'UNKNOWN', must be one of 'RETURN_REFUND_FULL_BANK'",
        ),
        (
            {"resolution_1": {"resolution_type": "DENY_REFUNDS", "resolution_description": ""}},
            "did you mean 'DENY_REFUND'?",
        ),
        ({"resolution_1": "no"}, "resolution_1: must be an object, is a string"),
        ({"conversation_1": []}, "conversation_1: must have at least 1 elements, has 0"),
        ({"num_conversations": 2}, "num_conversations: is 2, must be 1"),
        ({"conversation_2": []}, "conversation_2: a second conversation of a scenario belongs in a record"),
        ({"conversation_1": [said("user", "Hi")]}, "conversation_1.0.turn: is 'user', must be one of"),
        ({"conversation_1": [said("agent", "Hi"), 3]}, "conversation_1.1: must be an object, is a number"),
        (
            {"conversation_1": [said("agent", "Hi") | {"message": None}]},
            "conversation_1.0.message: must be a",
        ),
        ({"conversation_1": [called() | {"message": "Hi"}]}, "conversation_1.0.message: must be null"),
        ({"conversation_1": [called() | {"tool_calls": []}]}, "conversation_1.0.tool_calls: must have at le"),
        ({"finished": False}, "finished: is false, and yet there is a resolution"),
        ({"finished": False, "resolution_1": None, "customer_withdrew_1": True}, "there is a withdrawal"),
        ({"customer_withdrew_1": True}, "is RETURN_REFUND_PARTIAL_BANK, and yet the customer withdrew"),
        ({"policysweep": {"trial": -1}}, "policysweep.trial: is -1, must be at least 0"),
        ({"policysweep": {"agent": "../up"}}, "policysweep.agent: must be 1 to 63 of"),
        (
            {"policysweep": {"end": {"reason": "TURN_LIMIT", "fault": "AGENT", "detail": ""}}},
            "policysweep.end: is only for a conversation with finished false",
        ),
        (
            {"policysweep": {"end": {"reason": "TURN_LIMIT", "fault": "INFRASTRUCTURE", "detail": ""}}},
            "policysweep.end.fault: is 'INFRASTRUCTURE', must be one of",
        ),
        ({"scenario_id": "other"}, "source_scenario.scenario_id: is not scenario_id, 'other'"),
    ],
)
def test_one_message_says_where_and_what(changes: dict[str, Any], expected: str) -> None:
    [message] = wrong(conversation() | changes)
    assert expected in message


def test_a_tool_result_that_is_no_json_object_is_refused() -> None:
    talk = [said("customer", "Hello"), called(), answered()]
    talk[2]["tool_result"]["result"] = "delivered"
    [message] = wrong(conversation(talk))
    assert message == "conversation_1.2.tool_result.result: must be an object, is a string"


def test_a_missing_or_misspelt_key_is_one_message() -> None:
    record = conversation()
    record["agent_persona"] = record.pop("agent_persona_1")
    assert wrong(record) == ["agent_persona: unknown field; did you mean 'agent_persona_1'?"]
    del record["agent_persona"]
    assert wrong(record) == ["agent_persona_1: is missing"]


def test_a_call_that_nobody_is_known_to_have_made() -> None:
    [message] = wrong(conversation() | {"tool_interactions_1": []})
    assert message.startswith("conversation_1.1.tool_calls.0: get_order_details with id 'call_0' is the next")
    assert message.endswith("so nobody knows who made it")


def test_a_call_that_is_listed_and_never_made() -> None:
    record = conversation()
    record["tool_interactions_1"].append({"tool_name": "x", "tool_call_id": "9", "arguments": {}})
    assert wrong(record) == ["tool_interactions_1.2: has no turn in conversation_1, or one in another order"]


def test_a_result_without_a_call() -> None:
    talk = [said("customer", "Hello"), called(), answered(), answered()]
    [message] = wrong(conversation(talk))
    assert "get_order_details with id 'call_0' was not called, or has its result already" in message


# --------------------------------------------------------------------------------------------------- writing


def unit() -> run_pb2.Unit:
    scenario = scenarios()[0]
    return run_pb2.Unit(
        unit_id="ab" * 16,
        scenario_id=scenario.scenario_id,
        task_id=scenario.task_id,
        agent="strict",
        agent_persona=ep.AGENT_PERSONA_DIRECT,
        trial=1,
    )


def written(**changes: Any) -> dict[str, Any]:
    """The record of an episode of our own, with other parts in place of its own."""
    found = episode(unit())
    for name, value in changes.items():
        found.ClearField(name)  # type: ignore[arg-type]  # any field name
        if value is not None:
            getattr(found, name).CopyFrom(value) if name in ("end",) else setattr(found, name, value)
    return write(run_pb2.UnitRecord(unit=unit(), episode=found), scenarios()[0], 3)


def test_an_episode_of_our_own_is_written_in_the_public_form() -> None:
    record = written()
    assert list(conversation_shape(record)) == []
    assert list(record)[:-1] == list(conversation())
    assert record["scenario_id"] == record["row_id"] == f"{scenarios()[0].scenario_id}_r00003"
    assert record["resolution_1"]["resolution_description"] == (
        "The window is over.\n\nCONDITIONS: none\n\nCUSTOMER NEXT STEPS: keep it; or sell it"
    )
    assert [turn["turn"] for turn in record["conversation_1"]] == [
        "customer",
        "tool_call",
        "tool_result",
        "agent",
        "tool_call",
        "tool_call",
        "tool_result",
        "tool_result",
        "agent",
    ]
    assert record["policysweep"] == {"unit_id": "ab" * 16, "agent": "strict", "trial": 1, "rehearsal": True}


def test_what_was_played_here_comes_back_from_the_public_form() -> None:
    original = episode(unit())
    again = taken(written()).episode
    assert list(again.messages) == list(original.messages)
    assert list(again.customer_tool_events) == list(original.customer_tool_events)
    assert (again.outcome, again.end) == (original.outcome, original.end)
    assert (again.turns, again.agent_persona) == (original.turns, original.agent_persona)
    assert again.rehearsal


def test_arguments_that_are_no_json_stay_as_they_are() -> None:
    calls = [call for turn in written()["conversation_1"] for call in turn["tool_calls"] or ()]
    assert calls[2]["arguments"] == {}
    assert calls[2]["arguments_json"] == '{"broken": '


@pytest.mark.parametrize("depth", [200, 252])
def test_arguments_that_are_nested_as_deep_as_json_goes_can_be_written(depth: int) -> None:
    text = '{"a":' + "[" * depth + "]" * depth + "}"
    found = episode(unit())
    found.messages[1].tool_calls[0].arguments_json = text
    record = write(run_pb2.UnitRecord(unit=unit(), episode=found), scenarios()[0], 0)
    assert taken(record).episode.messages[1].tool_calls[0].arguments_json == text


def test_an_end_that_is_not_clean_keeps_who_failed() -> None:
    end = ep.EpisodeEnd(
        reason=ep.END_REASON_ERROR_LIMIT, fault=ep.FAULT_PARTY_CUSTOMER, detail="3 errors of the customer"
    )
    record = written(end=end, outcome=ep.OUTCOME_UNSPECIFIED, resolution=None)
    assert record["finished"] is False
    assert record["resolution_1"] is None
    assert taken(record).episode.end == end


def test_a_withdrawal_is_written_so_that_the_public_evaluator_sees_it() -> None:
    end = ep.EpisodeEnd(reason=ep.END_REASON_CUSTOMER_WITHDREW, detail="too slow")
    record = written(end=end, outcome=ep.OUTCOME_USER_ABORT, resolution=None)
    assert record["customer_withdrew_1"] is True
    assert record["resolution_1"] == {
        "resolution_type": "USER_ABORT",
        "resolution_description": "The customer withdrew from the conversation.\n\ntoo slow",
    }
    assert taken(record).episode.outcome == ep.OUTCOME_USER_ABORT
