"""Limits of size on real servers: what fits passes whole, what does not is one clear error and no crash."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import grpc
import pytest

from policysweep import errors
from policysweep.rpc import status
from policysweep.rpc.client import MAX_MESSAGE_BYTES, Channels
from policysweep.rpc.server import Service, serving
from policysweep.sweep.ledger import RunLedger
from policysweep.sweep.runner import Simulators
from policysweep.sweep.store import ResultStore
from policysweep.v1 import agent_pb2, agent_pb2_grpc, run_pb2, simulator_pb2, simulator_pb2_grpc
from policysweep.v1 import episode_pb2 as ep
from services.simulator.agent_client import GrpcAgent

SECONDS = 20.0
MEGABYTE = 1_000_000
TOO_LARGE = MAX_MESSAGE_BYTES + MEGABYTE
_AGENT = agent_pb2.DESCRIPTOR.services_by_name["AgentService"].full_name
_SIMULATOR = simulator_pb2.DESCRIPTOR.services_by_name["SimulatorService"].full_name


def said(size: int) -> list[ep.Message]:
    """Messages of `size` bytes together, none of them longer than a megabyte."""
    text = "äöü€ " * (MEGABYTE // 10)
    count = -(-size // len(text.encode()))
    return [ep.Message(role=ep.ROLE_CUSTOMER, content=text) for _ in range(count)]


class Agent(agent_pb2_grpc.AgentServiceServicer):
    """Answers with as many bytes as the request's step says."""

    async def Respond(  # noqa: N802 - the contract's name
        self, request: agent_pb2.RespondRequest, context: Any
    ) -> agent_pb2.RespondResponse:
        return agent_pb2.RespondResponse(
            message=ep.Message(role=ep.ROLE_AGENT, content="." * request.step or "hello")
        )

    async def GetAgentInfo(self, request: Any, context: Any) -> Any:  # noqa: N802 - the contract's name
        raise NotImplementedError


class Simulator(simulator_pb2_grpc.SimulatorServiceServicer):
    """Plays an episode of as many bytes as the seed says."""

    async def RunEpisode(  # noqa: N802 - the contract's name
        self, request: simulator_pb2.RunEpisodeRequest, context: Any
    ) -> AsyncIterator[simulator_pb2.RunEpisodeResponse]:
        episode = ep.Episode(episode_id=request.episode_id, messages=said(request.seed))
        episode.end.reason = ep.END_REASON_RESOLVED
        yield simulator_pb2.RunEpisodeResponse(episode=episode)

    def RunTau2Episode(self, request: Any, context: Any) -> Any:  # noqa: N802 - the contract's name
        raise NotImplementedError

    async def GetSimulatorInfo(self, request: Any, context: Any) -> Any:  # noqa: N802 - the contract's name
        raise NotImplementedError


@dataclass(frozen=True)
class Served:
    """Both behind one address."""

    address: str
    simulators: Simulators
    agent: GrpcAgent


@pytest.fixture(name="served")
async def served_fixture() -> AsyncIterator[Served]:
    def register_agent(server: grpc.aio.Server) -> None:
        agent_pb2_grpc.add_AgentServiceServicer_to_server(Agent(), server)

    def register_simulator(server: grpc.aio.Server) -> None:
        simulator_pb2_grpc.add_SimulatorServiceServicer_to_server(Simulator(), server)

    both = [Service(_AGENT, register_agent), Service(_SIMULATOR, register_simulator)]
    async with serving("127.0.0.1:0", both) as address, Channels() as channels:
        agent = GrpcAgent(channels.get(address), address, lambda: SECONDS)
        yield Served(address, Simulators("RunEpisode", [address], channels), agent)


async def test_an_episode_of_six_megabytes_is_played_recorded_and_read_again(served: Served) -> None:
    unit = run_pb2.Unit(unit_id="ab" * 16, agent="a")
    request = simulator_pb2.RunEpisodeRequest(episode_id=unit.unit_id, seed=6 * MEGABYTE)
    episode = await served.simulators.play(request, SECONDS)
    assert episode.ByteSize() >= 6 * MEGABYTE
    ledger = RunLedger(ResultStore.from_url("memory://"))
    record = run_pb2.UnitRecord(unit=unit, episode=episode, attempts=1)
    record.recorded_at.GetCurrentTime()
    assert await ledger.write_record(record)
    assert [read async for read in ledger.read_records()] == [record]


async def test_a_conversation_of_six_megabytes_reaches_the_agent(served: Served) -> None:
    answer = await served.agent.respond(agent_pb2.RespondRequest(messages=said(6 * MEGABYTE)))
    assert answer.message.content == "hello"


async def test_an_episode_beyond_the_limit_is_one_error_that_nobody_repeats(served: Served) -> None:
    request = simulator_pb2.RunEpisodeRequest(episode_id="e", seed=TOO_LARGE)
    with pytest.raises(
        errors.MessageTooLarge, match=r"the answer has 1\d{7} bytes.* at most 16777216"
    ) as told:
        await served.simulators.play(request, SECONDS)
    assert not told.value.retryable
    assert told.value.party == ep.FAULT_PARTY_INFRASTRUCTURE
    # Whoever served it goes on.
    assert await served.simulators.play(simulator_pb2.RunEpisodeRequest(seed=1), SECONDS)


async def test_a_conversation_beyond_the_limit_is_no_fault_of_the_agent(served: Served) -> None:
    with pytest.raises(errors.MessageTooLarge, match=r"agent at .*: the request has"):
        await served.agent.respond(agent_pb2.RespondRequest(messages=said(TOO_LARGE)))
    assert await served.agent.respond(agent_pb2.RespondRequest())


async def test_an_answer_of_the_agent_beyond_the_limit_is_its_fault(served: Served) -> None:
    with pytest.raises(errors.AgentContractError, match=r"agent at .*: the answer has") as told:
        await served.agent.respond(agent_pb2.RespondRequest(step=TOO_LARGE))
    assert told.value.party == ep.FAULT_PARTY_AGENT


async def test_a_caller_without_a_limit_of_its_own_is_refused(served: Served) -> None:
    """As one in another language may be; the server reads no more than it may."""
    async with grpc.aio.insecure_channel(
        served.address, options=[("grpc.max_send_message_length", -1)]
    ) as channel:
        stub: agent_pb2_grpc.AgentServiceAsyncStub = agent_pb2_grpc.AgentServiceStub(channel)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await stub.Respond(agent_pb2.RespondRequest(messages=said(TOO_LARGE)), timeout=SECONDS)
    assert isinstance(status.error_from(refused.value, status.AGENT, "here"), errors.MessageTooLarge)
