"""Counts the calls of a chat model in the process's metrics, by the role that the model plays."""

from __future__ import annotations

import time

from policysweep import telemetry
from policysweep.errors import PolicysweepError
from policysweep.models.chat import ChatModel, ChatReply, ChatRequest
from policysweep.v1 import episode_pb2


class ObservedModel:
    """`model`, with every call counted under `role`, for example "agent", "customer" or "judge"."""

    def __init__(self, model: ChatModel, role: str) -> None:
        self._model = model
        self._role = role
        # Bound once: looking a child up by its labels costs more than counting.
        self._ok = telemetry.MODEL_CALLS.labels(role, "ok")
        self._seconds = telemetry.MODEL_SECONDS.labels(role)
        self._prompt, self._cached, self._completion = (
            telemetry.MODEL_TOKENS.labels(role, kind) for kind in ("prompt", "cached", "completion")
        )

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Answer as the model does, failures included."""
        started = time.perf_counter()
        try:
            reply = await self._model.complete(request)
        except PolicysweepError as error:
            telemetry.MODEL_CALLS.labels(self._role, error.reason).inc()
            raise
        finally:
            self._seconds.observe(time.perf_counter() - started)
        self._ok.inc()
        self._count_tokens(reply.usage)
        return reply

    def _count_tokens(self, usage: episode_pb2.Usage) -> None:
        # A number that the server did not report reads as 0 and adds nothing.
        self._prompt.inc(usage.prompt_tokens)
        self._cached.inc(usage.cached_prompt_tokens)
        self._completion.inc(usage.completion_tokens)
