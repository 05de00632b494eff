"""How long an outage of a store is sat out, and what is said of it."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from policysweep.errors import StoreError, StoreUnavailable
from policysweep.sweep.store_outage import Outage


class Time:
    """A clock that only waiting moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.waits: list[float] = []

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)

    def outage(self, seconds: float) -> Outage:
        return Outage("s3://bucket", seconds, clock=self.clock, sleep=self.sleep)


class Operation:
    """Fails a number of times, then gives 7."""

    def __init__(self, failures: int, kind: type[StoreError] = StoreUnavailable) -> None:
        self.failures = failures
        self.kind = kind
        self.calls = 0

    async def __call__(self) -> int:
        self.calls += 1
        if self.calls <= self.failures:
            raise self.kind(f"refused {self.calls}")
        return 7


async def test_waits_longer_each_time_and_never_very_long() -> None:
    time = Time()
    assert await time.outage(300).sat_out(Operation(8)) == 7
    assert time.waits == [0.5, 1, 2, 4, 8, 8, 8, 8]


async def test_gives_up_with_the_last_error_before_its_time_is_over() -> None:
    time, operation = Time(), Operation(1000)
    with pytest.raises(StoreUnavailable) as raised:
        await time.outage(20).sat_out(operation)
    assert time.waits == [0.5, 1, 2, 4, 8]
    assert str(raised.value) == f"refused {operation.calls}"


async def test_a_refusal_is_final() -> None:
    time, operation = Time(), Operation(1, StoreError)
    with pytest.raises(StoreError):
        await time.outage(300).sat_out(operation)
    assert (operation.calls, time.waits) == (1, [])


async def test_says_once_that_it_waits_and_once_that_it_is_over() -> None:
    time = Time()
    outage = time.outage(3000)
    with capture_logs() as logs:
        await asyncio.gather(*(outage.sat_out(Operation(3)) for _ in range(20)))
        await outage.sat_out(Operation(0))
    assert [line["event"] for line in logs] == ["store_unavailable", "store_available_again"]
    assert (logs[0]["store"], logs[0]["problem"]) == ("s3://bucket", "refused 1")


async def test_stopping_does_not_wait_for_the_store() -> None:
    waiting = asyncio.create_task(Outage("s3://bucket", 300).sat_out(Operation(1000)))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
