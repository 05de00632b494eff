"""Counts the calls of a chat model in the process's metrics, by the role that the model plays."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import islice

from prometheus_client import Counter

from policysweep import telemetry
from policysweep.errors import ContextOverflow, ModelServerError, PolicysweepError
from policysweep.models.chat import ChatModel, ChatReply, ChatRequest, Json
from policysweep.v1 import episode_pb2

_FORESEEN: Sequence[type[PolicysweepError]] = (*ModelServerError.__subclasses__(), ContextOverflow)


class ObservedModel:
    """`model`, with every call counted under its `name` and `role`: agent, customer, judge or curator."""

    def __init__(self, model: ChatModel, role: str, name: str) -> None:
        self._model = model
        self._labels = (role, name)
        # Bound once: looking a child up by its labels costs more than counting.
        self._ok = telemetry.MODEL_CALLS.labels(*self._labels, "ok")
        for error in _FORESEEN:
            telemetry.MODEL_CALLS.labels(*self._labels, error.reason)  # begins at 0: increases are alerts
        self._seconds = telemetry.MODEL_SECONDS.labels(*self._labels)
        self._first, self._later = _Tokens(self._labels, "first"), _Tokens(self._labels, "later")

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Answer as the model does, failures included."""
        started = time.perf_counter()
        try:
            reply = await self._model.complete(request)
        except PolicysweepError as error:
            telemetry.MODEL_CALLS.labels(*self._labels, error.reason).inc()
            raise
        finally:
            self._seconds.observe(time.perf_counter() - started)
        self._ok.inc()
        (self._later if is_later(request.messages) else self._first).count(reply.usage)
        return reply


class _Tokens:
    """The token counters of first or of later calls."""

    def __init__(self, labels: Sequence[str], turn: str) -> None:
        self._labels, self._turn = labels, turn
        self._cached: Counter | None = None
        self._prompt = telemetry.MODEL_TOKENS.labels(*labels, "prompt", turn)
        self._completion = telemetry.MODEL_TOKENS.labels(*labels, "completion", turn)

    def count(self, usage: episode_pb2.Usage) -> None:
        # A number that the server did not report reads as 0 and adds nothing.
        self._prompt.inc(usage.prompt_tokens)
        self._completion.inc(usage.completion_tokens)
        if usage.HasField("cached_prompt_tokens"):
            # Made when first reported: from servers that do not report, no hits is not what we know.
            if self._cached is None:
                self._cached = telemetry.MODEL_TOKENS.labels(*self._labels, "cached", self._turn)
            self._cached.inc(usage.cached_prompt_tokens)


def is_later(messages: Sequence[Json]) -> bool:
    """Whether the prompt holds two answers of the model already.

    From then on the better part of a prompt has been sent before, and a prefix cache that works holds it.
    """
    # A message that its caller serialised is no mapping, and none of the model's.
    answers = (None for each in messages if isinstance(each, dict) and each.get("role") == "assistant")
    return next(islice(answers, 1, None), False) is None
