"""What an error status means, in the words of real servers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import orjson
import pytest

from policysweep.errors import (
    ContextOverflow,
    ModelServerBusy,
    ModelServerRejected,
    ModelServerTimeout,
    ModelServerUnavailable,
    PolicysweepError,
)
from policysweep.models.refusals import LONGEST_WAIT, refusal


def error(status: int, body: object, retry_after: str | None = None) -> PolicysweepError:
    raw = body if isinstance(body, bytes) else orjson.dumps(body)
    return refusal(status, retry_after, raw, where="model server http://m/v1")


OVERFLOWS = [
    "This model's maximum context length is 16384 tokens. However, you requested 122946 tokens.",
    "This model's maximum context length is 2048 tokens. However, your request has 8 input tokens plus 2045"
    " 'max_tokens'. Please reduce one or the other. (parameter=input_tokens, max_tokens, value=(8, 2045))",
    "The decoder prompt (length 12345) is longer than the maximum model length of 8192.",
    "You passed 12345 input tokens and requested 80 output tokens. However, the model's context length is"
    " only 8192 tokens, resulting in a maximum input length of 8112 tokens.",
    "max_tokens must be at least 1, got -186.",
    "The input (61709 tokens) is longer than the model's context length (40960 tokens).",
    "Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens).",
    "the request exceeds the available context size, try increasing it",
    "Requested tokens (2285) exceed context window of 2048",
    "Context size has been exceeded.",
    "`inputs` tokens + `max_new_tokens` must be <= 4096.",
    "Input validation error: `inputs` must have less than 1024 tokens. Given: 4096",
    "Input length (9000) exceeds model's maximum context length (8192).",
    "This model's maximum context length is 8192 tokens. However, your prompt contains at least 8193 input"
    " tokens, which exceeds this limit even without any output tokens.",
    "The decoder prompt (length 8192) plus the number of requested output tokens (at least 1) is longer than"
    " the maximum model length of 8192.",
    "Requested token count exceeds the model's maximum context length of 64000 tokens. You requested a total"
    " of 71897 tokens: 7897 tokens from the input messages and 64000 tokens for the completion.",
]


@pytest.mark.parametrize("words", OVERFLOWS)
@pytest.mark.parametrize("shape", ["error", "bare"])
def test_a_prompt_that_does_not_fit_is_recognised_by_its_words(words: str, shape: str) -> None:
    body = {"error": {"message": words}} if shape == "error" else {"object": "error", "message": words}
    assert type(error(400, body)) is ContextOverflow


def test_overflow_codes_count_whatever_the_status() -> None:
    openai = {"error": {"message": "too long", "code": "context_length_exceeded"}}
    llama_cpp = {"error": {"code": 500, "message": "too long", "type": "exceed_context_size_error"}}
    assert type(error(400, openai)) is ContextOverflow
    assert type(error(500, llama_cpp)) is ContextOverflow


@pytest.mark.parametrize(
    "words",
    [
        "'max_tokens' must be positive",
        "The model `x` does not exist.",
        "Expecting ',' delimiter: line 1 column 54",
        "context is a required field",
    ],
)
def test_other_requests_are_rejected_with_the_servers_words(words: str) -> None:
    rejected = error(400, {"error": {"message": words}})
    assert type(rejected) is ModelServerRejected
    assert str(rejected) == f"model server http://m/v1 answered 400: {words}"


def test_overflow_words_in_a_server_failure_are_a_server_failure() -> None:
    assert type(error(500, {"error": {"message": OVERFLOWS[0]}})) is ModelServerUnavailable


@pytest.mark.parametrize(
    ("status", "retry_after", "kind"),
    [
        (401, None, ModelServerRejected),
        (403, None, ModelServerRejected),
        (404, None, ModelServerRejected),
        (422, None, ModelServerRejected),
        (408, None, ModelServerTimeout),
        (429, None, ModelServerBusy),
        (429, "2", ModelServerBusy),
        (503, "2", ModelServerBusy),
        (503, None, ModelServerUnavailable),
        (500, None, ModelServerUnavailable),
        (502, "2", ModelServerUnavailable),
        (504, None, ModelServerUnavailable),
    ],
)
def test_the_status_decides_the_rest(
    status: int, retry_after: str | None, kind: type[PolicysweepError]
) -> None:
    assert type(error(status, {"error": {"message": "no"}}, retry_after)) is kind


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("2", 2.0),
        ("0.5", 0.5),
        ("-3", 0.0),
        ("86400", LONGEST_WAIT),
        ("inf", LONGEST_WAIT),
        ("1e999", LONGEST_WAIT),
        ("Fri, 01 Jan 2100 00:00:00 GMT", LONGEST_WAIT),
        ("nan", None),
        ("Fri, 99 Jan 99999 99:00:00 GMT", None),
        ("soon", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after_in_seconds(header: str | None, seconds: float | None) -> None:
    assert error(429, {}, header).retry_after == seconds


def test_retry_after_as_a_date() -> None:
    passed = format_datetime(datetime.now(UTC) - timedelta(hours=1), usegmt=True)
    coming = format_datetime(datetime.now(UTC) + timedelta(minutes=5), usegmt=True)
    zoneless = coming.replace("GMT", "-0000")
    assert error(429, {}, passed).retry_after == 0.0
    for date in (coming, zoneless):
        wait = error(429, {}, date).retry_after
        assert wait is not None
        assert 200 < wait <= 300


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"upstream\n  connect error", "upstream connect error"),
        ({"error": "plain words"}, "plain words"),
        ({"detail": [{"loc": ["body", "x"]}]}, '[{"loc":["body","x"]}]'),
        (b"\xff", "�"),
        (b"", ""),
        (b"w" * 5000, "w" * 300 + "..."),
    ],
)
def test_the_servers_words_on_one_line_and_trimmed(body: object, said: str) -> None:
    assert str(error(500, body)) == f"model server http://m/v1 answered 500: {said}"
