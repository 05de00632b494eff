"""What an agent is to the service around it. A variant is a class with these two coroutines."""

from __future__ import annotations

from typing import Protocol

import grpc

from policysweep.errors import InputError
from policysweep.v1 import agent_pb2


class MemoryUnsupported(InputError):
    """A policy bank is named to a variant that has no memory.

    Answering without it would record the result of another experiment.
    """

    code = grpc.StatusCode.FAILED_PRECONDITION
    reason = "MEMORY_UNSUPPORTED"


class Agent(Protocol):
    """An agent under test. Calls are independent of each other: all that counts is in the request."""

    async def respond(
        self, request: agent_pb2.RespondRequest, timeout_seconds: float
    ) -> agent_pb2.RespondResponse:
        """The agent's next message, within `timeout_seconds`.

        Raises InputError for a request that cannot be answered and ModelServerError for a fault of the way to
        the model, which is no result. What the model does wrong is part of the answer.
        """
        ...

    async def info(self, timeout_seconds: float) -> agent_pb2.AgentInfo:
        """All that changes the agent's behaviour.

        Raises ModelServerError while the model cannot be reached, or is not served.
        """
        ...
