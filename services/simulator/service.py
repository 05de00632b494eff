"""SimulatorService on the wire. Translates between the contract and the turn loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc

from policysweep import __version__, telemetry
from policysweep.domains.returns.environment import customer_tools
from policysweep.domains.tau2 import Domain, installed
from policysweep.models.observed import ObservedModel
from policysweep.models.openai_api import OpenAIChatModel
from policysweep.models.prompted_tools import prompt_digest, with_prompted_tools
from policysweep.models.tools import openai_tools
from policysweep.rpc.client import Channels
from policysweep.rpc.deadlines import budget
from policysweep.v1 import agent_pb2, simulator_pb2, simulator_pb2_grpc
from policysweep.v1 import episode_pb2 as ep
from services.simulator import environment
from services.simulator.agent_client import GrpcAgent
from services.simulator.config import SimulatorConfig
from services.simulator.customer import PROMPT_DIGEST, ModelCustomer, character, opening_chat
from services.simulator.dialogue import Notify
from services.simulator.tau2 import user as tau2_user
from services.simulator.tau2.episodes import Tau2Episodes
from services.simulator.turn_loop import TurnLoop

_Context = grpc.aio.ServicerContext[Any, Any]
_Play = Callable[[Notify], Awaitable[ep.Episode]]
"""Plays one conversation and tells of its messages."""


class Simulator(simulator_pb2_grpc.SimulatorServiceServicer):
    """Runs episodes. Holds no state but channels and the customer's model."""

    def __init__(self, config: SimulatorConfig, model: OpenAIChatModel, channels: Channels) -> None:
        self._config = config
        self._served = model
        self._model = ObservedModel(
            with_prompted_tools(model, config.tool_mode), role="customer", name=config.model
        )
        self._channels = channels
        self._customer_tools = openai_tools(customer_tools())
        self._sampling = agent_pb2.Sampling(
            temperature=config.temperature, top_p=config.top_p, max_tokens=config.max_tokens
        )
        self._tau2 = Tau2Episodes(self._model, self._sampling)

    async def RunEpisode(  # noqa: N802 - the contract's name
        self, request: simulator_pb2.RunEpisodeRequest, context: _Context
    ) -> AsyncIterator[simulator_pb2.RunEpisodeResponse]:
        """Play one conversation; stream its messages if asked to; end with the episode."""
        environment.check_setup(request)

        async def play(notify: Notify) -> ep.Episode:
            return await self._play(request, context, notify)

        async for event in _events(play, request.stream_messages):
            if isinstance(event, ep.Message):
                yield simulator_pb2.RunEpisodeResponse(message=event)
            else:
                yield simulator_pb2.RunEpisodeResponse(episode=event)

    async def RunTau2Episode(  # noqa: N802 - the contract's name
        self, request: simulator_pb2.RunTau2EpisodeRequest, context: _Context
    ) -> AsyncIterator[simulator_pb2.RunTau2EpisodeResponse]:
        """The same on a tau2-bench domain."""
        domain = await self._tau2.prepare(request)

        async def play(notify: Notify) -> ep.Episode:
            return await self._play_tau2(request, domain, context, notify)

        async for event in _events(play, request.stream_messages):
            if isinstance(event, ep.Message):
                yield simulator_pb2.RunTau2EpisodeResponse(message=event)
            else:
                yield simulator_pb2.RunTau2EpisodeResponse(episode=event)

    async def _play(
        self, request: simulator_pb2.RunEpisodeRequest, context: _Context, notify: Notify
    ) -> ep.Episode:
        opening = environment.opening(request)
        loop = TurnLoop(
            request,
            environment.first_request(request),
            self._agent(
                request.agent_target,
                request.limits.agent_call_seconds,
                context,
                environment.shared_part(request),
            ),
            self._customer(request, context, opening),
            environment.returns_environment(request),
            notify,
        )
        return await loop.play(opening)

    async def _play_tau2(
        self, request: simulator_pb2.RunTau2EpisodeRequest, domain: Domain, context: _Context, notify: Notify
    ) -> ep.Episode:
        return await self._tau2.play(
            request,
            domain,
            self._agent(request.agent_target, request.limits.agent_call_seconds, context),
            lambda: budget(context, self._config.model_timeout_seconds),
            notify,
        )

    def _agent(self, target: str, seconds: float, context: _Context, shared: bytes = b"") -> GrpcAgent:
        return GrpcAgent(self._channels.get(target), target, lambda: budget(context, seconds), shared)

    def _customer(
        self, request: simulator_pb2.RunEpisodeRequest, context: _Context, opening: str
    ) -> ModelCustomer:
        return ModelCustomer(
            self._model,
            chat=opening_chat(character(request.scenario, request.world.order.order_id), opening),
            tools=self._customer_tools,
            sampling=self._sampling,
            seed=request.seed,
            # The agent's model sees the episode id; the customer's conversation is another one.
            session_id=f"{request.episode_id}-customer",
            timeout=lambda: budget(context, self._config.model_timeout_seconds),
        )

    async def GetSimulatorInfo(  # noqa: N802 - the contract's name
        self, request: simulator_pb2.GetSimulatorInfoRequest, context: _Context
    ) -> simulator_pb2.GetSimulatorInfoResponse:
        """All that changes behaviour; fails while the customer's model is not served."""
        served = await self._served.describe()
        mode = self._config.tool_mode
        tau2 = {
            "tau2_prompt_digest": prompt_digest(tau2_user.PROMPT_DIGEST, mode),
            "tau2_package": installed(),
        }
        return simulator_pb2.GetSimulatorInfoResponse(
            info=simulator_pb2.SimulatorInfo(
                customer_model=self._config.model,
                prompt_digest=prompt_digest(PROMPT_DIGEST, mode),
                tools_digest=environment.tools_digest(),
                sampling=self._sampling,
                rehearsal=served.rehearsal,
                version=__version__,
                tool_mode=mode,
                **(tau2 if request.include_tau2 else {}),
            )
        )


async def _events(play: _Play, stream: bool) -> AsyncIterator[ep.Message | ep.Episode]:
    """The episode, and before it each message if asked for. Nobody listening any more stops the work."""
    if not stream:
        yield await _observed(play, _ignore)
        return
    said: asyncio.Queue[ep.Message | None] = asyncio.Queue()
    playing = asyncio.create_task(_observed(play, said.put_nowait))
    playing.add_done_callback(lambda _: said.put_nowait(None))
    try:
        while (message := await said.get()) is not None:
            yield message
        yield await playing
    finally:
        playing.cancel()


async def _observed(play: _Play, notify: Notify) -> ep.Episode:
    """The episode with its duration, counted in the metrics."""
    started = time.monotonic()
    with telemetry.EPISODES_RUNNING.track_inprogress():
        episode = await play(notify)
    episode.duration_seconds = time.monotonic() - started
    telemetry.EPISODE_SECONDS.observe(episode.duration_seconds)
    telemetry.EPISODES.labels(
        telemetry.enum_label(ep.EndReason, episode.end.reason),
        telemetry.enum_label(ep.FaultParty, episode.end.fault),
    ).inc()
    return episode


def _ignore(message: ep.Message) -> None:
    pass
