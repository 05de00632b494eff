"""Between the OpenAI chat-completion format and the contract's messages; pure, no I/O.

    ChatRequest  --request_body-->  JSON bytes  ~~> model server ~~>  JSON bytes  --parse_reply-->  ChatReply

Model servers agree on the outline of the format and on little else. `parse_reply` therefore accepts
every shape that is known to occur and draws one line: what the *model* wrote is passed on verbatim,
however broken (that is a result), and what the *server* broke is a ModelServerGarbled (that is none).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson

from policysweep.errors import ModelServerGarbled, ModelServerUnavailable, PolicysweepError
from policysweep.models.chat import ChatReply, ChatRequest, Json, TokenLogprob
from policysweep.models.refusals import refusal_in_reply
from policysweep.v1 import agent_pb2
from policysweep.v1 import episode_pb2 as ep

REHEARSAL_PREFIX = "policysweep-rehearsal"
"""The rehearsal server's `system_fingerprint`, and its models' `owned_by`, start with this."""

_INT32_MAX = 2**31 - 1

_FINISH_REASONS: Mapping[object, ep.FinishReason.ValueType] = {
    "stop": ep.FINISH_REASON_STOP,
    "tool_calls": ep.FINISH_REASON_TOOL_CALLS,
    "function_call": ep.FINISH_REASON_TOOL_CALLS,
    "length": ep.FINISH_REASON_LENGTH,
    "content_filter": ep.FINISH_REASON_CONTENT_FILTER,
}

_FUNCTION_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NO_FUNCTION_NAME = re.compile(r"[^A-Za-z0-9_-]")

# vLLM and SGLang end an answer with "abort" when they drain, gateways with "error" when a replica died.
# What was written until then is no answer of the model.
_CUT_BY_SERVER = frozenset({"abort", "error"})


def request_body(model: str, request: ChatRequest) -> bytes:
    """The JSON body of `request`, for the served model named `model`.

    Tools and messages may hold `orjson.Fragment`s, so that a caller serialises what never changes once.
    """
    body: dict[str, Any] = {"model": model, "messages": _replayable(request.messages), "stream": False}
    if request.tools:
        body["tools"] = request.tools
        if request.tool_choice is not None:
            body["tool_choice"] = request.tool_choice
    if request.response_schema is not None:
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {
                "name": request.response_schema.name,
                "schema": request.response_schema.schema,
                "strict": True,
            },
        }
    _add_sampling(body, request.sampling)
    if request.seed is not None:
        body["seed"] = request.seed
    if request.top_logprobs:
        body["logprobs"] = True
        body["top_logprobs"] = request.top_logprobs
    return orjson.dumps(body, default=_as_builtin)


def tokenize_body(model: str, request: ChatRequest) -> bytes:
    """The JSON body that asks vLLM's /tokenize how many tokens the prompt of `request` has."""
    body: dict[str, Any] = {"model": model, "messages": _replayable(request.messages)}
    if request.tools:
        body["tools"] = request.tools
    return orjson.dumps(body, default=_as_builtin)


def parse_token_count(body: bytes, where: str) -> int:
    """The count in an answer of /tokenize; ModelServerGarbled for one in another dialect."""
    count = _count(parse_object(body, where).get("count"))
    if not count:
        raise ModelServerGarbled(f"{where} did not answer /tokenize with a count of tokens")
    return count


def _replayable(messages: Sequence[Json]) -> Sequence[Json]:
    """`messages`, with the earlier calls that a model got wrong put so that servers accept them back.

    Servers parse the calls of the history to fill the chat template. vLLM and llama.cpp refuse the whole
    request when arguments are not a JSON object, and others when a name is none: one malformed call, which
    is a result, would make every later request of the conversation fail, which is none.
    """
    if all(_is_replayable(call) for call in _calls(messages)):
        return messages
    return [
        {**message, "tool_calls": [_mended(call) for call in calls]}
        if (calls := _calls([message]))
        else message
        for message in messages
    ]


def _calls(messages: Sequence[Json]) -> list[Json]:
    """All tool calls in `messages`. An orjson.Fragment is passed over: who serialised it answers for it."""
    return [
        call
        for message in messages
        if isinstance(message, dict) and "tool_calls" in message
        for call in message["tool_calls"]
    ]


