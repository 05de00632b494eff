"""The ramp over models whose throughput is known."""

from __future__ import annotations

import asyncio

import pytest

from policysweep.errors import ModelServerBusy
from policysweep.models.chat import ChatReply, ChatRequest
from policysweep.probe.ramp import LEVELS, Ramp, Step, climb
from policysweep.v1 import episode_pb2 as ep


class Batching:
    """Answers `places` requests at a time, each in a few milliseconds; refuses above `limit`."""

    def __init__(self, places: int, limit: int = 1_000, seconds: float = 0.004) -> None:
        self._places = asyncio.Semaphore(places)
        self._limit = limit
        self._seconds = seconds
        self.running = self.most = 0

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            if self.running > self._limit:
                raise ModelServerBusy("too many")
            async with self._places:
                await asyncio.sleep(self._seconds)
        finally:
            self.running -= 1
        return ChatReply("x", [], ep.FINISH_REASON_STOP, ep.Usage(completion_tokens=10), rehearsal=False)


def step(concurrency: int, tokens_per_second: float, failed: int = 0, answered: int = 1) -> Step:
    return Step(concurrency, answered, failed, 1.0, tokens_per_second, 0.1, 0.2)


def soon(seconds: float = 30.0) -> float:
    return asyncio.get_running_loop().time() + seconds


async def test_each_step_keeps_its_number_of_requests_in_flight() -> None:
    model = Batching(1_000)
    ramp = await climb(model, soon(), step_seconds=0.001)
    assert model.most == ramp.steps[-1].concurrency
    assert [each.concurrency for each in ramp.steps] == list(LEVELS[: len(ramp.steps)])


async def test_a_refusal_ends_the_ramp_and_is_not_recommended() -> None:
    ramp = await climb(Batching(1_000, limit=2), soon(), step_seconds=0.001)
    assert ramp.steps[-1].failed
    assert "requests failed at 4 at once" in ramp.ended
    assert ramp.recommended in (1, 2)


async def test_the_time_limit_cuts_a_step_that_hangs() -> None:
    ramp = await climb(Batching(1, seconds=60), soon(0.05))
    assert (ramp.steps, ramp.ended, ramp.recommended) == ([], "the time was up", None)


async def test_no_growth_ends_the_ramp() -> None:
    ramp = await climb(Batching(1, seconds=0.01), soon(), step_seconds=0.001)
    assert "grew no more" in ramp.ended
    assert len(ramp.steps) < len(LEVELS)


@pytest.mark.parametrize(
    ("steps", "recommended"),
    [
        ([], None),
        ([step(1, 10)], 1),
        ([step(1, 10), step(2, 20), step(4, 40), step(8, 42)], 4),
        ([step(1, 10), step(2, 20), step(4, 90, failed=1)], 2),
        ([step(1, 0, failed=1, answered=0)], None),
    ],
)
def test_the_recommendation_is_the_smallest_with_nearly_the_best(
    steps: list[Step], recommended: int | None
) -> None:
    assert Ramp(steps, "").recommended == recommended
