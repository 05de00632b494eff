"""Faults in the shape of an answer: what the model wrote is sound, how the server puts it is odd or broken.

Each is a shape that some release of a model server or gateway has sent. They apply to answers that are not
streamed. A shape of tool calls needs a request that offers tools; any other answer stays as it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import orjson

from policysweep.models.rehearsal.faults import FaultKind
from policysweep.models.rehearsal.request import Json

_THOUGHT = "The customer wants an answer. Let me think about what the policy says before I give one."


def shaped(document: Json, fault: FaultKind | None) -> bytes:
    """The body of a chat completion, spoilt by `fault` if that is a fault of the shape."""
    if fault is not None and fault in _BODIES:
        return _BODIES[fault](document)
    if fault is not None and fault in _SHAPES:
        _SHAPES[fault](document)
    return orjson.dumps(document)


# ------------------------------------------------------------------- the answer


def _message(document: Json) -> Json:
    message: Json = document["choices"][0]["message"]
    return message


def _no_choices(document: Json) -> None:
    document["choices"] = []


def _no_message(document: Json) -> None:
    del document["choices"][0]["message"]


def _finish(reason: str | None) -> Callable[[Json], None]:
    def shape(document: Json) -> None:
        document["choices"][0]["finish_reason"] = reason

    return shape


def _null_content(document: Json) -> None:
    _message(document).update(content=None, refusal=None, tool_calls=[])
    _finish("stop")(document)


def _content_parts(document: Json) -> None:
    """The text in two parts, as multimodal servers give it."""
    message = _message(document)
    text = message["content"] or ""
    halves = text[: len(text) // 2], text[len(text) // 2 :]
    message["content"] = [{"type": "text", "text": half} for half in halves]


def _with_reasoning(field: str) -> Callable[[Json], None]:
    def shape(document: Json) -> None:
        _message(document)[field] = _THOUGHT

    return shape


def _think_tags(document: Json) -> None:
    """Reasoning in the text: what comes of a reasoning model without a reasoning parser."""
    message = _message(document)
    message["content"] = f"<think>{_THOUGHT}</think>{message['content'] or ''}"


def _misplaced_answer(document: Json) -> None:
    """The whole answer as reasoning: what comes of a reasoning parser that waits for an end tag in vain."""
    message = _message(document)
    message.update(reasoning_content=message["content"] or _THOUGHT, content=None, tool_calls=[])
    _finish("stop")(document)


def _no_usage(document: Json) -> None:
    del document["usage"]


def _null_usage_details(document: Json) -> None:
    document["usage"]["prompt_tokens_details"] = None


# ------------------------------------------------------------------- tool calls


def _calls(document: Json) -> list[Json]:
    return list(_message(document)["tool_calls"] or ())


def _empty_tool_calls(document: Json) -> None:
    """No call, where the finish reason says that there is one."""
    _message(document)["tool_calls"] = []


def _null_tool_calls(document: Json) -> None:
    """Null in the place of no calls."""
    _message(document)["tool_calls"] = _calls(document) or None


def _each_call(change: Callable[[Json], None]) -> Callable[[Json], None]:
    def shape(document: Json) -> None:
        for call in _calls(document):
            change(call)

    return shape


def _object_arguments(call: Json) -> None:
    with suppress(orjson.JSONDecodeError):  # the answer's token limit cut them: then they stay text
        call["function"]["arguments"] = orjson.loads(call["function"]["arguments"])


def _call_id(value: str | None) -> Callable[[Json], None]:
    def change(call: Json) -> None:
        call["id"] = value

    return change


def _missing_name(call: Json) -> None:
    del call["function"]["name"]


# ------------------------------------------------------------------- whole bodies


def _html(document: Json) -> bytes:
    """A login page or the front page of a proxy."""
    return b"<!DOCTYPE html><html><body><h1>Welcome</h1></body></html>"


def _error(**fields: Any) -> Callable[[Json], bytes]:
    return lambda document: orjson.dumps({"error": fields})


def _half_surrogate(document: Json) -> bytes:
    """Half of an emoji at the end, as a server in Python writes a token that was cut in two."""
    message = _message(document)
    message["content"] = f"{message['content'] or ''} \ud83d"
    return json.dumps(document).encode()


_SHAPES: Mapping[FaultKind, Callable[[Json], None]] = {
    FaultKind.NO_CHOICES: _no_choices,
    FaultKind.NO_MESSAGE: _no_message,
    FaultKind.CUT_BY_SERVER: _finish("abort"),
    FaultKind.NULL_CONTENT: _null_content,
    FaultKind.CONTENT_PARTS: _content_parts,
    FaultKind.REASONING_CONTENT: _with_reasoning("reasoning_content"),
    FaultKind.REASONING: _with_reasoning("reasoning"),
    FaultKind.THINK_TAGS: _think_tags,
    FaultKind.MISPLACED_ANSWER: _misplaced_answer,
    FaultKind.UNKNOWN_FINISH_REASON: _finish("eos_token"),
    FaultKind.NULL_FINISH_REASON: _finish(None),
    FaultKind.NO_USAGE: _no_usage,
    FaultKind.NULL_USAGE_DETAILS: _null_usage_details,
    FaultKind.EMPTY_TOOL_CALLS: _empty_tool_calls,
    FaultKind.NULL_TOOL_CALLS: _null_tool_calls,
    FaultKind.OBJECT_ARGUMENTS: _each_call(_object_arguments),
    FaultKind.DUPLICATE_CALL_IDS: _each_call(_call_id("call_0")),
    FaultKind.MISSING_CALL_IDS: _each_call(_call_id(None)),
    FaultKind.MISSING_NAME: _each_call(_missing_name),
    FaultKind.CALL_WITH_STOP: _finish("stop"),
    FaultKind.CALL_WITH_REASONING: _with_reasoning("reasoning_content"),
}

_BODIES: Mapping[FaultKind, Callable[[Json], bytes]] = {
    FaultKind.HTML: _html,
    FaultKind.ERROR_IN_200: _error(message="CUDA out of memory", code=500),
    FaultKind.OVERFLOW_IN_200: _error(
        message="the request exceeds the available context size", type="exceed_context_size_error", code=400
    ),
    FaultKind.HALF_SURROGATE: _half_surrogate,
}

SHAPE_FAULTS = frozenset({*_SHAPES, *_BODIES})
"""The faults that are found here."""
