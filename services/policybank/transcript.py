"""A task as a model reads it: what the customer, the agent and the tools wrote, every line of it quoted."""

from __future__ import annotations

from collections.abc import Iterator

from policysweep.quoting import quoted
from policysweep.v1 import episode_pb2 as ep

MESSAGE_CHARACTERS = 4_000
"""Characters shown of one message, or of one call's arguments."""
RESULT_CHARACTERS = 1_500
"""Characters shown of one tool result."""

_SPEAKERS = {ep.ROLE_CUSTOMER: "CUSTOMER", ep.ROLE_AGENT: "AGENT", ep.ROLE_TOOL: "TOOL"}


def transcript(episode: ep.Episode) -> str:
    """The conversation in order, one block a message or call."""
    return "\n".join(line for message in episode.messages for line in _turn(message))


def _turn(message: ep.Message) -> Iterator[str]:
    speaker = _SPEAKERS.get(message.role, "UNKNOWN")
    if message.role == ep.ROLE_TOOL:
        failed = message.tool_status not in (ep.TOOL_STATUS_OK, ep.TOOL_STATUS_UNSPECIFIED)
        yield f"TOOL refuses {message.tool_name}" if failed else f"TOOL answers {message.tool_name}"
        yield quoted(message.content, RESULT_CHARACTERS)
        return
    if message.content or not message.tool_calls:
        yield speaker
        yield quoted(message.content, MESSAGE_CHARACTERS)
    for call in message.tool_calls:
        yield f"{speaker} calls a tool"
        yield quoted(f"{call.name} {call.arguments_json}", MESSAGE_CHARACTERS)
