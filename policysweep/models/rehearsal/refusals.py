"""Faults that come as a status instead of an answer, in the words of servers and gateways."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import orjson

from policysweep.models.rehearsal import wire
from policysweep.models.rehearsal.faults import FaultKind

_ABSURD_SECONDS = 10**9
_JSON = "application/json"
_HTML = "text/html"


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer that is none."""

    status: int
    body: bytes
    content_type: str = _JSON
    headers: Mapping[str, str] = field(default_factory=dict)


def _plain(status: int, **headers: str) -> Refusal:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Refusal(status, wire.error_body(f"Injected fault: status {status}.", status), headers=names)


def _page(status: int, words: str) -> Refusal:
    """What a gateway says in a server's place."""
    return Refusal(status, f"<html><body><h1>{status} {words}</h1></body></html>".encode(), _HTML)


def _overflow(status: int, body: object) -> Callable[[float], Refusal]:
    return lambda wait: Refusal(status, orjson.dumps(body))


def _date(seconds: float) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


REFUSALS: Mapping[FaultKind, Callable[[float], Refusal]] = {
    FaultKind.HTTP_400: lambda wait: _plain(400),
    FaultKind.HTTP_401: lambda wait: Refusal(401, b'{"error": "Unauthorized"}'),
    FaultKind.HTTP_403: lambda wait: _plain(403),
    FaultKind.HTTP_404: lambda wait: _plain(404),
    FaultKind.HTTP_408: lambda wait: _plain(408),
    FaultKind.HTTP_413: lambda wait: _page(413, "Request Entity Too Large"),
    FaultKind.HTTP_422: lambda wait: Refusal(
        422,
        orjson.dumps({"detail": [{"loc": ["body", "seed"], "msg": "Input should be less", "type": "lt"}]}),
    ),
    FaultKind.HTTP_429: lambda wait: _plain(429, Retry_After=f"{wait:g}"),
    FaultKind.HTTP_429_DATE: lambda wait: _plain(429, Retry_After=_date(wait)),
    FaultKind.HTTP_429_ABSURD: lambda wait: _plain(429, Retry_After=str(_ABSURD_SECONDS)),
    FaultKind.HTTP_500: lambda wait: _plain(500),
    FaultKind.HTTP_502: lambda wait: _page(502, "Bad Gateway"),
    FaultKind.HTTP_503: lambda wait: _plain(503, Retry_After=f"{wait:g}"),
    FaultKind.HTTP_503_BARE: lambda wait: _plain(503),
    FaultKind.HTTP_504: lambda wait: _page(504, "Gateway Time-out"),
    FaultKind.REDIRECT: lambda wait: Refusal(307, b"", headers={"Location": "http://elsewhere.invalid/v1"}),
    FaultKind.OVERFLOW_VLLM: lambda wait: Refusal(
        400,
        wire.error_body(
            "This model's maximum context length is 8192 tokens. Your prompt has 9001 input tokens.",
            400,
            "input_tokens",
        ),
    ),
    FaultKind.OVERFLOW_OPENAI: _overflow(
        400,
        {
            "error": {
                "message": "Your input exceeds the context window of this model.",
                "type": "invalid_request_error",
                "param": "messages",
                "code": "context_length_exceeded",
            }
        },
    ),
    FaultKind.OVERFLOW_SGLANG: _overflow(
        400,
        {
            "object": "error",
            "message": "The input (9001 tokens) is longer than the model's context length (8192 tokens).",
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        },
    ),
    FaultKind.OVERFLOW_TGI: _overflow(
        422,
        {
            "error": "Input validation error: `inputs` must have less than 8192 tokens. Given: 9001",
            "error_type": "validation",
        },
    ),
    FaultKind.OVERFLOW_LLAMA_CPP: _overflow(
        400,
        {
            "error": {
                "code": 400,
                "message": "request (9001 tokens) exceeds the available context size (8192 tokens)",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 9001,
                "n_ctx": 8192,
            }
        },
    ),
}
"""By kind, the answer; it may depend on the seconds that a client is asked to wait."""
