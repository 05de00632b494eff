"""Throughput against concurrency: a short ramp that ends where more requests at once bring nothing more.

Each step keeps a number of requests in flight for a few seconds. They share a beginning, as the calls of a
sweep do, and differ in their ends.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from policysweep.errors import PolicysweepError
from policysweep.models.chat import ChatModel, ChatRequest
from policysweep.v1 import agent_pb2

LEVELS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_GROWTH = 1.15
"""A step that brings less than this factor over the best so far ends the ramp."""
_NEARLY = 0.9
"""The recommendation is the smallest step with this share of the best throughput."""
_TOKENS = 64
_ROUNDS = 4
"""Requests of one worker of a step, at most."""
_SHARED = "You are a customer care agent of an online shop. Be polite, short and exact. " * 30


@dataclass(frozen=True, slots=True)
class Step:
    """What came out at one concurrency. Latencies in seconds; NaN when nothing was answered."""

    concurrency: int
    answered: int
    failed: int
    requests_per_second: float
    tokens_per_second: float
    p50_seconds: float
    p95_seconds: float


@dataclass(frozen=True, slots=True)
class Ramp:
    """The steps that were taken, and why there are no more."""

    steps: Sequence[Step]
    ended: str

    @property
    def recommended(self) -> int | None:
        """The smallest concurrency with nearly the best throughput; None when nothing was answered."""
        sound = [step for step in self.steps if step.answered and not step.failed]
        best = max((step.tokens_per_second for step in sound), default=0.0)
        return next((step.concurrency for step in sound if step.tokens_per_second >= _NEARLY * best), None)


async def climb(model: ChatModel, ends: float, step_seconds: float = 6.0) -> Ramp:
    """Take steps until throughput stops growing, a request fails, or the loop's time is `ends`."""
    steps: list[Step] = []
    ended = "the last step was reached"
    async with aclosing(_steps(model, ends, step_seconds)) as taken:
        async for step in taken:
            if step is None:
                ended = "the time was up"
                break
            best = max((each.tokens_per_second for each in steps), default=0.0)
            steps.append(step)
            if step.failed:
                ended = f"requests failed at {step.concurrency} at once"
                break
            if step.tokens_per_second < _GROWTH * best:
                ended = f"throughput grew no more at {step.concurrency} at once"
                break
    return Ramp(steps, ended)


async def _steps(model: ChatModel, ends: float, step_seconds: float) -> AsyncGenerator[Step | None, None]:
    """The steps in order; None, and no more, when the time is up. A step that it cuts off does not count."""
    loop = asyncio.get_running_loop()
    for concurrency in LEVELS:
        try:
            async with asyncio.timeout_at(ends):
                step = await _step(model, concurrency, min(loop.time() + step_seconds, ends))
        except TimeoutError:
            step = None
        yield step
        if step is None:
            return


async def _step(model: ChatModel, concurrency: int, ends: float) -> Step:
    """Keep `concurrency` requests in flight until `ends`; those that were begun are waited for."""
    latencies: list[float] = []
    tokens: list[int] = []
    failures: list[PolicysweepError] = []
    loop = asyncio.get_running_loop()

    async def work(worker: int) -> None:
        for turn in range(_ROUNDS):
            began = time.perf_counter()
            try:
                reply = await model.complete(_request(concurrency, worker, turn))
            except PolicysweepError as error:
                failures.append(error)
                return
            latencies.append(time.perf_counter() - began)
            tokens.append(reply.usage.completion_tokens or len(reply.text) // 4)
            if loop.time() >= ends:
                return

    began = time.perf_counter()
    await asyncio.gather(*(work(worker) for worker in range(concurrency)))
    seconds = time.perf_counter() - began
    return Step(
        concurrency=concurrency,
        answered=len(latencies),
        failed=len(failures),
        requests_per_second=len(latencies) / seconds,
        tokens_per_second=sum(tokens) / seconds,
        p50_seconds=_quantile(latencies, 0.5),
        p95_seconds=_quantile(latencies, 0.95),
    )


def _request(concurrency: int, worker: int, turn: int) -> ChatRequest:
    said = f"Case {concurrency}-{worker}-{turn}: write three sentences to a customer whose parcel is late."
    return ChatRequest(
        messages=[{"role": "system", "content": _SHARED}, {"role": "user", "content": said}],
        sampling=agent_pb2.Sampling(temperature=0.7, max_tokens=_TOKENS),
        seed=turn,
    )


def _quantile(values: Sequence[float], share: float) -> float:
    """The nearest-rank quantile."""
    if not values:
        return math.nan
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]
