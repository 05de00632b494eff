"""The attempts of one task: its own faults are counted, an outage is waited out, the rest is not repeated."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from policysweep.errors import (
    BankNotFound,
    ModelServerGarbled,
    ModelServerTimeout,
    PolicysweepError,
    ServiceUnavailable,
)
from policysweep.streams.patience import Patience

UNIT = "0" * 32


class Clock:
    """Time that passes only in sleep."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def made(clock: Clock, retried: list[PolicysweepError] | None = None) -> Patience:
    heard = retried if retried is not None else []
    return Patience(UNIT, 3, 60.0, on_retry=heard.append, clock=lambda: clock.now, sleep=clock.sleep)


async def call(errors: Iterator[PolicysweepError]) -> str:
    if (error := next(errors, None)) is not None:
        raise error
    return "done"


async def test_a_fault_that_passes_is_tried_again_and_kept() -> None:
    clock, retried = Clock(), list[PolicysweepError]()
    patience, errors = made(clock, retried), iter([ModelServerTimeout("late"), ModelServerGarbled("half")])
    assert await patience.until_done(lambda: call(errors)) == "done"
    assert [each.reason for each in patience.failures] == ["MODEL_SERVER_TIMEOUT", "MODEL_SERVER_GARBLED"]
    assert [error.reason for error in retried] == ["MODEL_SERVER_TIMEOUT", "MODEL_SERVER_GARBLED"]
    assert clock.slept == sorted(clock.slept)
    assert clock.slept[0] > 0


async def test_attempts_are_counted_over_all_calls_of_a_task() -> None:
    patience = made(Clock())
    errors = iter([ModelServerTimeout("1"), ModelServerTimeout("2")])
    assert await patience.until_done(lambda: call(errors)) == "done"
    with pytest.raises(ModelServerTimeout, match="3"):
        await patience.until_done(lambda: call(iter([ModelServerTimeout("3")])))


async def test_what_cannot_pass_is_raised_at_once() -> None:
    clock = Clock()
    with pytest.raises(BankNotFound):
        await made(clock).until_done(lambda: call(iter([BankNotFound("none")])))
    assert not clock.slept


async def test_an_outage_is_waited_out_and_not_counted() -> None:
    clock = Clock()
    errors = iter([ServiceUnavailable("down")] * 6)
    assert await made(clock).until_done(lambda: call(errors)) == "done"
    assert len(clock.slept) == 6


async def test_an_outage_that_lasts_ends_it() -> None:
    clock = Clock()
    errors = iter([ServiceUnavailable("down")] * 1000)
    with pytest.raises(ServiceUnavailable):
        await made(clock).until_done(lambda: call(errors))
    assert 60 <= clock.now < 90


async def test_never_less_than_the_other_side_asked_for() -> None:
    clock = Clock()
    errors = iter([ServiceUnavailable("busy", retry_after=7.0)])
    await made(clock).until_done(lambda: call(errors))
    assert clock.slept == [7.0]
