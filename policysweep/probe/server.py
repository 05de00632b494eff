"""The model server under the probe.

Whatever can be asked through the project's own client is, so that what the probe finds is what a sweep meets.
The rest (lists, metrics, fields that the client does not pass on) comes by a raw exchange.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import orjson

from policysweep.errors import ModelServerGarbled, ModelServerTimeout, ModelServerUnavailable
from policysweep.models.chat import ChatReply, ChatRequest, Json
from policysweep.models.http1 import HttpClient, HttpError
from policysweep.models.openai_api import OpenAIChatModel, normalised_url
from policysweep.models.refusals import refusal
from policysweep.models.wire import is_rehearsal, parse_object

_MODELS_SECONDS = 15.0
_CALL_SECONDS = 60.0


class ModelServer:
    """One model at one server. Raises what the model client raises, and never shows the key."""

    def __init__(self, url: str, model: str | None, api_key: str | None = None) -> None:
        """Without a `model` it is the first that the server lists."""
        self.url = str(normalised_url(url))
        self.model = model or ""
        self.cards: Sequence[Json] = ()
        self.answer_tokens = 256
        """What an answer may take, once the chat has shown how fast the model writes."""
        self._key = api_key
        self._path = normalised_url(url).raw_path
        headers = {"Content-Type": "application/json"}
        if api_key is not None:
            headers["Authorization"] = f"Bearer {api_key}"
        self._http = HttpClient(normalised_url(url), headers)
        self._chat = OpenAIChatModel(base_url=url, model=self.model, api_key=api_key)
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self._http)
        await self._stack.enter_async_context(self._chat)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)

    @property
    def card(self) -> Json:
        """What the server's list says about the model; empty when it is not listed."""
        return next((card for card in self.cards if card.get("id") == self.model), {})

    @property
    def rehearsal(self) -> bool:
        """Whether it is the rehearsal server."""
        return is_rehearsal(self.card.get("owned_by"))

    async def list_models(self) -> None:
        """Fill `cards`, and choose the model when none was named."""
        document = parse_object(await self._get(f"{self._path}/models", _MODELS_SECONDS), self.url)
        listed = document.get("data")
        if not isinstance(listed, list) or not all(isinstance(card, dict) for card in listed):
            raise ModelServerGarbled(f"{self.url} did not answer /models with a list of models")
        self.cards = listed
        if not self.model and listed:
            await self._choose(str(listed[0].get("id")))

    async def _choose(self, model: str) -> None:
        self.model = model
        chat = OpenAIChatModel(base_url=self.url, model=model, api_key=self._key)
        self._chat = await self._stack.enter_async_context(chat)

    async def complete(self, request: ChatRequest) -> ChatReply:
        """One call through the project's client. Implements ChatModel."""
        return await self._chat.complete(request)

    async def raw_message(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The first choice of an answer, as the server sent it."""
        content = orjson.dumps({"model": self.model, **body})
        answer = await self._exchange("POST", f"{self._path}/chat/completions", _CALL_SECONDS, content)
        choices = parse_object(answer, self.url).get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            raise ModelServerGarbled(f"{self.url} did not answer with a chat completion: it has no choices")
        return choices[0]

    async def metrics(self) -> str:
        """The server's Prometheus metrics, which stand beside /v1."""
        path = self._path.removesuffix("/v1") + "/metrics"
        return (await self._get(path, _MODELS_SECONDS)).decode("utf-8", "replace")

    async def _get(self, path: str, seconds: float) -> bytes:
        return await self._exchange("GET", path, seconds)

    async def _exchange(self, method: str, path: str, seconds: float, body: bytes = b"") -> bytes:
        try:
            async with asyncio.timeout(seconds):
                answer = await self._http.exchange(method, path, body)
        except TimeoutError:
            raise ModelServerTimeout(f"{self.url} did not answer within {seconds:g} s") from None
        except HttpError as error:
            raise ModelServerUnavailable(f"{self.url} cannot be reached: {error}") from error
        if answer.status == 200:
            return answer.body
        refused = refusal(answer.status, None, answer.body, where=self.url)
        raise type(refused)(self.concealed(str(refused)))

    def concealed(self, text: str) -> str:
        """`text` without the key, should a server quote it."""
        return text.replace(self._key, "***") if self._key else text
