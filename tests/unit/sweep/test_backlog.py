"""What a failed attempt means: the unit's own failure, an outage, or the end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from policysweep.errors import (
    AgentUnavailable,
    ModelServerBusy,
    ModelServerGarbled,
    ModelServerRejected,
    ModelServerUnavailable,
)
from policysweep.sweep.backlog import Attempt, Backlog
from policysweep.v1 import run_pb2


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def units(*agents: str) -> Iterable[run_pb2.Unit]:
    return (run_pb2.Unit(unit_id=f"{number:032x}", agent=agent) for number, agent in enumerate(agents))


def backlog_of(*agents: str, clock: Clock, outage_seconds: float = 300.0) -> Backlog:
    return Backlog(iter(units(*agents)), max_attempts=3, outage_seconds=outage_seconds, clock=clock)


async def take(backlog: Backlog, clock: Clock) -> Attempt:
    """The next attempt, moving the clock to its time if it waits."""
    clock.now += 100.0
    attempt = await asyncio.wait_for(backlog.take(), 5)
    assert attempt is not None
    return attempt


async def test_units_are_handed_out_once_and_then_none() -> None:
    backlog = backlog_of("a", "a", clock=Clock())
    first, second = await backlog.take(), await backlog.take()
    assert first is not None
    assert second is not None
    assert first.unit.unit_id != second.unit.unit_id
    backlog.succeeded(first)
    backlog.succeeded(second)
    assert await backlog.take() is None


async def test_a_worker_waits_while_another_may_still_fail() -> None:
    clock = Clock()
    backlog = backlog_of("a", clock=clock)
    attempt = await take(backlog, clock)
    waiting = asyncio.create_task(backlog.take())
    await asyncio.sleep(0)
    assert not waiting.done()
    backlog.succeeded(attempt)
    assert await asyncio.wait_for(waiting, 5) is None


async def test_a_unit_has_max_attempts_and_no_more() -> None:
    clock = Clock()
    backlog = backlog_of("a", clock=clock)
    outcomes = []
    for _ in range(3):
        attempt = await take(backlog, clock)
        outcomes.append(backlog.failed(attempt, ModelServerGarbled("half an answer")))
    assert outcomes == [True, True, False]
    assert await backlog.take() is None


async def test_what_repeating_cannot_mend_is_not_repeated() -> None:
    clock = Clock()
    backlog = backlog_of("a", clock=clock)
    assert not backlog.failed(await take(backlog, clock), ModelServerRejected("no such model"))


async def test_an_outage_uses_up_no_attempts_until_it_lasts_too_long() -> None:
    clock = Clock()
    backlog = backlog_of("a", clock=clock, outage_seconds=1000)
    for _ in range(9):
        assert backlog.failed(await take(backlog, clock), AgentUnavailable("refused"))
    clock.now += 1000
    assert not backlog.failed(await take(backlog, clock), AgentUnavailable("refused"))
    assert backlog.given_up() == ["a"]
    assert await backlog.take() is None


async def test_a_failure_while_others_succeed_is_the_units_own() -> None:
    clock = Clock()
    backlog = backlog_of("a", "a", clock=clock)
    poisoned = await take(backlog, clock)
    healthy = await take(backlog, clock)
    backlog.succeeded(healthy)
    assert backlog.failed(poisoned, ModelServerUnavailable("500"))
    assert poisoned.counted == 1


async def test_who_answered_in_part_is_not_out() -> None:
    clock = Clock()
    backlog = backlog_of("a", clock=clock, outage_seconds=0)
    for failures in (1, 2, 3):
        attempt = await take(backlog, clock)
        backlog.answered(attempt)
        assert backlog.failed(attempt, ModelServerUnavailable("500")) == (failures < 3)
    assert backlog.given_up() == []


async def test_one_agents_outage_leaves_the_others_alone() -> None:
    clock = Clock()
    backlog = backlog_of("down", "down", "up", clock=clock, outage_seconds=0)
    assert not backlog.failed(await take(backlog, clock), AgentUnavailable("refused"))
    attempt = await take(backlog, clock)
    assert attempt.unit.agent == "up"
    assert backlog.skipped == {"down": 1}


async def test_the_other_side_decides_how_long_to_wait() -> None:
    clock = Clock()
    backlog = backlog_of("a", clock=clock)
    backlog.failed(await take(backlog, clock), ModelServerBusy("later", retry_after=500))
    assert backlog.waiting == 1
    clock.now += 499
    waiting = asyncio.create_task(backlog.take())
    await asyncio.sleep(0)
    assert not waiting.done()
    waiting.cancel()
    clock.now += 2
    assert await backlog.take() is not None


async def test_closing_hands_out_nothing_more() -> None:
    backlog = backlog_of("a", "a", clock=Clock())
    assert await backlog.take() is not None
    backlog.close()
    assert await backlog.take() is None
