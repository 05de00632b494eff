"""A chat model behind an OpenAI-compatible HTTP server: vLLM, SGLang, llama.cpp, the rehearsal server.

One call is one POST and never more: whoever asked owns the retries. What the bytes mean is `wire.py`, what
an error status means is `refusals.py`; here is only the way there and back.

    async with OpenAIChatModel(base_url="http://host:8000/v1", model="qwen3-32b") as model:
        reply = await model.complete(ChatRequest(messages=[...]))
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import aiohttp
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
from policysweep.models.refusals import refusal
from policysweep.models.wire import is_rehearsal, parse_object, parse_reply, request_body

SESSION_HEADER = "X-Session-ID"
"""Carries `ChatRequest.session_id`; prefix-affine routers keep a session on one replica by it."""

# Below the 5 s after which uvicorn, and so vLLM, closes an idle connection: otherwise a request and the
# server's close would cross on the way, and a healthy server would look dead.
_KEEPALIVE_SECONDS = 4.0

# aiohttp warns when it is given more than this as one piece of bytes.
_LARGE_BODY_BYTES = 1 << 20

_HEADER_SAFE_LENGTH = 128


@dataclass(frozen=True, slots=True)
class ModelDescription:
    """What a server says about a model. `max_model_len` is the context in tokens, None when unreported."""

    model: str
    rehearsal: bool
    max_model_len: int | None


class OpenAIChatModel:
    """The model named `model` at `base_url`, which may end with "/v1" or leave it out.

    `connections` limits the connections open at a time; 0 is no limit, because the number of conversations
    in flight is limited elsewhere. `api_key` goes into the Authorization header and nowhere else.
    """

    def __init__(
        self, *, base_url: str, model: str, api_key: str | None = None, connections: int = 0
    ) -> None:
        self._base_url = _normalised(base_url)
        self._model = model
        self._where = f"model server {self._base_url}"
        self._chat_url = URL(f"{self._base_url}/chat/completions")
        self._api_key = api_key
        self._headers = {"Content-Type": "application/json"}
        if api_key is not None:
            self._headers["Authorization"] = f"Bearer {_checked_key(api_key)}"
        self._connections = connections
        self._session: aiohttp.ClientSession | None = None

    def __repr__(self) -> str:
        return f"OpenAIChatModel(base_url={self._base_url!r}, model={self._model!r})"

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._connections, keepalive_timeout=_KEEPALIVE_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None),  # see _exchange
            headers=self._headers,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Answer once, without retrying. See `ChatModel.complete` for what it raises."""
        body = request_body(self._model, request)
        headers = {SESSION_HEADER: _header_safe(request.session_id)} if request.session_id else None
        started = time.perf_counter()
        answer = await self._exchange("POST", self._chat_url, request.timeout, body, headers)
        latency = time.perf_counter() - started
        return parse_reply(answer, request, latency_seconds=latency, where=self._where)

    async def describe(self, timeout_seconds: float = 10.0) -> ModelDescription:
        """What the server says about the model, within `timeout_seconds`.

        Raises ModelServerRejected, which names the served models, when the model is not among them.
        """
        answer = await self._exchange("GET", URL(f"{self._base_url}/models"), timeout_seconds)
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

    async def _exchange(
        self,
        method: str,
        url: URL,
        timeout_seconds: float,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """Send one request and give the body of the answer of status 200; raise for everything else."""
        if self._session is None:
            raise RuntimeError(f"{self!r} is used outside of its async context")
        try:
            # One timer for the whole exchange. aiohttp's own total timeout costs more and rounds up to
            # whole seconds.
            async with asyncio.timeout(timeout_seconds):
                async with self._session.request(
                    method, url, data=_payload(body), headers=headers, allow_redirects=False
                ) as response:
                    answer = await response.read()
        except TimeoutError:
            raise ModelServerTimeout(f"{self._where} did not answer within {timeout_seconds:g} s") from None
        except aiohttp.ClientError as error:
            raise self._broken_off(error) from error
        if response.status != 200:
            raise self._refused(response, answer)
        return answer

    def _broken_off(self, error: aiohttp.ClientError) -> PolicysweepError:
        """What it means that no complete HTTP answer came."""
        if isinstance(error, aiohttp.ClientSSLError):
            return ModelServerRejected(f"{self._where}: no trusted TLS connection ({error})")
        if isinstance(error, aiohttp.ClientConnectorError):
            return ModelServerUnavailable(f"{self._where} cannot be reached: {error.strerror or error}")
        if isinstance(error, aiohttp.ClientResponseError):
            return ModelServerGarbled(f"{self._where} does not speak HTTP: {error.message}")
        what = str(error) or type(error).__name__
        return ModelServerUnavailable(f"{self._where} broke off before its answer was complete: {what}")

    def _refused(self, response: aiohttp.ClientResponse, answer: bytes) -> PolicysweepError:
        if 300 <= response.status < 400:
            return ModelServerRejected(
                f"{self._where} redirects to {response.headers.get('Location', 'elsewhere')}; "
                "give that address as the model URL"
            )
        error = refusal(response.status, response.headers.get("Retry-After"), answer, where=self._where)
        if self._api_key and self._api_key in str(error):
            # A server that quotes the key must not carry it into logs and records.
            return type(error)(str(error).replace(self._api_key, "***"), retry_after=error.retry_after)
        return error


def _payload(body: bytes | None) -> bytes | io.BytesIO | None:
    return io.BytesIO(body) if body is not None and len(body) > _LARGE_BODY_BYTES else body


def _normalised(base_url: str) -> str:
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
    return str(url.with_path(path if path.endswith("/v1") else f"{path}/v1"))


def _checked_key(api_key: str) -> str:
    if not (api_key.isascii() and api_key.isprintable()):
        raise InputError("the API key holds characters that no HTTP header can carry, perhaps a line break")
    return api_key


def _header_safe(session_id: str) -> str:
    """`session_id`, or its hash when it could not stand in a header."""
    if len(session_id) <= _HEADER_SAFE_LENGTH and session_id.isascii() and session_id.isprintable():
        return session_id
    return hashlib.sha256(session_id.encode()).hexdigest()
