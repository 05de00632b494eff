"""The baseline agent: one model call per answer, and no memory."""

from __future__ import annotations

from policysweep.errors import ContextOverflow
from policysweep.models.chat import ChatRequest
from policysweep.models.prompted_tools import ToolMode
from policysweep.v1 import agent_pb2
from services.agent.agent import MemoryUnsupported
from services.agent.prompt import PROMPT_DIGEST, chat_messages, offered_tools
from services.agent.served import AgentModel, ServedModel, answer, overflow


class BaselineAgent:
    """Asks `model` for the next message. Implements Agent."""

    def __init__(
        self, model: ServedModel, sampling: agent_pb2.Sampling, tool_mode: ToolMode = "native"
    ) -> None:
        self._model = AgentModel(model, sampling, tool_mode)

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
            sampling=self._model.sampling,
            seed=request.seed,
            session_id=request.episode_id,
            timeout=timeout_seconds,
        )
        try:
            reply = await self._model.complete(asked)
        except ContextOverflow as error:
            return overflow(error)
        return answer(request, reply)

    async def info(self, timeout_seconds: float) -> agent_pb2.AgentInfo:
        """Fails unless the model is served with room for an answer."""
        info = await self._model.info(timeout_seconds, PROMPT_DIGEST)
        info.variant = "baseline"
        info.memory_mode = "none"
        return info
