"""Episodes on the built-in returns data with an agent that reads a policy bank, over real gRPC throughout."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from policysweep.datasets.load import Dataset, load
from policysweep.domains.returns.environment import agent_tools
from policysweep.launch import Launcher
from policysweep.models.openai_api import OpenAIChatModel
from policysweep.models.rehearsal import RehearsalServer
from policysweep.rpc.client import Channels
from policysweep.rpc.server import Service, serving
from policysweep.v1 import agent_pb2, agent_pb2_grpc, policybank_pb2_grpc, simulator_pb2, simulator_pb2_grpc
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import policybank_pb2 as pb
from services.agent.bank_client import GrpcBank
from services.agent.config import AgentConfig, MemoryMode
from services.agent.service import agent_service
from services.agent.variants.policybank import PolicyBankAgent
from services.policybank.assembly import servicer
from services.policybank.config import PolicyBankConfig
from services.policybank.service import policybank_service
from services.simulator.config import SimulatorConfig
from services.simulator.service import Simulator

_SIMULATOR = simulator_pb2.DESCRIPTOR.services_by_name["SimulatorService"].full_name
LIMITS = simulator_pb2.EpisodeLimits(
    max_turns=20, max_tool_rounds=8, max_errors=5, max_repeated_calls=5, max_tokens=10**6,
    agent_call_seconds=20,
)  # fmt: skip
DATA: Dataset = load("builtin")


class Stage:
    """The services of one episode in this process."""

    def __init__(self, channels: Channels, url: str, agent: str, bank: str, simulator: str) -> None:
        self.model_url = url
        self.agent_target = agent
        self.bank_target = bank
        self.agent: Any = agent_pb2_grpc.AgentServiceStub(channels.get(agent))
        self.bank: Any = policybank_pb2_grpc.PolicyBankServiceStub(channels.get(bank))
        self._simulator: Any = simulator_pb2_grpc.SimulatorServiceStub(channels.get(simulator))

    async def create(self, method: pb.MemoryMethod.ValueType) -> pb.Revision:
        request = pb.CreateBankRequest(
            bank_id="b", method=method, policy=DATA.scenarios[0].policy, tools=agent_tools()
        )
        revision: pb.Revision = (await self.bank.CreateBank(request, timeout=30)).revision
        return revision

    async def play(self, index: int = 0) -> ep.Episode:
        scenario = type(DATA.scenarios[index])()
        scenario.CopyFrom(DATA.scenarios[index])
        scenario.ClearField("task")
        request = simulator_pb2.RunEpisodeRequest(
            episode_id="e", scenario=scenario, world=DATA.worlds[scenario.task_id], bank_id="b",
            agent_target=self.agent_target, agent_persona=ep.AGENT_PERSONA_FAIR, seed=1, limits=LIMITS,
        )  # fmt: skip
        events = [event async for event in self._simulator.RunEpisode(request, timeout=60)]
        episode: ep.Episode = events[-1].episode
        return episode


@asynccontextmanager
async def stage(mode: MemoryMode, **settings: Any) -> AsyncIterator[Stage]:
    async with (
        RehearsalServer() as server,
        OpenAIChatModel(base_url=server.url, model="rehearsal-fair") as model,
        Channels() as channels,
    ):
        common: dict[str, Any] = {"model_url": server.url, "model": "rehearsal-fair"}
        endpoint: dict[str, Any] = {
            "embedder_url": server.url,
            "embedder_model": "none",
            "embedder_dimension": 8,
        }
        bank_config = PolicyBankConfig(**common, **endpoint, store="memory")
        async with (
            servicer(bank_config, model) as banks,
            serving("127.0.0.1:0", [policybank_service(banks)]) as bank,
        ):
            config = AgentConfig(**common, memory=mode, bank_target=bank, **settings)
            player = PolicyBankAgent(
                model, agent_pb2.Sampling(max_tokens=1000), GrpcBank(channels, bank), config
            )
            simulator = Simulator(SimulatorConfig(**common), model, channels)
            service = Service(
                _SIMULATOR,
                lambda server: simulator_pb2_grpc.add_SimulatorServiceServicer_to_server(simulator, server),
            )
            async with (
                serving("127.0.0.1:0", [agent_service(player, 20)]) as agent,
                serving("127.0.0.1:0", [service]) as address,
            ):
                yield Stage(channels, server.url, agent, bank, address)


def consulted(episode: ep.Episode) -> list[str]:
    return [each for call in episode.model_calls for each in call.consulted_spec_ids]


@pytest.mark.parametrize("with_policy", [True, False])
async def test_the_model_reads_the_bank_and_the_caller_never_sees_it(with_policy: bool) -> None:
    async with stage("retrieve", policy_in_prompt=with_policy) as scene:
        made = await scene.create(pb.MEMORY_METHOD_POLICY_BANK)
        episode = await scene.play()
    ids = {entry.capability_id for entry in made.entries}
    assert len(ids) > 10
    assert episode.end.reason in (ep.END_REASON_RESOLVED, ep.END_REASON_CUSTOMER_WITHDREW)
    assert set(consulted(episode)) <= ids
    assert consulted(episode)
    first = next(call for call in episode.model_calls if call.role == ep.ROLE_AGENT)
    assert first.usage.model_calls == 3
    assert first.consulted_spec_ids
    tools = {call.name for message in episode.messages for call in message.tool_calls}
    assert "retrieve_policy" not in tools
    assert not episode.errors.agent_unknown_tools


async def test_an_agent_process_with_the_flags_of_the_documentation(tmp_path: Path) -> None:
    async with stage("retrieve") as scene, Launcher(tmp_path, pytest.fail) as launcher:
        made = await scene.create(pb.MEMORY_METHOD_POLICY_BANK)
        flags = ["--model-url", scene.model_url, "--model", "rehearsal-fair"]
        flags += ["--memory", "retrieve", "--bank-target", scene.bank_target]
        scene.agent_target = await launcher.start("agent", "services.agent", flags)
        episode = await scene.play(3)
    assert episode.end.reason in (ep.END_REASON_RESOLVED, ep.END_REASON_CUSTOMER_WITHDREW)
    assert consulted(episode)
    assert set(consulted(episode)) <= {entry.capability_id for entry in made.entries}


async def test_all_entries_in_the_prompt() -> None:
    async with stage("full") as scene:
        made = await scene.create(pb.MEMORY_METHOD_FULL_CONTEXT)
        episode = await scene.play(7)
    assert consulted(episode) == [entry.capability_id for entry in made.entries]
    assert episode.end.reason in (ep.END_REASON_RESOLVED, ep.END_REASON_CUSTOMER_WITHDREW)


async def test_an_empty_memory_changes_nothing() -> None:
    async with stage("static_turn") as scene:
        await scene.create(pb.MEMORY_METHOD_SYNAPSE)
        episode = await scene.play(11)
    assert consulted(episode) == []
    assert episode.end.reason in (ep.END_REASON_RESOLVED, ep.END_REASON_CUSTOMER_WITHDREW)


async def test_a_bank_that_does_not_exist_is_no_result() -> None:
    async with stage("retrieve") as scene:
        with pytest.raises(grpc.aio.AioRpcError, match="no bank 'b': create it first"):
            await scene.play()
        info = (await scene.agent.GetAgentInfo(agent_pb2.GetAgentInfoRequest(), timeout=9)).info
    assert (info.variant, info.memory_mode) == ("policybank", "retrieve")
