"""A chat model behind an OpenAI-compatible HTTP server: vLLM, SGLang, llama.cpp, the rehearsal server.

One call is one POST of a chat completion and never more: whoever asked owns the retries. What the bytes mean
is `wire.py`, what an error status means is `refusals.py`, whether a prompt fits is `context.py`, how bytes
travel is `http1.py`; here they meet.

    async with OpenAIChatModel(base_url="http://host:8000/v1", model="qwen3-32b") as model:
        reply = await model.complete(ChatRequest(messages=[...]))
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import Awaitable
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Self

from yarl import URL

from policysweep.errors import (
    InputError,
    ModelServerError,
    ModelServerGarbled,
    ModelServerRejected,
    ModelServerTimeout,
    ModelServerUnavailable,
    PolicysweepError,
)
from policysweep.models.chat import ChatReply, ChatRequest
from policysweep.models.context import ContextBudget
from policysweep.models.http1 import (
    HttpAnswer,
    HttpClient,
    HttpError,
    NotHttp,
    TooLarge,
    Unreachable,
    Untrusted,
)
from policysweep.models.refusals import refusal
from policysweep.models.wire import (
    is_rehearsal,
    parse_object,
    parse_reply,
    parse_token_count,
    request_body,
    tokenize_body,
)
from policysweep.v1 import agent_pb2

if TYPE_CHECKING:  # commands that ask a model need no service's configuration
    from policysweep.config import ModelEndpoint

SESSION_HEADER = "X-Session-ID"
"""Carries `ChatRequest.session_id`; prefix-affine routers keep a session on one replica by it."""

_HEADER_SAFE_LENGTH = 128

_QUESTION_SECONDS = 5.0
"""How long a call may wait for what only helps it: the context's size, the prompt's tokens."""


@dataclass(frozen=True, slots=True)
class ModelDescription:
    """What a server says about a model. `max_model_len` is the context in tokens, None when it is unknown."""

    model: str
    rehearsal: bool
    max_model_len: int | None


class OpenAIChatModel:
    """The model named `model` at `base_url`, which may end with "/v1" or leave it out.

    Connections are not limited: the number of conversations in flight is, elsewhere. `api_key` goes into the
    Authorization header and nowhere else. `context_tokens` is the size of the model's context, for a server
    that does not report it.
    """

    def __init__(
        self, *, base_url: str, model: str, api_key: str | None = None, context_tokens: int | None = None
    ) -> None:
        self._base_url = normalised_url(base_url)
        self._model = model
        self._where = f"model server {self._base_url}"
        self._chat_path = f"{self._base_url.raw_path}/chat/completions"
        self._models_path = f"{self._base_url.raw_path}/models"
        # vLLM's tokenizer is beside /v1, not under it.
        self._tokenize_path = f"{self._base_url.raw_path.removesuffix('/v1')}/tokenize"
        self._context = ContextBudget(context_tokens)
        self._asking = asyncio.Lock()
        self._ask_again_at = 0.0
        self._tokenizes: bool | None = None
        """Whether the server counts the tokens of a chat; None until it was asked."""
        self._api_key = api_key
        self._headers = {"Content-Type": "application/json"}
        if api_key is not None:
            self._headers["Authorization"] = f"Bearer {_checked_key(api_key)}"
        self._client: HttpClient | None = None

    @classmethod
    def of(cls, endpoint: ModelEndpoint) -> Self:
        """The model of a service's configuration. Raises InputError for an unusable address or key."""
        return cls(
            base_url=endpoint.model_url,
            model=endpoint.model,
            api_key=endpoint.api_key(),
            context_tokens=endpoint.context_tokens or None,
        )

    @property
    def name(self) -> str:
        """The name, as in requests."""
        return self._model

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
        """Answer once, without retrying. See `ChatModel.complete` for what it raises.

        A prompt that is found not to fit is not sent. One that fits, but without room for all the tokens that
        its answer may have, is sent with the limit lowered to that room.
        """
        headers = {SESSION_HEADER: _header_safe(request.session_id)} if request.session_id else None
        started = time.perf_counter()
        ends = asyncio.get_running_loop().time() + request.timeout
        body = request_body(self._model, request)
        size, lowered = len(body), None
        if self._context.is_near(size, request.sampling.max_tokens):
            lowered = await self._lowered_limit(request, size, ends)
            if asyncio.get_running_loop().time() >= ends:
                raise self._too_late(request.timeout)  # before a completion is asked for in vain
            if lowered is not None:
                body = request_body(self._model, _limited(request, lowered))
        exchange = self._http.exchange("POST", self._chat_path, body, headers)
        del body  # nobody but the client holds it, which drops it once it is sent
        answer = await self._answered(exchange, request.timeout, ends)
        latency = time.perf_counter() - started
        reply = parse_reply(answer, request, latency_seconds=latency, where=self._where)
        self._context.learn(size, reply.usage.prompt_tokens)
        if lowered is not None:
            reply.usage.lowered_max_tokens = lowered
        return reply

    async def describe(self, timeout_seconds: float = 10.0) -> ModelDescription:
        """What the server says about the model, within `timeout_seconds`.

        Raises ModelServerRejected, which names the served models, when the model is not among them.
        """
        ends = asyncio.get_running_loop().time() + timeout_seconds
        answer = await self._answered(self._http.exchange("GET", self._models_path), timeout_seconds, ends)
        listed = parse_object(answer, self._where).get("data")
        if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
            raise ModelServerGarbled(f"{self._where} did not answer /models with a list of models")
        for entry in listed:
            if entry.get("id") == self._model:
                length = entry.get("max_model_len")
                self._context.reported(length if type(length) is int else None)
                return ModelDescription(
                    model=self._model,
                    rehearsal=is_rehearsal(entry.get("owned_by")),
                    max_model_len=self._context.limit,
                )
        served = ", ".join(str(entry.get("id")) for entry in listed) or "no model"
        raise ModelServerRejected(f"{self._where} does not serve {self._model!r}; it serves {served}")

    # ------------------------------------------------------------ room in the context

    async def _lowered_limit(self, request: ChatRequest, body_bytes: int, ends: float) -> int | None:
        """The limit for the answer when the context has not room for the one asked for; else None.

        Raises ContextOverflow when the prompt does not fit. What cannot be found out is left to the server.
        """
        max_tokens = request.sampling.max_tokens
        if not self._context.asked:
            await self._ask_for_limit(ends)
            if self._context.limit is None or not self._context.is_near(body_bytes, max_tokens):
                return None
        prompt_tokens = await self._count_tokens(request, ends)
        if prompt_tokens is None:
            self._context.check_words(request.messages, self._where)
            return None
        self._context.learn(body_bytes, prompt_tokens)
        room = self._context.room(prompt_tokens, max_tokens, self._where)
        return room if room < max_tokens else None

    async def _ask_for_limit(self, ends: float) -> None:
        """Ask the server for the model's context, one call for all; a server that is down is asked later."""
        now = asyncio.get_running_loop().time
        async with self._asking:
            if self._context.asked or now() < self._ask_again_at:
                return
            try:
                await self.describe(max(0.0, min(_QUESTION_SECONDS, ends - now())))
            except (ModelServerRejected, ModelServerGarbled):
                self._context.reported(None)
            except ModelServerError:
                self._ask_again_at = now() + _QUESTION_SECONDS

    async def _count_tokens(self, request: ChatRequest, ends: float) -> int | None:
        """Tokens of the prompt by the server's tokenizer; None when it has none that tells."""
        if self._tokenizes is False:
            return None
        body = tokenize_body(self._model, request)
        ends = min(ends, asyncio.get_running_loop().time() + _QUESTION_SECONDS)
        try:
            exchange = self._http.exchange("POST", self._tokenize_path, body)
            answer = await self._answered(exchange, _QUESTION_SECONDS, ends)
            count = parse_token_count(answer, self._where)
        except (ModelServerRejected, ModelServerGarbled):
            # A server that has counted before has a tokenizer: then it is this prompt that it refuses.
            self._tokenizes = self._tokenizes or False
            return None
        except ModelServerError:
            return None
        self._tokenizes = True
        return count

    # ------------------------------------------------------------------------ the wire

    @property
    def _http(self) -> HttpClient:
        if self._client is None:
            raise RuntimeError(f"{self!r} is used outside of its async context")
        return self._client

    async def _answered(self, exchange: Awaitable[HttpAnswer], timeout_seconds: float, ends: float) -> bytes:
        """The body of an answer of status 200; raise for everything else.

        `ends` is when the `timeout_seconds` that the caller allowed are over, on the loop's clock.
        """
        try:
            async with asyncio.timeout_at(ends):
                answer = await exchange
        except TimeoutError:
            raise self._too_late(timeout_seconds) from None
        except HttpError as error:
            raise self._broken_off(error) from error
        if answer.status != 200:
            raise self._refused(answer)
        return answer.body

    def _too_late(self, seconds: float) -> ModelServerTimeout:
        return ModelServerTimeout(f"{self._where} did not answer within {seconds:g} s")

    def _broken_off(self, error: HttpError) -> PolicysweepError:
        """What it means that no complete HTTP answer came."""
        match error:
            case Untrusted():
                return ModelServerRejected(f"{self._where}: no trusted TLS connection ({error})")
            case Unreachable():
                return ModelServerUnavailable(f"{self._where} cannot be reached: {error}")
            case TooLarge():
                return ModelServerGarbled(f"{self._where} sends what is no completion: {error}")
            case NotHttp():
                return ModelServerGarbled(f"{self._where} does not speak HTTP: {error}")
            case _:
                return ModelServerUnavailable(
                    f"{self._where} broke off before its answer was complete: {error}"
                )

    def _refused(self, answer: HttpAnswer) -> PolicysweepError:
        if 300 <= answer.status < 400:
            return ModelServerRejected(
                f"{self._where} redirects to {_shown(answer.headers.get('location', 'elsewhere'))}; "
                "give that address as the model URL"
            )
        error = refusal(answer.status, answer.headers.get("retry-after"), answer.body, where=self._where)
        if self._api_key and self._api_key in str(error):
            # A server that quotes the key must not carry it into logs and records.
            return type(error)(str(error).replace(self._api_key, "***"), retry_after=error.retry_after)
        return error


