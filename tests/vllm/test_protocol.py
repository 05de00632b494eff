"""Single calls to a real vLLM through the client that all services use."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from policysweep.errors import ContextOverflow, ModelServerRejected
from policysweep.models.chat import ChatRequest, ResponseSchema
from policysweep.models.openai_api import OpenAIChatModel
from policysweep.v1 import agent_pb2
from policysweep.v1 import episode_pb2 as ep
from scripts.vllm.serve import MODELS, Server

SECONDS = 900.0
SAMPLING = agent_pb2.Sampling(temperature=1.0, max_tokens=400)
MESSAGES = [
    {"role": "system", "content": "You answer customers. " * 100},
    {"role": "user", "content": "I want my money back."},
]
PARAMETERS = {
    "type": "object",
    "properties": {
        "order_id": {"type": "string", "enum": ["ORD-1", "ORD-2"]},
        "reason": {"type": "string"},
    },
    "required": ["order_id", "reason"],
    "additionalProperties": False,
}
TOOL = {
    "type": "function",
    "function": {"name": "refund", "description": "Refund.", "strict": True, "parameters": PARAMETERS},
}


@pytest.fixture
async def model(tiny: Server) -> AsyncIterator[OpenAIChatModel]:
    async with OpenAIChatModel(base_url=tiny.url, model="tiny") as client:
        yield client


def request(**changes: Any) -> ChatRequest:
    return ChatRequest(
        **{"messages": MESSAGES, "sampling": SAMPLING, "seed": 1, "timeout": SECONDS, **changes}
    )


async def test_the_server_tells_its_context(model: OpenAIChatModel) -> None:
    described = await model.describe(SECONDS)
    assert described.max_model_len == MODELS["tiny"].context
    assert not described.rehearsal


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "refund"}}])
async def test_a_forced_strict_call_holds_its_schema(model: OpenAIChatModel, choice: Any) -> None:
    for seed in range(3):
        reply = await model.complete(request(tools=[TOOL], tool_choice=choice, seed=seed))
        assert reply.finish_reason in (ep.FINISH_REASON_TOOL_CALLS, ep.FINISH_REASON_STOP)
        assert reply.tool_calls
        for call in reply.tool_calls:
            arguments = json.loads(call.arguments_json)
            assert (call.name, set(arguments)) == ("refund", {"order_id", "reason"})
            assert arguments["order_id"] in ("ORD-1", "ORD-2")


async def test_an_answer_with_a_schema_holds_it_and_carries_logprobs(model: OpenAIChatModel) -> None:
    schema = ResponseSchema("refund", PARAMETERS)
    reply = await model.complete(request(response_schema=schema, top_logprobs=5))
    assert json.loads(reply.text)["order_id"] in ("ORD-1", "ORD-2")
    assert "".join(token.token for token in reply.logprobs).startswith("{")
    assert all(len(token.alternatives) >= 5 for token in reply.logprobs)


async def test_a_malformed_call_of_the_history_does_not_stop_the_conversation(model: OpenAIChatModel) -> None:
    """vLLM parses the calls of the history, and refuses what is not JSON."""
    function = {"name": "refund now!", "arguments": '{"order_id": "ORD-1'}
    history = [
        *MESSAGES,
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "c", "content": '{"error": "not JSON"}'},
    ]
    reply = await model.complete(request(messages=history, tools=[TOOL]))
    assert reply.usage.completion_tokens > 0


async def test_cached_tokens_are_counted(model: OpenAIChatModel) -> None:
    first = await model.complete(request())
    again = await model.complete(request())
    assert first.usage.prompt_tokens == again.usage.prompt_tokens
    # The cache keeps blocks of 128 tokens on a CPU, and the last block is always computed.
    assert again.usage.cached_prompt_tokens >= again.usage.prompt_tokens - 2 * 128


async def test_a_prompt_that_does_not_fit_is_its_own_class(model: OpenAIChatModel) -> None:
    long = [{"role": "user", "content": "x y z " * MODELS["tiny"].context}]
    with pytest.raises(ContextOverflow):
        await model.complete(request(messages=long))


async def test_vllm_itself_refuses_it_in_words_that_are_known(tiny: Server) -> None:
    """Dense text that an estimate takes to fit is refused by the server; that is the same class."""
    long = [{"role": "user", "content": "%" * 4 * MODELS["tiny"].context}]
    async with OpenAIChatModel(base_url=tiny.url, model="tiny") as fresh:
        with pytest.raises(ContextOverflow):
            await fresh.complete(request(messages=long))


async def test_a_model_that_is_not_served_is_named_as_such(tiny: Server) -> None:
    async with OpenAIChatModel(base_url=tiny.url, model="huge") as client:
        with pytest.raises(ModelServerRejected, match="tiny"):
            await client.describe(SECONDS)
        with pytest.raises(ModelServerRejected):
            await client.complete(request())
