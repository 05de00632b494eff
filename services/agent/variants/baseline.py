"""The baseline agent: one model call per answer, with native tool calling and no memory."""

from __future__ import annotations

import time
from typing import Protocol

from policysweep import __version__
from policysweep.errors import ContextOverflow, ModelServerRejected
from policysweep.models.chat import ChatModel, ChatReply, ChatRequest
from policysweep.models.observed import ObservedModel
from policysweep.models.openai_api import ModelDescription
from policysweep.v1 import agent_pb2
from policysweep.v1 import episode_pb2 as ep
from services.agent.agent import MemoryUnsupported
from services.agent.prompt import PROMPT_DIGEST, chat_messages, offered_tools
from services.agent.resolution import split_declaration

_DESCRIPTION_SECONDS = 5.0
"""How long a description of the served model is taken for current."""


class ServedModel(ChatModel, Protocol):
    """A chat model that can say how it is served."""

    async def describe(self, timeout_seconds: float) -> ModelDescription:
        """What the server says about the model. Raises ModelServerError when it does not serve it."""
        ...


class BaselineAgent:
    """Asks `model` for the next message. Implements Agent."""

    def __init__(self, model: ServedModel, sampling: agent_pb2.Sampling) -> None:
        self._served = model
        self._model = ObservedModel(model, role="agent")
        self._sampling = sampling
        self._description: ModelDescription | None = None
        self._described_at = 0.0

    async def respond(
        self, request: agent_pb2.RespondRequest, timeout_seconds: float
    ) -> agent_pb2.RespondResponse:
        """The model's next message; a prompt that does not fit its context is an answer too."""
        if request.bank_id:
            raise MemoryUnsupported(
                f"bank_id is {request.bank_id!r}, but this variant has no memory: "
                "leave bank_id empty or use an agent whose memory_mode is not none"
            )
        asked = ChatRequest(
            messages=chat_messages(request),
            tools=offered_tools(request),
            sampling=self._sampling,
            seed=request.seed,
            session_id=request.episode_id,
            timeout=timeout_seconds,
        )
        try:
            reply = await self._model.complete(asked)
        except ContextOverflow:
            return _overflow()
        return _answer(request, reply)

    async def info(self, timeout_seconds: float) -> agent_pb2.AgentInfo:
        """Fails unless the model is served with room for an answer."""
        served = await self._describe(timeout_seconds)
        if served.max_model_len is not None and self._sampling.max_tokens >= served.max_model_len:
            raise ModelServerRejected(
                f"max_tokens is {self._sampling.max_tokens}, but {served.model!r} is served with a context "
                f"of {served.max_model_len} tokens, prompt included: lower --max-tokens"
            )
        return agent_pb2.AgentInfo(
            variant="baseline",
            model=served.model,
            prompt_digest=PROMPT_DIGEST,
            sampling=self._sampling,
            memory_mode="none",
            rehearsal=served.rehearsal,
            version=__version__,
        )

    async def _describe(self, timeout_seconds: float) -> ModelDescription:
        if self._description is None or time.monotonic() - self._described_at > _DESCRIPTION_SECONDS:
            self._description = await self._served.describe(timeout_seconds)
            self._described_at = time.monotonic()
        return self._description


def _answer(request: agent_pb2.RespondRequest, reply: ChatReply) -> agent_pb2.RespondResponse:
    declared = split_declaration(reply.tool_calls, request.resolution_options)
    text = reply.text
    if declared.closing not in text:
        text = f"{text}\n\n{declared.closing}" if text else declared.closing
    return agent_pb2.RespondResponse(
        message=ep.Message(role=ep.ROLE_AGENT, content=text, tool_calls=declared.calls),
        resolution=declared.resolution,
        usage=reply.usage,
        finish_reason=reply.finish_reason,
        rehearsal=reply.rehearsal,
    )


def _overflow() -> agent_pb2.RespondResponse:
    return agent_pb2.RespondResponse(
        message=ep.Message(role=ep.ROLE_AGENT),
        usage=ep.Usage(model_calls=1),
        finish_reason=ep.FINISH_REASON_CONTEXT_OVERFLOW,
    )
