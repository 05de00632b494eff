"""The model declares an outcome by a tool call; the contract carries it in a field of its own; pure.

A valid declaration leaves the tool calls and becomes the field. Any other stays among the calls verbatim, so
that it is scored like every call that a model gets wrong, and the model is told why on its next turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from policysweep.domains.returns.resolution import RESOLUTION_TOOL, outcome_name, parse_resolution
from policysweep.v1 import agent_pb2
from policysweep.v1 import episode_pb2 as ep


@dataclass(frozen=True, slots=True)
class Declaration:
    """What an answer declares. `resolution` is None when it declares nothing valid.

    `closing` is the text to the customer that came with it, `calls` are the calls that remain.
    """

    resolution: ep.Resolution | None
    closing: str
    calls: Sequence[ep.ToolCall]


def split_declaration(
    calls: Sequence[ep.ToolCall], options: Sequence[agent_pb2.ResolutionOption]
) -> Declaration:
    """Take a valid declaration of one of `options` out of the calls of one answer."""
    try:
        resolution, closing = _read(calls, options)
    except ValueError:
        return Declaration(None, "", calls)
    return Declaration(resolution, closing, [call for call in calls if call.name != RESOLUTION_TOOL])


def refusal_of(call_id: str, request: agent_pb2.RespondRequest) -> str:
    """Why the declaration with this call id was not accepted, as a tool result for the model."""
    reason = "it is not part of this conversation"
    for message in request.messages:
        if any(call.id == call_id for call in message.tool_calls):
            try:
                _read(message.tool_calls, request.resolution_options)
            except ValueError as error:
                reason = str(error)
            else:
                reason = "another call of the same message failed"
    refusal = {"status": "error", "error": f"The resolution was not accepted: {reason}. The case is open."}
    return orjson.dumps(refusal).decode()


def _read(
    calls: Sequence[ep.ToolCall], options: Sequence[agent_pb2.ResolutionOption]
) -> tuple[ep.Resolution, str]:
    """The one valid declaration among `calls` with its closing text; ValueError says why there is none."""
    declared = [call for call in calls if call.name == RESOLUTION_TOOL]
    if len(declared) != 1:
        raise ValueError(f"one message declares one outcome, not {len(declared)}")
    resolution, closing = parse_resolution(declared[0].arguments_json)
    if all(option.outcome != resolution.outcome for option in options):
        raise ValueError(f"{outcome_name(resolution.outcome)} is not among the outcomes offered")
    return resolution, closing
