"""A task as a model reads it: what the customer, the agent and the tools wrote, every line of it quoted.

A quoted line begins with "| ", and nothing that a prompt itself says does. A message that holds a heading,
another turn or an order to the reader therefore stays visibly what it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from policysweep.v1 import episode_pb2 as ep

PREFIX = "| "
MESSAGE_CHARACTERS = 4_000
"""Characters shown of one message, or of one call's arguments."""
RESULT_CHARACTERS = 1_500
"""Characters shown of one tool result."""

# Control tokens of common chat templates would end the quoted text for the model; a blank breaks them.
_CONTROL = re.compile(r"<(?=[|\uff5c]|/?s>|(?:start|end)_of_turn>)|\[(?=/?INST\])")
_SPEAKERS = {ep.ROLE_CUSTOMER: "CUSTOMER", ep.ROLE_AGENT: "AGENT", ep.ROLE_TOOL: "TOOL"}


def quoted(text: str, limit: int | None = None) -> str:
    """`text` with every line quoted, and cut after `limit` characters with a note that says so."""
    note = ""
    if limit is not None and len(text) > limit:
        note = f"\n(cut here: {len(text) - limit} of {len(text)} characters are left out)"
        text = text[:limit]
    text = _CONTROL.sub(lambda found: f"{found.group()} ", text)
    return PREFIX + f"\n{PREFIX}".join(text.splitlines() or [""]) + note


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
