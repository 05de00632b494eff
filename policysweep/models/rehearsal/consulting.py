"""How an agent's script reads a policy bank, where `retrieve_policy` is offered: headers first, then entries.

It reads once, at the beginning, and picks the entries that share most words with the customer's request.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from policysweep.models.rehearsal.draft import Draft, ToolUse
from policysweep.models.rehearsal.request import ParsedRequest, text_of

_RETRIEVE = "retrieve_policy"
_MOST_ENTRIES = 8
_WORD = re.compile(r"[a-z]{4,}")


def calls(request: ParsedRequest) -> list[tuple[str, str]]:
    """The calls that the agent has made: tool and arguments, verbatim."""
    return [
        (call["function"]["name"], call["function"].get("arguments") or "")
        for message in request.messages
        if message["role"] == "assistant"
        for call in message.get("tool_calls") or ()
    ]


def consult(request: ParsedRequest, opening: str) -> Draft | None:
    """The next call of retrieve_policy; None when it is not offered or all was read."""
    if _RETRIEVE not in request.functions:
        return None
    made = [arguments for name, arguments in calls(request) if name == _RETRIEVE]
    if not made:
        return Draft(tool_uses=(ToolUse.of(_RETRIEVE, {}),))
    if len(made) == 1 and (chosen := _about(_headers(request), opening)):
        return Draft(tool_uses=(ToolUse.of(_RETRIEVE, {"capability_ids": chosen}),))
    return None


def _headers(request: ParsedRequest) -> Mapping[str, str]:
    """Header by capability id, from the last tool result that is JSON."""
    for message in reversed(request.messages):
        if message["role"] == "tool":
            try:
                return dict(_identified(orjson.loads(text_of(message))))
            except orjson.JSONDecodeError:
                return {}
    return {}


def _identified(value: Any) -> Sequence[tuple[str, str]]:
    """All objects with a capability_id anywhere in a JSON value."""
    if isinstance(value, list):
        return [pair for item in value for pair in _identified(item)]
    if not isinstance(value, dict):
        return []
    if isinstance(identifier := value.get("capability_id"), str):
        return [(identifier, orjson.dumps(value).decode())]
    return [pair for item in value.values() for pair in _identified(item)]


def _about(headers: Mapping[str, str], opening: str) -> list[str]:
    """The entries that share most words with the user's request."""
    words = set(_WORD.findall(opening.lower()))
    shared = {
        identifier: len(words & set(_WORD.findall(text.lower()))) for identifier, text in headers.items()
    }
    ranked = sorted(shared, key=lambda identifier: (-shared[identifier], identifier))
    return ranked[:_MOST_ENTRIES]
