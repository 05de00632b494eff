"""`retrieve_policy`: the tool by which a model reads a policy bank in two steps; pure.

Called without arguments it answers with the headers of all entries, called with ids with those entries in
full. It is between the agent service and its model: the simulator never sees it.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from policysweep.bank_text import entry_text
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import policybank_pb2 as pb

RETRIEVE_TOOL = "retrieve_policy"

_IDS = "capability_ids"
TOOL = ep.ToolDefinition(
    name=RETRIEVE_TOOL,
    description="Reads your policy bank. Without arguments: the capability id and header of every entry. "
    f"With {_IDS}: those entries in full.",
    parameters_json=orjson.dumps(
        {
            "type": "object",
            "properties": {
                _IDS: {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "Capability ids as listed, at most ten; leave out to list all entries.",
                }
            },
            "additionalProperties": False,
        }
    ).decode(),
)


class BadArguments(ValueError):
    """Arguments of a look-up that cannot be used; the message is for the model."""


def wanted_ids(arguments_json: str) -> Sequence[str]:
    """The ids that a call asks for; none for a list of the headers. Raises BadArguments."""
    try:
        arguments = orjson.loads(arguments_json or "{}")
    except orjson.JSONDecodeError:
        raise BadArguments("the arguments are not JSON") from None
    if arguments is None:
        return ()
    if not isinstance(arguments, dict):
        raise BadArguments("the arguments are not a JSON object")
    ids = arguments.get(_IDS)
    if ids is None:
        return ()
    if not isinstance(ids, list) or not all(isinstance(each, str) for each in ids):
        raise BadArguments(f"{_IDS} must be a list of texts")
    return list(dict.fromkeys(ids))


def headers_answer(headers: Sequence[pb.Header]) -> str:
    """The headers of a bank as a tool result."""
    listed = [{"capability_id": each.capability_id, "header": each.header} for each in headers]
    return orjson.dumps({"entries": listed}).decode()


def specs_answer(found: pb.BatchGetSpecsResponse) -> str:
    """Entries in full as a tool result."""
    answer: dict[str, object] = {
        "entries": [
            {"capability_id": entry.capability_id, "entry": entry_text(entry)} for entry in found.entries
        ]
    }
    if found.unknown_ids:
        answer["unknown_capability_ids"] = list(found.unknown_ids)
    return orjson.dumps(answer).decode()


def refusal(problem: str) -> str:
    """A tool result that says why a call led to nothing."""
    return orjson.dumps({"status": "error", "error": problem}).decode()