def _is_replayable(call: Json) -> bool:
    function = call["function"]
    return _FUNCTION_NAME.fullmatch(function["name"]) is not None and _is_object(function["arguments"])


def _is_object(arguments: str) -> bool:
    try:
        return isinstance(orjson.loads(arguments), dict)
    except orjson.JSONDecodeError:
        return False


def _mended(call: Json) -> Json:
    """The call with its text kept whole inside a JSON object, and a name of allowed characters."""
    name, arguments = call["function"]["name"], call["function"]["arguments"]
    if not _is_object(arguments):
        arguments = orjson.dumps({"unparsed_arguments": arguments}).decode()
    name = _NO_FUNCTION_NAME.sub("_", name)[:64] or "unnamed"
    return {**call, "function": {"name": name, "arguments": arguments}}


def _add_sampling(body: dict[str, Any], sampling: agent_pb2.Sampling) -> None:
    # A temperature of 0 is greedy and must be said: servers default to the model's own. The other two
    # are unset at 0. `max_tokens` is the one name that all open model servers know.
    body["temperature"] = sampling.temperature
    if sampling.top_p:
        body["top_p"] = sampling.top_p
    if sampling.max_tokens:
        body["max_tokens"] = sampling.max_tokens


def _as_builtin(value: object) -> object:
    """Let orjson write any sequence or mapping, for example a tuple of tools or a frozen schema."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"a chat request cannot hold a {type(value).__name__}")


def parse_reply(body: bytes, request: ChatRequest, *, latency_seconds: float, where: str) -> ChatReply:
    """The reply in `body`, the JSON of a chat completion.

    Raises ModelServerGarbled when it is none, ModelServerUnavailable when the server cut the answer, and
    what `refusal_in_reply` finds in an error that was sent as a success. `where` names the server in
    messages.
    """
    garbled = _garbled_at(where)
    document = parse_object(body, where)
    choice = _first_choice(document, where)
    message = choice.get("message")
    if not isinstance(message, dict):
        raise garbled("the first choice has no message")
    finish_reason = choice.get("finish_reason")
    if isinstance(finish_reason, str) and finish_reason in _CUT_BY_SERVER:
        raise ModelServerUnavailable(f"{where} cut its own answer: finish_reason is {finish_reason!r}")
    return ChatReply(
        text=_text(message, garbled) or _misplaced(message, request),
        tool_calls=_tool_calls(message, request.messages, garbled),
        finish_reason=_finish_reason(finish_reason),
        usage=_usage(document.get("usage"), latency_seconds),
        rehearsal=is_rehearsal(document.get("system_fingerprint")),
        logprobs=_logprobs(choice.get("logprobs"), garbled) if request.top_logprobs else (),
    )


def is_rehearsal(mark: object) -> bool:
    """Whether `mark`, a `system_fingerprint` or an `owned_by`, is the rehearsal server's."""
    return isinstance(mark, str) and mark.startswith(REHEARSAL_PREFIX)


_Garbled = Callable[[str], PolicysweepError]


def _garbled_at(where: str) -> _Garbled:
    return lambda what: ModelServerGarbled(f"{where} did not answer with a chat completion: {what}")


