"""What a chat model is to the rest of the project: one coroutine from request to reply.

Requests hold OpenAI chat-completion structures, because that is what every open model server speaks.
Replies hold the contract's own messages, so that nothing has to be translated twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from policysweep.v1 import agent_pb2, episode_pb2

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ResponseSchema:
    """A JSON schema that the reply's text must fit."""

    name: str
    schema: Json


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One call of a chat model.

    `messages` are OpenAI chat messages, oldest first. `tools` are OpenAI function tools. `session_id`
    is equal for all calls of one conversation: prefix-affine routers send them to one replica.
    `top_logprobs` asks for the log-probabilities of that many alternatives at each token; 0 asks for none.
    `timeout` is in seconds, from sending to the last byte.
    """

    messages: Sequence[Json]
    tools: Sequence[Json] = ()
    tool_choice: str | Json | None = None
    response_schema: ResponseSchema | None = None
    sampling: agent_pb2.Sampling = field(default_factory=agent_pb2.Sampling)
    seed: int | None = None
    session_id: str = ""
    top_logprobs: int = 0
    timeout: float = 120.0


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """A written token with the alternatives at its place, each with its natural log-probability."""

    token: str
    alternatives: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class ChatReply:
    """What the model wrote. `text` is "" when it wrote none; tool arguments are verbatim."""

    text: str
    tool_calls: Sequence[episode_pb2.ToolCall]
    finish_reason: episode_pb2.FinishReason.ValueType
    usage: episode_pb2.Usage
    rehearsal: bool
    logprobs: Sequence[TokenLogprob] = ()


class ChatModel(Protocol):
    """A chat model."""

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Answer once, without retrying.

        Raises ModelServerError for a fault of the server or the way to it, and ContextOverflow when the
        prompt does not fit.
        """
        ...
