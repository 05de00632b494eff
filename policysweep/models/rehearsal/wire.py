"""The OpenAI wire format as vLLM writes it: completions, stream events, models and errors.

`created` is a constant, because equal requests get equal answers. Every answer carries FINGERPRINT as its
`system_fingerprint`; that is how clients know that nothing in it came from a model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import orjson

from policysweep.models.rehearsal import draws, logprobs, tokens
from policysweep.models.rehearsal.draft import Draft, ToolUse
from policysweep.models.rehearsal.request import Json, ParsedRequest

SCRIPTS_VERSION = 2
"""Raised whenever the scripts write something else than before for the same request."""
FINGERPRINT_PREFIX = "policysweep-rehearsal-"
FINGERPRINT = f"{FINGERPRINT_PREFIX}{SCRIPTS_VERSION}"
OWNER = "policysweep-rehearsal"
_CREATED = 1_767_225_600
_STREAM_CHARACTERS = 24

_ERROR_TYPES = {
    400: "BadRequestError",
    403: "PermissionDeniedError",
    404: "NotFoundError",
    405: "MethodNotAllowedError",
    413: "RequestTooLargeError",
    429: "RateLimitError",
    500: "InternalServerError",
    503: "ServiceUnavailableError",
}


@dataclass(frozen=True, slots=True)
class Completion:
    """A finished answer with its counts."""

    request: ParsedRequest
    draft: Draft
    prompt: tokens.PromptCount
    completion_tokens: int

    @property
    def identifier(self) -> str:
        """The answer's id: equal requests get equal ids."""
        return f"chatcmpl-{self.request.digest}"


def limited(draft: Draft, max_tokens: int | None) -> Draft:
    """The draft cut at the token limit, with finish_reason length if anything was cut."""
    if max_tokens is None or tokens.count_draft(draft) <= max_tokens:
        return draft
    room = max_tokens * tokens.CHARACTERS_PER_TOKEN
    text, room = draft.text[:room], room - len(draft.text)
    uses: list[ToolUse] = []
    for use in draft.tool_uses:
        room -= len(use.name)
        if room <= 0:
            break
        uses.append(ToolUse(use.name, (use.arguments or "")[:room]))
        room -= len(use.arguments or "")
    return replace(draft, text=text, tool_uses=tuple(uses), finish_reason="length")


def completion_document(completion: Completion) -> Json:
    """The body of an answer that is not streamed."""
    request, draft = completion.request, completion.draft
    message: Json = {
        "role": "assistant",
        "content": _content(draft),
        "refusal": draft.refusal,
        "tool_calls": _tool_calls(completion),
    }
    choice = {
        "index": 0,
        "message": message,
        "logprobs": _logprobs(request, draft),
        "finish_reason": draft.finish,
        "stop_reason": None,
    }
    return _envelope(completion, "chat.completion", [choice]) | {"usage": _usage(completion)}


def _content(draft: Draft) -> str | None:
    return None if draft.refusal or (draft.tool_uses and not draft.text) else draft.text


def _tool_calls(completion: Completion) -> list[Json]:
    return [
        {
            "id": f"call_{draws.number(completion.request.digest, position):016x}",
            "type": "function",
            "function": {"name": use.name, "arguments": use.arguments},
        }
        for position, use in enumerate(completion.draft.tool_uses)
    ]


def _logprobs(request: ParsedRequest, draft: Draft) -> Json | None:
    if request.top_logprobs is None:
        return None
    return {"content": logprobs.content(draft.text, request.top_logprobs, request.digest)}


def _usage(completion: Completion) -> Json:
    prompt = completion.prompt
    return {
        "prompt_tokens": prompt.prompt,
        "completion_tokens": completion.completion_tokens,
        "total_tokens": prompt.prompt + completion.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": prompt.cached},
    }


def _envelope(completion: Completion, kind: str, choices: list[Json]) -> Json:
    return {
        "id": completion.identifier,
        "object": kind,
        "created": _CREATED,
        "model": completion.request.model,
        "system_fingerprint": FINGERPRINT,
        "choices": choices,
    }


def stream_events(completion: Completion) -> Iterator[tuple[bytes, int]]:
    """The server-sent events of a streamed answer, each with the tokens that it brings."""
    yield _chunk(completion, {"role": "assistant", "content": ""}), 0
    yield from _text_chunks(completion)
    for index, call in enumerate(_tool_calls(completion)):
        yield from _call_chunks(completion, index, call)
    yield _chunk(completion, {}, finish=completion.draft.finish), 0
    if completion.request.include_usage:
        yield _event(_envelope(completion, "chat.completion.chunk", []) | {"usage": _usage(completion)}), 0
    yield b"data: [DONE]\n\n", 0


def _text_chunks(completion: Completion) -> Iterator[tuple[bytes, int]]:
    draft = completion.draft
    if draft.refusal:
        yield _chunk(completion, {"refusal": draft.refusal}), tokens.count(draft.refusal)
        return
    entries = _logprobs(completion.request, draft)
    if entries is None:
        for piece in _pieces(draft.text):
            yield _chunk(completion, {"content": piece}), tokens.count(piece)
        return
    for entry in entries["content"]:
        yield _chunk(completion, {"content": entry["token"]}, logprobs={"content": [entry]}), 1


def _call_chunks(completion: Completion, index: int, call: Json) -> Iterator[tuple[bytes, int]]:
    function = call["function"]
    head = call | {"index": index, "function": {"name": function["name"], "arguments": ""}}
    yield _chunk(completion, {"tool_calls": [head]}), tokens.count(function["name"])
    for piece in _pieces(function["arguments"] or ""):
        yield (
            _chunk(completion, {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}),
            tokens.count(piece),
        )


def _pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), _STREAM_CHARACTERS):
        yield text[start : start + _STREAM_CHARACTERS]


def _chunk(
    completion: Completion, delta: Json, finish: str | None = None, logprobs: Json | None = None
) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
    return _event(_envelope(completion, "chat.completion.chunk", [choice]))


def _event(body: Json) -> bytes:
    return b"data: " + orjson.dumps(body) + b"\n\n"


def models_body(models: list[str], max_model_len: int) -> bytes:
    """The body of GET /v1/models."""
    cards: list[dict[str, Any]] = [
        {
            "id": model,
            "object": "model",
            "created": _CREATED,
            "owned_by": OWNER,
            "root": model,
            "parent": None,
            "max_model_len": max_model_len,
        }
        for model in models
    ]
    return orjson.dumps({"object": "list", "data": cards})


def error_body(message: str, status: int, param: str | None = None) -> bytes:
    """An error body of the given HTTP status."""
    kind = _ERROR_TYPES.get(status, "BadRequestError")
    return orjson.dumps({"error": {"message": message, "type": kind, "param": param, "code": status}})
