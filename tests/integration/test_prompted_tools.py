"""An agent over a server without tool calling acts as over one with it. All by the rehearsal model."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from policysweep.domains.returns.environment import agent_tools
from policysweep.domains.returns.resolution import resolution_options
from policysweep.errors import ModelServerRejected
from policysweep.models.openai_api import OpenAIChatModel
from policysweep.models.prompted_tools import ToolMode
from policysweep.models.rehearsal import RehearsalConfig, RehearsalServer
from policysweep.v1 import agent_pb2, scenario_pb2
from policysweep.v1 import episode_pb2 as ep
from services.agent.variants.baseline import BaselineAgent

SAMPLING = agent_pb2.Sampling(max_tokens=2_000)


@asynccontextmanager
async def agent(tool_mode: ToolMode, *, tool_calling: bool, fault: str = "") -> AsyncIterator[BaselineAgent]:
    faults = {fault: 1.0} if fault else {}
    async with (
        RehearsalServer(RehearsalConfig(tool_calling=tool_calling, faults=faults)) as server,
        OpenAIChatModel(base_url=server.url, model="rehearsal-fair") as model,
    ):
        yield BaselineAgent(model, SAMPLING, tool_mode)


def request(*messages: ep.Message) -> agent_pb2.RespondRequest:
    return agent_pb2.RespondRequest(
        episode_id="ep",
        policy=scenario_pb2.Policy(primary=scenario_pb2.PolicyDocument(text="Returns within 30 days.")),
        tools=agent_tools(),
        messages=[
            ep.Message(role=ep.ROLE_CUSTOMER, content="I want to return order ORD-112-904417."),
            *messages,
        ],
        resolution_options=resolution_options(),
        agent_persona=ep.AGENT_PERSONA_FAIR,
    )


def answered(response: agent_pb2.RespondResponse) -> list[ep.Message]:
    """The agent's message, with a result for each call."""
    results = [
        ep.Message(
            role=ep.ROLE_TOOL,
            content='{"status": "delivered", "delivered_on": "2025-03-01"}',
            tool_call_id=call.id,
            tool_name=call.name,
        )
        for call in response.message.tool_calls
    ]
    return [response.message, *results]


def said(response: agent_pb2.RespondResponse) -> object:
    """All but ids, which each server makes its own."""
    calls = [(call.name, call.arguments_json.replace(" ", "")) for call in response.message.tool_calls]
    return response.message.content, calls, response.resolution.outcome, response.finish_reason


async def test_both_ways_lead_to_the_same_conversation() -> None:
    async with (
        agent("native", tool_calling=True) as native,
        agent("prompted", tool_calling=False) as prompted,
    ):
        heard: list[list[ep.Message]] = [[], []]
        calls = 0
        for _ in range(4):
            first = await native.respond(request(*heard[0]), 10)
            second = await prompted.respond(request(*heard[1]), 10)
            assert said(first) == said(second)
            calls += len(first.message.tool_calls)
            following = (
                [] if first.message.tool_calls else [ep.Message(role=ep.ROLE_CUSTOMER, content="Yes.")]
            )
            heard = [
                [*heard[0], *answered(first), *following],
                [*heard[1], *answered(second), *following],
            ]
        assert calls


async def test_a_server_without_tool_calling_refuses_tools() -> None:
    async with agent("native", tool_calling=False) as native:
        with pytest.raises(ModelServerRejected, match="--enable-auto-tool-choice"):
            await native.respond(request(), 10)


async def test_what_changes_behaviour_is_told() -> None:
    async with (
        agent("native", tool_calling=True) as native,
        agent("prompted", tool_calling=False) as prompted,
    ):
        infos = [await native.info(10), await prompted.info(10)]
    assert [info.tool_mode for info in infos] == ["native", "prompted"]
    assert infos[0].prompt_digest != infos[1].prompt_digest


async def test_malformed_calls_reach_the_caller_as_such() -> None:
    async with agent("prompted", tool_calling=False, fault="malformed_tool_call") as prompted:
        (call,) = (await prompted.respond(request(), 10)).message.tool_calls
    assert call.name == "get_order_details"
    with pytest.raises(json.JSONDecodeError):
        json.loads(call.arguments_json)
