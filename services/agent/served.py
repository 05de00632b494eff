"""The model behind an agent: asked, described, and its answers put into the contract's words."""

from __future__ import annotations

import time
from typing import Protocol

from policysweep import __version__
from policysweep.errors import ContextOverflow, ModelServerRejected
from policysweep.models.chat import ChatModel, ChatReply
from policysweep.models.observed import ObservedModel
from policysweep.models.openai_api import ModelDescription
from policysweep.models.prompted_tools import ToolMode, prompt_digest, with_prompted_tools
from policysweep.v1 import agent_pb2
from policysweep.v1 import episode_pb2 as ep
from services.agent.resolution import split_declaration

_DESCRIPTION_SECONDS = 5.0
"""How long a description of the served model is taken for current."""


class ServedModel(ChatModel, Protocol):
    """A chat model that can say how it is served."""

    @property
    def name(self) -> str:
        """The model's name, as in requests."""
        ...

    async def describe(self, timeout_seconds: float) -> ModelDescription:
        """What the server says about the model. Raises ModelServerError when it does not serve it."""
        ...


class AgentModel(ObservedModel):
    """An agent's model with its sampling and its way to call tools, counted in the metrics."""

    def __init__(
        self, model: ServedModel, sampling: agent_pb2.Sampling, tool_mode: ToolMode = "native"
    ) -> None:
        super().__init__(with_prompted_tools(model, tool_mode), role="agent", name=model.name)
        self.sampling = sampling
        self._tool_mode = tool_mode
        self._served = model
        self._description: ModelDescription | None = None
        self._described_at = 0.0

    async def info(self, timeout_seconds: float, digest: str) -> agent_pb2.AgentInfo:
        """What is true of the model for every variant; `digest` is that of the variant's own prompt.

        Fails unless the model is served with room for an answer.
        """
        served = await self._describe(timeout_seconds)
        if served.max_model_len is not None and self.sampling.max_tokens >= served.max_model_len:
            raise ModelServerRejected(
                f"max_tokens is {self.sampling.max_tokens}, but {served.model!r} is served with a context "
                f"of {served.max_model_len} tokens, prompt included: lower --max-tokens"
            )
        return agent_pb2.AgentInfo(
            model=served.model,
            prompt_digest=prompt_digest(digest, self._tool_mode),
            sampling=self.sampling,
            rehearsal=served.rehearsal,
            version=__version__,
            tool_mode=self._tool_mode,
        )

    async def _describe(self, timeout_seconds: float) -> ModelDescription:
        if self._description is None or time.monotonic() - self._described_at > _DESCRIPTION_SECONDS:
            self._description = await self._served.describe(timeout_seconds)
            self._described_at = time.monotonic()
        return self._description


def answer(request: agent_pb2.RespondRequest, reply: ChatReply) -> agent_pb2.RespondResponse:
    """A reply as an answer: a valid declaration becomes the resolution, and its closing words are kept."""
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


def overflow(error: ContextOverflow) -> agent_pb2.RespondResponse:
    """The answer to a prompt that does not fit the context. One that was not sent is no model call."""
    return agent_pb2.RespondResponse(
        message=ep.Message(role=ep.ROLE_AGENT),
        usage=ep.Usage(model_calls=int(error.sent)),
        finish_reason=ep.FINISH_REASON_CONTEXT_OVERFLOW,
    )