def _limited(request: ChatRequest, max_tokens: int) -> ChatRequest:
    """`request` with another limit for its answer."""
    sampling = agent_pb2.Sampling()
    sampling.CopyFrom(request.sampling)
    sampling.max_tokens = max_tokens
    return replace(request, sampling=sampling)


def normalised_url(base_url: str) -> URL:
    """`base_url` with "/v1" at its end; InputError when it cannot be one."""
    try:
        url = URL(base_url)
    except ValueError as error:
        raise InputError(f"model URL {_shown(base_url)!r}: {error}") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise InputError(f"model URL {_shown(base_url)!r} is not one: write for example http://host:8000/v1")
    if url.user is not None or url.password is not None:
        raise InputError(
            f"the model URL of {url.host} holds credentials: give the key by environment variable"
        )
    path = url.path.rstrip("/")
    if url.query_string or url.fragment or path.endswith("/chat/completions"):
        raise InputError(
            f"model URL {_shown(base_url)!r} must end at /v1, without a query: "
            "write for example http://host:8000/v1"
        )
    return url.with_path(path if path.endswith("/v1") else f"{path}/v1")


def _shown(address: str) -> str:
    """An address without what may be a secret in it."""
    return re.sub(r"//[^/]*@", "//", address.partition("#")[0].partition("?")[0])


def _checked_key(api_key: str) -> str:
    if not (api_key.isascii() and api_key.isprintable()):
        raise InputError("the API key holds characters that no HTTP header can carry, perhaps a line break")
    return api_key


def _header_safe(session_id: str) -> str:
    """`session_id`, or its hash when it could not stand in a header."""
    if len(session_id) <= _HEADER_SAFE_LENGTH and session_id.isascii() and session_id.isprintable():
        return session_id
    return hashlib.sha256(session_id.encode()).hexdigest()
