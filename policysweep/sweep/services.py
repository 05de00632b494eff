"""The services of a sweep: those that run elsewhere by address, the others started here as processes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import grpc

from policysweep.launch import Launcher
from policysweep.rpc import status
from policysweep.rpc.client import Channels
from policysweep.rpc.tls import TlsFiles
from policysweep.sweep.model_spec import (
    REHEARSAL_PREFIX,
    CustomerSpec,
    JudgeSpec,
    ModelSpec,
    ServedSpec,
)
from policysweep.sweep.spec import SweepSpec
from policysweep.v1 import agent_pb2, agent_pb2_grpc, simulator_pb2, simulator_pb2_grpc

_INFO_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where the services of a sweep listen."""

    agents: Mapping[str, str]
    """gRPC target by the agent's name in the sweep."""
    simulators: Sequence[str]
    rehearsal: str | None
    """HOST:PORT of the rehearsal server; None when the sweep needs none."""


async def start_services(spec: SweepSpec, launcher: Launcher, tls: TlsFiles | None = None) -> Endpoints:
    """Start what the sweep does not name an address for, the judges apart.

    With `tls` the services started here show that certificate, as whoever calls them does.
    """
    customer = spec.customer or CustomerSpec()
    local: list[ModelSpec] = [agent for agent in spec.agents if agent.target is None]
    if spec.simulators is None:
        local.append(customer)
    rehearsal = await start_rehearsal(local, launcher)
    simulators = spec.simulators
    if simulators is None:
        flags = service_flags(customer, rehearsal, tls)
        simulators = (await launcher.start("simulator", "services.simulator", flags),)
    agents = await _start_all(spec.agents, "services.agent", launcher, rehearsal, tls)
    return Endpoints(agents, simulators, rehearsal)


async def start_rehearsal(
    models: Sequence[ModelSpec], launcher: Launcher, flags: Sequence[str] = ()
) -> str | None:
    """HOST:PORT of a rehearsal server, started with these flags if any of the models needs one."""
    if not any(needs_rehearsal(model) for model in models):
        return None
    return await launcher.start("rehearsal", "policysweep rehearsal", flags)


async def start_judges(
    judges: Sequence[JudgeSpec],
    launcher: Launcher,
    rehearsal: str | None = None,
    *,
    tls: TlsFiles | None = None,
) -> Mapping[str, str]:
    """Start the judges that have no address; gives the gRPC target of each by name.

    `rehearsal` is a rehearsal server that already runs.
    """
    if rehearsal is None:
        rehearsal = await start_rehearsal(judges, launcher)
    return await _start_all(judges, "services.judge", launcher, rehearsal, tls)


async def _start_all(
    specs: Sequence[ServedSpec], module: str, launcher: Launcher, rehearsal: str | None, tls: TlsFiles | None
) -> dict[str, str]:
    targets = await asyncio.gather(
        *(_start(spec, module, launcher, service_flags(spec, rehearsal, tls)) for spec in specs)
    )
    return {spec.name: target for spec, target in zip(specs, targets, strict=True)}


async def _start(spec: ServedSpec, module: str, launcher: Launcher, flags: Sequence[str]) -> str:
    if spec.target is not None:
        return spec.target
    return await launcher.start(f"{spec.kind}-{spec.name}", module, flags)


def needs_rehearsal(model: ModelSpec) -> bool:
    """Whether the model is served by the rehearsal server of a local run."""
    return model.model_url is None and (model.model or "").startswith(REHEARSAL_PREFIX)


def service_flags(model: ModelSpec, rehearsal: str | None, tls: TlsFiles | None) -> list[str]:
    """The model's settings and the TLS files as flags of a service, which have the same names."""
    settings = {**model.settings()}
    if needs_rehearsal(model):
        settings["model_url"] = f"http://{rehearsal}/v1"
    flags = [part for name, value in settings.items() for part in _flag(name.replace("_", "-"), value)]
    return [*flags, *(tls.flags() if tls else ())]


def _flag(name: str, value: str | int | float) -> tuple[str, ...]:
    if isinstance(value, bool):
        return (f"--{name}" if value else f"--no-{name}",)
    return (f"--{name}", str(value))


async def agent_infos(endpoints: Endpoints, channels: Channels) -> dict[str, agent_pb2.AgentInfo]:
    """What each agent says of itself, by name. Raises the error of the first that cannot be asked."""
    infos = await asyncio.gather(
        *(_agent_info(name, target, channels) for name, target in endpoints.agents.items())
    )
    return dict(infos)


async def _agent_info(name: str, target: str, channels: Channels) -> tuple[str, agent_pb2.AgentInfo]:
    stub: agent_pb2_grpc.AgentServiceAsyncStub = agent_pb2_grpc.AgentServiceStub(channels.get(target))
    try:
        answer = await stub.GetAgentInfo(agent_pb2.GetAgentInfoRequest(), timeout=_INFO_SECONDS)
    except grpc.aio.AioRpcError as error:
        known = status.error_from(error, status.AGENT, target)
        raise type(known)(f"agent {name}: {known}") from error
    return name, answer.info


async def simulator_infos(endpoints: Endpoints, channels: Channels) -> dict[str, simulator_pb2.SimulatorInfo]:
    """What each simulator says of itself, by target. Raises the error of the first that cannot be asked."""
    infos = await asyncio.gather(*(_simulator_info(target, channels) for target in endpoints.simulators))
    return dict(zip(endpoints.simulators, infos, strict=True))


async def _simulator_info(target: str, channels: Channels) -> simulator_pb2.SimulatorInfo:
    stub: simulator_pb2_grpc.SimulatorServiceAsyncStub = simulator_pb2_grpc.SimulatorServiceStub(
        channels.get(target)
    )
    try:
        answer = await stub.GetSimulatorInfo(simulator_pb2.GetSimulatorInfoRequest(), timeout=_INFO_SECONDS)
    except grpc.aio.AioRpcError as error:
        known = status.error_from(error, status.SERVICE, target)
        raise type(known)(f"simulator {target}: {known}") from error
    return answer.info
