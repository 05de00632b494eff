"""A chat model whose calls are counted: latency, tokens and outcome, by role."""

from __future__ import annotations

import time

from policysweep import telemetry
from policysweep.errors import PolicysweepError
from policysweep.models.chat import ChatModel, ChatReply, ChatRequest


class ObservedModel:
    """Wraps a ChatModel and feeds the model metrics of `policysweep.telemetry`."""

    def __init__(self, model: ChatModel, *, role: str) -> None:
        """`role` is what the model is used for: agent, customer, judge or curator."""
        self._model = model
        self._role = role
        self._seconds = telemetry.MODEL_SECONDS.labels(role)
        self._ok = telemetry.MODEL_CALLS.labels(role, "ok")
        self._prompt = telemetry.MODEL_TOKENS.labels(role, "prompt")
        self._cached = telemetry.MODEL_TOKENS.labels(role, "cached")
        self._completion = telemetry.MODEL_TOKENS.labels(role, "completion")

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Answer once, as the wrapped model does."""
        started = time.perf_counter()
        try:
            reply = await self._model.complete(request)
        except PolicysweepError as error:
            telemetry.MODEL_CALLS.labels(self._role, error.reason).inc()
            raise
        self._seconds.observe(time.perf_counter() - started)
        self._ok.inc()
        self._prompt.inc(reply.usage.prompt_tokens)
        self._cached.inc(reply.usage.cached_prompt_tokens)
        self._completion.inc(reply.usage.completion_tokens)
        return reply
