"""The agent under test over gRPC. Implements AgentPort."""

from __future__ import annotations

from collections.abc import Callable

import grpc

from policysweep.rpc import status
from policysweep.v1 import agent_pb2, agent_pb2_grpc


class GrpcAgent:
    """One agent service. Calls are not retried here: the driver owns the unit's retries."""

    def __init__(self, channel: grpc.aio.Channel, target: str, timeout: Callable[[], float]) -> None:
        """`timeout` gives the seconds that the next call may take."""
        self._stub: agent_pb2_grpc.AgentServiceAsyncStub = agent_pb2_grpc.AgentServiceStub(channel)
        self._target = target
        self._timeout = timeout

    async def respond(self, request: agent_pb2.RespondRequest) -> agent_pb2.RespondResponse:
        """The agent's next message; errors come back as the class that was raised at the other end."""
        try:
            return await self._stub.Respond(request, timeout=self._timeout())
        except grpc.aio.AioRpcError as error:
            raise status.error_from(error, status.AGENT, self._target) from error
