"""What a model server means by an error: one of the project's own errors; pure, no I/O.

Servers word the same refusal differently. The status decides, except where a prompt that does not fit has
to be told apart from a wrong request: that one is a result of its own class and must be recognised by its
words.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import orjson

from policysweep.errors import (
    ContextOverflow,
    ModelServerBusy,
    ModelServerGarbled,
    ModelServerRejected,
    ModelServerTimeout,
    ModelServerUnavailable,
    PolicysweepError,
)

_MESSAGE_LIMIT = 300

LONGEST_WAIT = 600.0
"""Seconds that a Retry-After is believed. A server that asks for more has a fault, or its clock has."""

_OVERFLOW_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error"})

_OVERFLOW_WORDS = re.compile(
    r"maximum context length"  # OpenAI, vLLM, SGLang
    r"|model'?s context length"  # SGLang; vLLM from 0.15
    r"|maximum model length"  # vLLM, decoder prompt
    r"|max_tokens must be at least 1, got -"  # vLLM before 0.6
    r"|context (?:size|window|length)[^.]{0,40}exceeded"  # LM Studio
    r"|exceeds? (?:the )?(?:available |maximum )?context (?:size|window|length)"  # llama.cpp
    r"|exceeds the maximum allowed length"  # SGLang, input longer than its cache
    r"|`?inputs`? (?:tokens \+ `?max_new_tokens`? must be|must have less than \d+ tokens)"  # TGI
    r"|prompt is too long",  # gateways to Anthropic models
    re.IGNORECASE,
)

_OVERFLOW_STATUSES = frozenset({400, 413, 422})


def refusal(status: int, retry_after: str | None, body: bytes, *, where: str) -> PolicysweepError:
    """The error that an answer of HTTP status `status` (not 200) amounts to.

    `retry_after` is the header of that name, `body` the answer's. The message holds the server's own words.
    """
    error = _error_object(_loads(body))
    said = _said(error, body)
    message = f"{where} answered {status}: {said}"
    if _is_overflow(error, said if status in _OVERFLOW_STATUSES else ""):
        return ContextOverflow(message)
    if status == 429 or (status == 503 and retry_after is not None):
        return ModelServerBusy(message, retry_after=_seconds(retry_after))
    if status >= 500:
        return ModelServerUnavailable(message)
    if status == 408:
        return ModelServerTimeout(message)
    return ModelServerRejected(message)


def refusal_in_reply(document: Mapping[str, Any], where: str) -> PolicysweepError | None:
    """The error inside an answer of status 200, as llama.cpp and some gateways send it; None without one."""
    if not document.get("error"):
        return None
    error = _error_object(document)
    said = _said(error, b"")
    message = f"{where} answered 200 with an error: {said}"
    return ContextOverflow(message) if _is_overflow(error, said) else ModelServerGarbled(message)


def _loads(body: bytes) -> object:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None


def _error_object(document: object) -> Mapping[str, Any]:
    """The error of `{"error": {...}}`, `{"error": "..."}`, `{"detail": ...}` or `{"message": ...}`."""
    if not isinstance(document, dict):
        return {}
    error = document.get("error", document)
    return error if isinstance(error, dict) else {"message": error}


def _said(error: Mapping[str, Any], body: bytes) -> str:
    """The server's own words on one line, trimmed."""
    words = error.get("message") or error.get("detail")
    if words is None:
        words = body.decode("utf-8", "replace")
    elif not isinstance(words, str):
        words = orjson.dumps(words).decode()
    line = " ".join(words.split())
    return line if len(line) <= _MESSAGE_LIMIT else line[:_MESSAGE_LIMIT] + "..."


def _is_overflow(error: Mapping[str, Any], said: str) -> bool:
    codes = {str(error.get("code")), str(error.get("type"))}
    return bool(codes & _OVERFLOW_CODES) or _OVERFLOW_WORDS.search(said) is not None


def _seconds(retry_after: str | None) -> float | None:
    """Retry-After in seconds, at most LONGEST_WAIT; it may be a number or a date. None when it is neither."""
    if retry_after is None:
        return None
    try:
        seconds = float(retry_after)
    except ValueError:
        return _seconds_until(retry_after)
    return None if math.isnan(seconds) else min(max(0.0, seconds), LONGEST_WAIT)


def _seconds_until(date: str) -> float | None:
    try:
        then = parsedate_to_datetime(date)
    except (ValueError, OverflowError):
        return None
    if then.tzinfo is None:  # RFC 5322 writes "-0000" for "UTC, zone unknown"
        then = then.replace(tzinfo=UTC)
    return min(max(0.0, (then - datetime.now(UTC)).total_seconds()), LONGEST_WAIT)
