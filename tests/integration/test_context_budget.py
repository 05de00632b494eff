"""Prompts near the limit of a context, against the rehearsal server: what is asked, sent and refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import aiohttp
import orjson
import pytest
from aiohttp import web

from policysweep.errors import ContextOverflow, ModelServerTimeout
from policysweep.models.chat import ChatRequest
from policysweep.models.openai_api import OpenAIChatModel
from policysweep.models.rehearsal import RehearsalConfig, RehearsalServer
from policysweep.v1 import agent_pb2, scenario_pb2
from policysweep.v1 import episode_pb2 as ep
from services.agent.variants.baseline import BaselineAgent

LIMIT = 4000
"""Tokens of the context; the rehearsal server takes four characters for one."""
CHAT, MODELS, TOKENIZE = "/v1/chat/completions", "/v1/models", "/tokenize"
TOOLS = [{"type": "function", "function": {"name": "look_up", "description": "x" * 400}}]
Answer = tuple[int, bytes]


@dataclass
class Gateway:
    """Passes requests on to a server, but for paths that have an answer here, and keeps what it saw.

    An answer of status 0 never comes.
    """

    target: str
    answers: Mapping[str, Answer]
    seen: list[tuple[str, bytes]] = field(default_factory=list)
    url: str = ""

    @property
    def paths(self) -> list[str]:
        return [path for path, _ in self.seen]

    async def handle(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.seen.append((request.path, body))
        if request.path in self.answers:
            status, said = self.answers[request.path]
            if not status:
                await asyncio.sleep(60)
            return web.Response(status=status, body=said)
        async with (
            aiohttp.ClientSession() as session,
            session.request(request.method, self.target + request.path, data=body) as answer,
        ):
            return web.Response(status=answer.status, body=await answer.read())


@asynccontextmanager
async def gateway(answers: Mapping[str, Answer] | None = None) -> AsyncIterator[Gateway]:
    async with RehearsalServer(RehearsalConfig(max_model_len=LIMIT)) as server:
        made = Gateway(server.url, answers or {})
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/{path:.*}", made.handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            yield made
        finally:
            await runner.cleanup()


def model(server: Gateway, context_tokens: int | None = None) -> OpenAIChatModel:
    return OpenAIChatModel(base_url=server.url, model="rehearsal-fair", context_tokens=context_tokens)


def prompt(tokens: int, max_tokens: int = 0, text: str = "abcd") -> ChatRequest:
    """A prompt of about so many tokens: one word without end, so that nothing but a tokenizer can tell."""
    messages = [{"role": "user", "content": text * tokens}]
    return ChatRequest(
        messages=messages, tools=TOOLS, sampling=agent_pb2.Sampling(max_tokens=max_tokens), timeout=20
    )


async def test_a_small_prompt_is_one_request() -> None:
    async with gateway() as server, model(server) as chat:
        await chat.complete(prompt(100, max_tokens=1000))
    assert server.paths == [CHAT]


async def test_the_size_of_the_context_is_asked_for_once_however_many_wait_for_it() -> None:
    async with gateway() as server, model(server) as chat:
        await asyncio.gather(*(chat.complete(prompt(1200)) for _ in range(5)))
        await chat.complete(prompt(1300))
    assert sorted(server.paths) == [*[CHAT] * 6, MODELS]


async def test_near_the_limit_the_tokenizer_is_asked_and_what_fits_is_sent_as_it_is() -> None:
    async with gateway() as server, model(server) as chat:
        reply = await chat.complete(prompt(2500, max_tokens=500))
        assert server.paths == [MODELS, TOKENIZE, CHAT]
        # The server has counted, so a prompt that looked near before does not any more.
        await chat.complete(prompt(2400, max_tokens=500))
        assert server.paths == [MODELS, TOKENIZE, CHAT, CHAT]
    asked = orjson.loads(server.seen[1][1])
    assert set(asked) == {"model", "messages", "tools"}
    assert orjson.loads(server.seen[2][1])["max_tokens"] == 500
    assert not reply.usage.HasField("lowered_max_tokens")


async def test_a_prompt_that_does_not_fit_is_not_sent() -> None:
    async with gateway() as server, model(server) as chat:
        with pytest.raises(
            ContextOverflow, match=rf"not sent, since the prompt's \d+ tokens leave 0 .* {LIMIT}"
        ):
            await chat.complete(prompt(LIMIT))
    assert server.paths == [MODELS, TOKENIZE]


async def test_an_answer_gets_the_room_that_is_left_and_the_record_says_so() -> None:
    async with gateway() as server, model(server) as chat:
        reply = await chat.complete(prompt(3300, max_tokens=1000))
    sent = orjson.loads(server.seen[-1][1])["max_tokens"]
    assert 256 <= sent < 1000
    assert sent == LIMIT - reply.usage.prompt_tokens
    assert reply.usage.lowered_max_tokens == sent


async def test_with_too_little_room_for_an_answer_a_prompt_does_not_fit() -> None:
    async with gateway() as server, model(server) as chat:
        with pytest.raises(ContextOverflow, match="for the answer"):
            await chat.complete(prompt(3800, max_tokens=1000))
    assert CHAT not in server.paths


NO_TOKENIZER: Mapping[str, Answer] = {
    "vLLM behind a gateway": (404, b"not found"),
    "SGLang": (400, b'{"object":"error","message":"prompt is required"}'),
    "TGI": (422, b"missing field `inputs`"),
    "llama.cpp": (200, b'{"tokens":[]}'),
    "a page": (200, b"<html>"),
}


@pytest.mark.parametrize("answer", NO_TOKENIZER.values(), ids=NO_TOKENIZER)
async def test_without_a_tokenizer_the_server_decides_and_is_not_asked_again(answer: Answer) -> None:
    async with gateway({TOKENIZE: answer}) as server, model(server) as chat:
        for _ in range(2):
            with pytest.raises(ContextOverflow, match="answered 400"):
                await chat.complete(prompt(LIMIT))
    assert server.paths == [MODELS, TOKENIZE, CHAT, CHAT]


async def test_without_a_tokenizer_more_words_than_tokens_are_not_sent() -> None:
    async with gateway({TOKENIZE: (404, b"")}) as server, model(server) as chat:
        with pytest.raises(ContextOverflow, match="words cannot fit"):
            await chat.complete(prompt(LIMIT, text="word "))
    assert CHAT not in server.paths


async def test_a_tokenizer_that_fails_costs_no_call_and_is_asked_again() -> None:
    async with gateway({TOKENIZE: (500, b"")}) as server, model(server) as chat:
        for _ in range(2):
            with pytest.raises(ContextOverflow, match="answered 400"):
                await chat.complete(prompt(LIMIT))
    assert server.paths == [MODELS, TOKENIZE, CHAT, TOKENIZE, CHAT]


@pytest.mark.parametrize("silent", [MODELS, TOKENIZE])
async def test_a_question_that_is_not_answered_cannot_outlive_the_call(silent: str) -> None:
    async with gateway({silent: (0, b"")}) as server, model(server) as chat:
        await chat.complete(prompt(100))  # leaves an open connection
        with pytest.raises(ModelServerTimeout, match=r"within 0\.2 s"):
            await chat.complete(replace(prompt(LIMIT), timeout=0.2))
    assert server.paths.count(CHAT) == 1


@pytest.mark.parametrize("models", [(200, b'{"data":[{"id":"rehearsal-fair"}]}'), (404, b"")])
async def test_a_server_that_does_not_tell_its_context(models: Answer) -> None:
    async with gateway({MODELS: models}) as server:
        async with model(server) as chat:
            with pytest.raises(ContextOverflow, match="answered 400"):
                await chat.complete(prompt(LIMIT))
        assert server.paths == [MODELS, CHAT]
        async with model(server, context_tokens=LIMIT) as chat:
            with pytest.raises(ContextOverflow, match="not sent"):
                await chat.complete(prompt(LIMIT))
    assert server.paths == [MODELS, CHAT, MODELS, TOKENIZE]


async def test_a_list_of_models_that_is_down_costs_no_call() -> None:
    async with gateway({MODELS: (503, b"")}) as server, model(server) as chat:
        for _ in range(2):
            await chat.complete(prompt(1500))
    assert server.paths == [MODELS, CHAT, CHAT]


async def test_an_agents_overflow_is_its_answer_without_a_call_of_the_model() -> None:
    request = agent_pb2.RespondRequest(
        episode_id="e",
        policy=scenario_pb2.Policy(primary=scenario_pb2.PolicyDocument(text="abcd" * LIMIT)),
        messages=[ep.Message(role=ep.ROLE_CUSTOMER, content="hi")],
    )
    async with gateway() as server, model(server) as chat:
        agent = BaselineAgent(chat, agent_pb2.Sampling(max_tokens=500))
        response = await agent.respond(request, 20)
    assert response.finish_reason == ep.FINISH_REASON_CONTEXT_OVERFLOW
    assert response.usage.model_calls == 0
    assert server.paths == [MODELS, TOKENIZE]
