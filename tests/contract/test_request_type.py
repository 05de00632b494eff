"""What an agent can be told at all. A field that is added here is a decision about leakage."""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.descriptor import Descriptor

from policysweep.v1 import agent_pb2

ALLOWED = {
    "episode_id",
    "step",
    "policy",
    "policy.primary",
    "policy.primary.url",
    "policy.primary.text",
    "policy.related",
    "policy.related.url",
    "policy.related.text",
    "case_brief",
    "tools",
    "tools.name",
    "tools.description",
    "tools.parameters_json",
    "messages",
    "messages.role",
    "messages.content",
    "messages.tool_calls",
    "messages.tool_calls.id",
    "messages.tool_calls.name",
    "messages.tool_calls.arguments_json",
    "messages.tool_call_id",
    "messages.tool_name",
    "messages.tool_status",
    "resolution_options",
    "resolution_options.outcome",
    "resolution_options.description",
    "agent_persona",
    "bank_id",
    "bank_revision",
    "seed",
    "continuation",
}


def paths(message: Descriptor, prefix: str = "") -> Iterator[str]:
    for field in message.fields:
        yield prefix + field.name
        if field.message_type is not None:
            yield from paths(field.message_type, f"{prefix}{field.name}.")


def test_an_agent_has_no_field_for_private_information() -> None:
    assert set(paths(agent_pb2.RespondRequest.DESCRIPTOR)) == ALLOWED
