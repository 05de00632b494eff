"""SimulatorService on the wire. Translates between the contract and the turn loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import grpc

from policysweep import __version__, telemetry
from policysweep.domains.returns.environment import customer_tools
from policysweep.models.observed import ObservedModel
from policysweep.models.openai_api import OpenAIChatModel
from policysweep.models.tools import openai_tools
from policysweep.rpc.client import Channels
from policysweep.rpc.deadlines import budget
from policysweep.v1 import agent_pb2, simulator_pb2, simulator_pb2_grpc
from policysweep.v1 import episode_pb2 as ep
from services.simulator import environment
from services.simulator.agent_client import GrpcAgent
from services.simulator.config import SimulatorConfig
from services.simulator.customer import PROMPT_DIGEST, ModelCustomer, system_prompt
from services.simulator.turn_loop import Notify, TurnLoop

_Context = grpc.aio.ServicerContext[Any, Any]


class Simulator(simulator_pb2_grpc.SimulatorServiceServicer):
    """Runs episodes. Holds no state but channels and the customer's model."""

    def __init__(self, config: SimulatorConfig, model: OpenAIChatModel, channels: Channels) -> None:
        self._config = config
        self._served = model
        self._model = ObservedModel(model, role="customer")
        self._channels = channels
        self._customer_tools = openai_tools(customer_tools())
        self._sampling = agent_pb2.Sampling(
            temperature=config.temperature, top_p=config.top_p, max_tokens=config.max_tokens
        )

    async def RunEpisode(  # noqa: N802 - the contract's name
        self, request: simulator_pb2.RunEpisodeRequest, context: _Context
    ) -> AsyncIterator[simulator_pb2.RunEpisodeResponse]:
        """Play one conversation; stream its messages if asked to; end with the episode."""
        environment.check_setup(request)
        if not request.stream_messages:
            yield simulator_pb2.RunEpisodeResponse(episode=await self._play(request, context, _ignore))
            return
        async for response in self._stream(request, context):
            yield response

    async def _stream(
        self, request: simulator_pb2.RunEpisodeRequest, context: _Context
    ) -> AsyncIterator[simulator_pb2.RunEpisodeResponse]:
        said: asyncio.Queue[ep.Message | None] = asyncio.Queue()
        playing = asyncio.create_task(self._play(request, context, said.put_nowait))
        playing.add_done_callback(lambda _: said.put_nowait(None))
        try:
            while (message := await said.get()) is not None:
                yield simulator_pb2.RunEpisodeResponse(message=message)
            yield simulator_pb2.RunEpisodeResponse(episode=await playing)
        finally:
            playing.cancel()

    async def _play(
        self, request: simulator_pb2.RunEpisodeRequest, context: _Context, notify: Notify
    ) -> ep.Episode:
        opening = environment.opening(request)
        loop = TurnLoop(
            request,
            environment.first_request(request),
            GrpcAgent(
                self._channels.get(request.agent_target),
                request.agent_target,
                lambda: budget(context, request.limits.agent_call_seconds),
            ),
            self._customer(request, context, opening),
            environment.returns_environment(request),
            notify,
        )
        started = time.monotonic()
        with telemetry.EPISODES_RUNNING.track_inprogress():
            episode = await loop.play(opening)
        episode.duration_seconds = time.monotonic() - started
        telemetry.EPISODES.labels(
            ep.EndReason.Name(episode.end.reason), ep.FaultParty.Name(episode.end.fault)
        ).inc()
        return episode

    def _customer(
        self, request: simulator_pb2.RunEpisodeRequest, context: _Context, opening: str
    ) -> ModelCustomer:
        return ModelCustomer(
            self._model,
            system=system_prompt(request.scenario, request.world.order.order_id),
            opening=opening,
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
        return simulator_pb2.GetSimulatorInfoResponse(
            info=simulator_pb2.SimulatorInfo(
                customer_model=self._config.model,
                prompt_digest=PROMPT_DIGEST,
                tools_digest=environment.tools_digest(),
                sampling=self._sampling,
                rehearsal=served.rehearsal,
                version=__version__,
            )
        )


def _ignore(message: ep.Message) -> None:
    pass
