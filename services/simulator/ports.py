"""What the turn loop needs from outside: an agent to ask, a customer to play, an order world to act on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from policysweep.domains.returns.environment import ToolOutcome, Withdrawal
from policysweep.v1 import agent_pb2, episode_pb2


class AgentPort(Protocol):
    """The agent under test."""

    async def respond(self, request: agent_pb2.RespondRequest) -> agent_pb2.RespondResponse:
        """The agent's next message. Raises AgentServiceError or ModelServerError: no result."""
        ...


@dataclass(slots=True)
class CustomerReply:
    """What the customer's model did in one call."""

    text: str
    tool_calls: Sequence[episode_pb2.ToolCall]
    finish_reason: episode_pb2.FinishReason.ValueType
    usage: episode_pb2.Usage
    rehearsal: bool = field(default=False)


class CustomerPort(Protocol):
    """The simulated customer. Keeps its own chat: what it said, what the agent said, its tool results."""

    async def reply(self) -> CustomerReply:
        """Call the customer's model once. Raises ModelServerError (no result) or ContextOverflow."""
        ...

    def hear(self, text: str) -> None:
        """The agent said something."""
        ...

    def result(self, call: episode_pb2.ToolCall, content: str) -> None:
        """A customer tool answered."""
        ...

    def remind(self) -> None:
        """The last reply was unusable: ask for a proper message."""
        ...


class Environment(Protocol):
    """The order world of one episode with its tools."""

    @property
    def withdrawal(self) -> Withdrawal | None:
        """Set once the customer has withdrawn."""
        ...

    def writes(self) -> Sequence[episode_pb2.ExecutedWrite]:
        """Writes that really ran, in order."""
        ...

    def call_agent_tool(self, call: episode_pb2.ToolCall, *, statements: int) -> ToolOutcome:
        """Execute a call of the agent after `statements` customer messages."""
        ...

    def call_customer_tool(self, call: episode_pb2.ToolCall, *, statements: int) -> ToolOutcome:
        """Execute a call of the customer."""
        ...
