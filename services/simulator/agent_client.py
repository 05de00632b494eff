"""The agent under test over gRPC. Implements AgentPort."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import grpc

from policysweep.rpc import status
from policysweep.v1 import agent_pb2

_Respond: TypeAlias = "grpc.aio.UnaryUnaryMultiCallable[bytes, agent_pb2.RespondResponse]"
_RESPOND = f"/{agent_pb2.DESCRIPTOR.services_by_name['AgentService'].full_name}/Respond"


class GrpcAgent:
    """One agent service. Calls are not retried here: the driver owns the unit's retries."""

    def __init__(
        self, channel: grpc.aio.Channel, target: str, timeout: Callable[[], float], shared: bytes = b""
    ) -> None:
        """`timeout` gives the seconds that the next call may take.

        `shared` are fields of every request, serialised: they are put in front of what a call brings, which
        protobuf reads as one message. So a conversation holds neither a copy nor a message of them.
        """
        self._call: _Respond = channel.unary_unary(
            _RESPOND, response_deserializer=agent_pb2.RespondResponse.FromString
        )
        self._shared = shared
        self._target = target
        self._timeout = timeout

    async def respond(self, request: agent_pb2.RespondRequest) -> agent_pb2.RespondResponse:
        """The agent's next message; errors come back as the class that was raised at the other end."""
        try:
            return await self._call(self._shared + request.SerializeToString(), timeout=self._timeout())
        except grpc.aio.AioRpcError as error:
            raise status.error_from(error, status.AGENT, self._target) from error
