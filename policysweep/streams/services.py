"""The services of a stream run: those that run elsewhere by address, the others started here as processes.

An agent service uses its memory in one way, so an agent that plays several methods has several services.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import grpc

from policysweep.datasets.tau2 import load_tau2
from policysweep.datasets.tau2_gold import write_gold
from policysweep.errors import InputError
from policysweep.launch import Launcher
from policysweep.rpc import status
from policysweep.rpc.client import Channels
from policysweep.rpc.tls import TlsFiles
from policysweep.streams.banks import bank_service_info
from policysweep.streams.spec import MemoryMode, StreamAgentSpec, StreamSpec
from policysweep.sweep.judge_client import JudgeClient
from policysweep.sweep.model_spec import CustomerSpec, ModelSpec, ServedSpec
from policysweep.sweep.services import needs_rehearsal, service_flags, start_rehearsal
from policysweep.v1 import agent_pb2, agent_pb2_grpc, judge_pb2, simulator_pb2, simulator_pb2_grpc
from policysweep.v1 import policybank_pb2 as pb

_INFO_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where the services of a stream run listen."""

    agents: Mapping[tuple[str, str], str]
    """gRPC target by the agent's name and memory mode."""
    simulators: Sequence[str]
    judge: str
    bank: str | None
    """None when no method has a bank."""


@dataclass(frozen=True, slots=True)
class Infos:
    """What the services say of themselves."""

    agents: Mapping[tuple[str, str], agent_pb2.AgentInfo]
    simulators: Mapping[str, simulator_pb2.SimulatorInfo]
    judge: judge_pb2.JudgeInfo
    bank: pb.BankServiceInfo | None


async def start_services(
    spec: StreamSpec, launcher: Launcher, bank_store: str | None, gold: Path, tls: TlsFiles | None = None
) -> Endpoints:
    """Start what the file does not name an address for.

    `bank_store` is where a bank service that is started here keeps its banks if the file does not say.
    `gold` is where a rehearsal server that is started here finds what its agents follow: no other model ever
    sees it. With `tls` the services started here show that certificate, as whoever calls them does.
    """
    rehearsal = await _rehearsal(spec, launcher, gold)

    def flags(model: ModelSpec, *more: str) -> list[str]:
        return [*service_flags(model, rehearsal, tls), *more]

    async def start(name: str, model: ModelSpec, *more: str) -> str:
        return await launcher.start(name, f"services.{name}", flags(model, *more))

    async def bank_service() -> str | None:
        if not spec.needs_bank:
            return None
        return spec.bank.target or await start("policybank", spec.bank, *_store_flags(spec, bank_store))

    async def simulator_services() -> Sequence[str]:
        return spec.simulators or [await start("simulator", spec.customer or CustomerSpec())]

    async def judge_service() -> str:
        return spec.judge.target or await start("judge", spec.judge)

    bank, simulators, judge = await asyncio.gather(bank_service(), simulator_services(), judge_service())
    wanted = [(agent, mode) for agent in spec.agents for mode in spec.memory_modes()]
    targets = await asyncio.gather(
        *(_agent(agent, mode, launcher, flags(agent, *_memory(agent, mode, bank))) for agent, mode in wanted)
    )
    agents: dict[tuple[str, str], str] = {
        (agent.name, mode): target for (agent, mode), target in zip(wanted, targets, strict=True)
    }
    return Endpoints(agents, simulators, judge, bank)


async def _agent(agent: StreamAgentSpec, mode: MemoryMode, launcher: Launcher, flags: Sequence[str]) -> str:
    if agent.targets is not None:
        return agent.targets[mode]
    return await launcher.start(f"agent-{agent.name}-{mode}", "services.agent", flags)


def _memory(agent: StreamAgentSpec, mode: MemoryMode, bank: str | None) -> list[str]:
    if bank is None or mode == "none":
        return []
    withheld = [] if agent.policy_in_prompt else ["--no-policy-in-prompt"]
    return ["--memory", mode, "--bank-target", bank, *withheld]


def _store_flags(spec: StreamSpec, bank_store: str | None) -> list[str]:
    if spec.bank.store is not None:
        return []
    if bank_store is None:
        raise InputError(
            "bank.store is missing: with results in an object store there is no folder for the banks; name a "
            "directory or the URL of a Qdrant server, or the target of a bank service that runs"
        )
    return ["--store", bank_store]


async def _rehearsal(spec: StreamSpec, launcher: Launcher, gold: Path) -> str | None:
    """HOST:PORT of a rehearsal server, if a service that is started here needs one."""
    models = list(_local_models(spec))
    if any(needs_rehearsal(model) for model in models):
        await asyncio.to_thread(write_gold, gold, [load_tau2(domain) for domain in spec.domains])
    return await start_rehearsal(models, launcher, ["--tau2-gold", str(gold)])


def _local_models(spec: StreamSpec) -> Iterator[ModelSpec]:
    yield from (agent for agent in spec.agents if agent.targets is None)
    served: list[ServedSpec] = [spec.judge, *([spec.bank] if spec.needs_bank else [])]
    yield from (each for each in served if each.target is None)
    if spec.simulators is None:
        yield spec.customer or CustomerSpec()


async def ask_infos(spec: StreamSpec, endpoints: Endpoints, channels: Channels) -> Infos:
    """What the services say of themselves. Raises the error of the first that cannot be asked.

    InputError when an agent uses its memory in another way than the file wants.
    """
    agents = await asyncio.gather(
        *(_agent_info(key, target, channels) for key, target in endpoints.agents.items())
    )
    simulators = await asyncio.gather(*(_simulator_info(each, channels) for each in endpoints.simulators))
    judge = await JudgeClient(spec.judge.name, endpoints.judge, channels).tau2_info()
    return Infos(
        dict(zip(endpoints.agents, agents, strict=True)),
        dict(zip(endpoints.simulators, simulators, strict=True)),
        judge,
        await bank_service_info(endpoints.bank, channels) if endpoints.bank else None,
    )


async def _agent_info(key: tuple[str, str], target: str, channels: Channels) -> agent_pb2.AgentInfo:
    name, mode = key
    stub: agent_pb2_grpc.AgentServiceAsyncStub = agent_pb2_grpc.AgentServiceStub(channels.get(target))
    try:
        info = (await stub.GetAgentInfo(agent_pb2.GetAgentInfoRequest(), timeout=_INFO_SECONDS)).info
    except grpc.aio.AioRpcError as error:
        known = status.error_from(error, status.AGENT, target)
        raise type(known)(f"agent {name} with memory {mode}: {known}") from error
    if (info.memory_mode or "none") != mode:
        raise InputError(
            f"agent {name}: the service at {target} has memory {info.memory_mode or 'none'}, but it is named "
            f"for memory {mode}: start it with --memory {mode}, or name another one under targets"
        )
    return info


async def _simulator_info(target: str, channels: Channels) -> simulator_pb2.SimulatorInfo:
    stub: simulator_pb2_grpc.SimulatorServiceAsyncStub = simulator_pb2_grpc.SimulatorServiceStub(
        channels.get(target)
    )
    request = simulator_pb2.GetSimulatorInfoRequest(include_tau2=True)
    try:
        return (await stub.GetSimulatorInfo(request, timeout=_INFO_SECONDS)).info
    except grpc.aio.AioRpcError as error:
        known = status.error_from(error, status.SERVICE, target)
        raise type(known)(f"simulator {target}: {known}") from error
