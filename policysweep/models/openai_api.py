"""A chat model behind an OpenAI-compatible HTTP server: vLLM, SGLang, llama.cpp, the rehearsal server.

One call is one POST and never more: whoever asked owns the retries. What the bytes mean is `wire.py`, what
an error status means is `refusals.py`, how they travel is `http1.py`; here the three meet.

    async with OpenAIChatModel(base_url="http://host:8000/v1", model="qwen3-32b") as model:
        reply = await model.complete(ChatRequest(messages=[...]))
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from yarl import URL

from policysweep.errors import (
    InputError,
    ModelServerGarbled,
    ModelServerRejected,
    ModelServerTimeout,
    ModelServerUnavailable,
    PolicysweepError,
)
from policysweep.models.chat import ChatReply, ChatRequest
from policysweep.models.http1 import HttpAnswer, HttpClient, HttpError, NotHttp, Unreachable, Untrusted
from policysweep.models.refusals import refusal
from policysweep.models.wire import is_rehearsal, parse_object, parse_reply, request_body

SESSION_HEADER = "X-Session-ID"
"""Carries `ChatRequest.session_id`; prefix-affine routers keep a session on one replica by it."""

_HEADER_SAFE_LENGTH = 128


@dataclass(frozen=True, slots=True)
class ModelDescription:
    """What a server says about a model. `max_model_len` is the context in tokens, None when unreported."""

    model: str
    rehearsal: bool
    max_model_len: int | None


class OpenAIChatModel:
    """The model named `model` at `base_url`, which may end with "/v1" or leave it out.

    Connections are not limited: the number of conversations in flight is, elsewhere. `api_key` goes into the
    Authorization header and nowhere else.
    """

    def __init__(self, *, base_url: str, model: str, api_key: str | None = None) -> None:
        self._base_url = _normalised(base_url)
        self._model = model
        self._where = f"model server {self._base_url}"
        self._chat_path = f"{self._base_url.raw_path}/chat/completions"
        self._models_path = f"{self._base_url.raw_path}/models"
        self._api_key = api_key
        self._headers = {"Content-Type": "application/json"}
        if api_key is not None:
            self._headers["Authorization"] = f"Bearer {_checked_key(api_key)}"
        self._client: HttpClient | None = None

    def __repr__(self) -> str:
        return f"OpenAIChatModel(base_url={str(self._base_url)!r}, model={self._model!r})"

    async def __aenter__(self) -> Self:
        self._client = await HttpClient(self._base_url, self._headers).__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            await self._client.__aexit__(kind, error, trace)
            self._client = None

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Answer once, without retrying. See `ChatModel.complete` for what it raises."""
        headers = {SESSION_HEADER: _header_safe(request.session_id)} if request.session_id else None
        started = time.perf_counter()
        # The body is made in the call: nobody but the client holds it, which drops it once it is sent.
        exchange = self._http.exchange("POST", self._chat_path, request_body(self._model, request), headers)
        answer = await self._answered(exchange, request.timeout)
        latency = time.perf_counter() - started
        return parse_reply(answer, request, latency_seconds=latency, where=self._where)

    async def describe(self, timeout_seconds: float = 10.0) -> ModelDescription:
        """What the server says about the model, within `timeout_seconds`.

        Raises ModelServerRejected, which names the served models, when the model is not among them.
        """
        answer = await self._answered(self._http.exchange("GET", self._models_path), timeout_seconds)
        listed = parse_object(answer, self._where).get("data")
        if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
            raise ModelServerGarbled(f"{self._where} did not answer /models with a list of models")
        for entry in listed:
            if entry.get("id") == self._model:
                length = entry.get("max_model_len")
                return ModelDescription(
                    model=self._model,
                    rehearsal=is_rehearsal(entry.get("owned_by")),
                    max_model_len=length if type(length) is int else None,
                )
        served = ", ".join(str(entry.get("id")) for entry in listed) or "no model"
        raise ModelServerRejected(f"{self._where} does not serve {self._model!r}; it serves {served}")

    @property
    def _http(self) -> HttpClient:
        if self._client is None:
            raise RuntimeError(f"{self!r} is used outside of its async context")
        return self._client

    async def _answered(self, exchange: Awaitable[HttpAnswer], timeout_seconds: float) -> bytes:
        """The body of an answer of status 200; raise for everything else."""
        try:
            async with asyncio.timeout(timeout_seconds):
                answer = await exchange
        except TimeoutError:
            raise ModelServerTimeout(f"{self._where} did not answer within {timeout_seconds:g} s") from None
        except HttpError as error:
            raise self._broken_off(error) from error
        if answer.status != 200:
            raise self._refused(answer)
        return answer.body

    def _broken_off(self, error: HttpError) -> PolicysweepError:
        """What it means that no complete HTTP answer came."""
        match error:
            case Untrusted():
                return ModelServerRejected(f"{self._where}: no trusted TLS connection ({error})")
            case Unreachable():
                return ModelServerUnavailable(f"{self._where} cannot be reached: {error}")
            case NotHttp():
                return ModelServerGarbled(f"{self._where} does not speak HTTP: {error}")
            case _:
                return ModelServerUnavailable(
                    f"{self._where} broke off before its answer was complete: {error}"
                )

    def _refused(self, answer: HttpAnswer) -> PolicysweepError:
        if 300 <= answer.status < 400:
            return ModelServerRejected(
                f"{self._where} redirects to {answer.headers.get('location', 'elsewhere')}; "
                "give that address as the model URL"
            )
        error = refusal(answer.status, answer.headers.get("retry-after"), answer.body, where=self._where)
        if self._api_key and self._api_key in str(error):
            # A server that quotes the key must not carry it into logs and records.
            return type(error)(str(error).replace(self._api_key, "***"), retry_after=error.retry_after)
        return error


def _normalised(base_url: str) -> URL:
    """`base_url` with "/v1" at its end; InputError when it cannot be one."""
    try:
        url = URL(base_url)
    except ValueError as error:
        raise InputError(f"model URL {base_url!r}: {error}") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise InputError(f"model URL {base_url!r} is not one: write for example http://host:8000/v1")
    if url.user is not None or url.password is not None:
        raise InputError(
            f"the model URL of {url.host} holds credentials: give the key by environment variable"
        )
    path = url.path.rstrip("/")
    if url.query_string or url.fragment or path.endswith("/chat/completions"):
        raise InputError(f"model URL {base_url!r} must end at /v1: write for example http://host:8000/v1")
    return url.with_path(path if path.endswith("/v1") else f"{path}/v1")


def _checked_key(api_key: str) -> str:
    if not (api_key.isascii() and api_key.isprintable()):
        raise InputError("the API key holds characters that no HTTP header can carry, perhaps a line break")
    return api_key


def _header_safe(session_id: str) -> str:
    """`session_id`, or its hash when it could not stand in a header."""
    if len(session_id) <= _HEADER_SAFE_LENGTH and session_id.isascii() and session_id.isprintable():
        return session_id
    return hashlib.sha256(session_id.encode()).hexdigest()
