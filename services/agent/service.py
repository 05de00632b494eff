"""AgentService on the wire. Translates between the contract and an agent; holds no logic."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from policysweep.rpc.deadlines import budget
from policysweep.rpc.server import Service
from policysweep.v1 import agent_pb2, agent_pb2_grpc
from services.agent.agent import Agent

_NAME = agent_pb2.DESCRIPTOR.services_by_name["AgentService"].full_name
_Context = grpc.aio.ServicerContext[Any, Any]


class AgentServicer(agent_pb2_grpc.AgentServiceServicer):
    """Serves `agent`; one call to its model takes `model_timeout_seconds` at most."""

    def __init__(self, agent: Agent, model_timeout_seconds: float) -> None:
        self._agent = agent
        self._cap = model_timeout_seconds

    async def Respond(  # noqa: N802 - the contract's name
        self, request: agent_pb2.RespondRequest, context: _Context
    ) -> agent_pb2.RespondResponse:
        """The agent's next message."""
        return await self._agent.respond(request, budget(context, self._cap))

    async def GetAgentInfo(  # noqa: N802 - the contract's name
        self, request: agent_pb2.GetAgentInfoRequest, context: _Context
    ) -> agent_pb2.GetAgentInfoResponse:
        """All that changes behaviour."""
        return agent_pb2.GetAgentInfoResponse(info=await self._agent.info(budget(context, self._cap)))


def agent_service(
    agent: Agent, model_timeout_seconds: float, needs: Callable[[], Awaitable[None]] | None = None
) -> Service:
    """The gRPC service of an agent. `needs` as in Service."""
    servicer = AgentServicer(agent, model_timeout_seconds)
    return Service(
        _NAME,
        lambda server: agent_pb2_grpc.add_AgentServiceServicer_to_server(servicer, server),
        needs=needs,
    )