def parse_object(body: bytes, where: str) -> dict[str, Any]:
    """The JSON object in `body`; ModelServerGarbled when it is not one, for example half of one."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        document = _parse_leniently(body, where)
    if not isinstance(document, dict):
        raise _garbled_at(where)("the body is not a JSON object")
    return document


def _parse_leniently(body: bytes, where: str) -> object:
    """Read what strict JSON forbids and servers written in Python send: NaN, and halves of surrogate pairs.

    The halves come out as "?", because they cannot be sent on.
    """
    try:
        loose = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _garbled_at(where)(f"{len(body)} bytes that are not JSON ({error})") from None
    return json.loads(json.dumps(loose, ensure_ascii=False).encode("utf-8", "replace"))


def _first_choice(document: Json, where: str) -> dict[str, Any]:
    choices = document.get("choices")
    if not isinstance(choices, list) or not choices:
        raise refusal_in_reply(document, where) or _garbled_at(where)("it has no choices")
    if not isinstance(choices[0], dict):
        raise _garbled_at(where)("the first choice is not an object")
    return choices[0]


def _text(message: Json, garbled: _Garbled) -> str:
    content = message.get("content")
    if content is None:
        content = message.get("refusal")
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(_part_text(part) for part in content)
    raise garbled("the content is neither text nor a list of parts")


def _misplaced(message: Json, request: ChatRequest) -> str:
    """A structured answer that the server took for reasoning, as vLLM does for models that do not reason.

    Reasoning itself is private to the model and never becomes its answer.
    """
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    wanted = request.response_schema is not None and isinstance(reasoning, str) and _is_object(reasoning)
    return str(reasoning) if wanted else ""


def _part_text(part: object) -> str:
    text = part.get("text") if isinstance(part, dict) else part
    return text if isinstance(text, str) else ""


def _tool_calls(message: Json, history: Sequence[Json], garbled: _Garbled) -> list[ep.ToolCall]:
    calls = message.get("tool_calls")
    if not calls:
        legacy = message.get("function_call")
        if not legacy:
            return []
        calls = [{"function": legacy}]
    if not isinstance(calls, list):
        raise garbled("tool_calls is not a list")
    return _with_unique_ids([_tool_call(call, garbled) for call in calls], history)


def _tool_call(call: object, garbled: _Garbled) -> ep.ToolCall:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(call, dict) or not isinstance(function, dict):
        raise garbled("a tool call has no function")
    name = function.get("name") or ""
    if not isinstance(name, str):
        raise garbled("the name of a tool call is not text")
    identifier = call.get("id")
    return ep.ToolCall(
        id="" if identifier is None else str(identifier),
        name=name,
        arguments_json=_arguments(function.get("arguments")),
    )


def _arguments(arguments: object) -> str:
    """Text verbatim, however broken; an object as its JSON; nothing as an empty object."""
    if isinstance(arguments, str):
        return arguments
    return "{}" if arguments is None else orjson.dumps(arguments).decode()


def _with_unique_ids(calls: list[ep.ToolCall], history: Sequence[Json]) -> list[ep.ToolCall]:
    """Replace ids that are missing or were used before; the contract wants them unique in an episode.

    The substitute is derived from the length of the conversation, so that a repeated call gets the same.
    """
    used = {call.get("id") for call in _calls(history)}
    for index, call in enumerate(calls):
        if not call.id or call.id in used:
            call.id = _free_id(f"call_{len(history)}_{index}", used)
        used.add(call.id)
    return calls


def _free_id(candidate: str, used: set[Any]) -> str:
    while candidate in used:
        candidate += "_"
    return candidate


def _finish_reason(reason: object) -> ep.FinishReason.ValueType:
    known = _FINISH_REASONS.get(reason) if isinstance(reason, str) else None
    return ep.FINISH_REASON_UNSPECIFIED if known is None else known


def _usage(usage: object, latency_seconds: float) -> ep.Usage:
    counts = usage if isinstance(usage, dict) else {}
    details = counts.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    return ep.Usage(
        prompt_tokens=_count(counts.get("prompt_tokens")),
        cached_prompt_tokens=_count(cached),
        completion_tokens=_count(counts.get("completion_tokens")),
        latency_seconds=latency_seconds,
        model_calls=1,
    )


def _count(value: object) -> int | None:
    """A number of tokens, or None: what is not reported, or not a count, stays absent."""
    return value if type(value) is int and 0 <= value <= _INT32_MAX else None


def _logprobs(logprobs: object, garbled: _Garbled) -> list[TokenLogprob]:
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    if content is None:
        return []
    try:
        return [_token_logprob(entry) for entry in content]
    except (AttributeError, KeyError, TypeError, ValueError):
        raise garbled("the logprobs are not in the chat-completion format") from None


def _token_logprob(entry: Mapping[str, Any]) -> TokenLogprob:
    """Two tokens may read the same; the likelier one, which comes first, stands."""
    alternatives: dict[str, float] = {}
    for place in (*(entry.get("top_logprobs") or ()), entry):
        if place["logprob"] is not None:
            alternatives.setdefault(place["token"], float(place["logprob"]))
    return TokenLogprob(token=entry["token"], alternatives=alternatives)
