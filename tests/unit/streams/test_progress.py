"""What the metrics of a stream run say while its calls fail: who waits, for how long, and since when."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry

from policysweep.errors import ServiceUnavailable
from policysweep.streams.ledger import StreamLedger
from policysweep.streams.patience import Patience
from policysweep.streams.plan import planned_streams, stream_tasks
from policysweep.streams.progress import StreamProgress
from policysweep.streams.runner import PlannedStream, StreamRunner, row_name
from policysweep.streams.spec import StreamSpec
from policysweep.streams.step import Step
from policysweep.sweep.metrics import STATES, SweepMetrics
from policysweep.sweep.runner import Tally
from policysweep.v1 import stream_pb2

from .samples import inputs, manifest

AGENT = {"name": "fair", "targets": {"none": "h:1"}}
SECONDS = 20.0


class Clock:
    """Time that passes when a test says so; who sleeps does so until then."""

    def __init__(self) -> None:
        self.now = 0.0
        self.asleep = asyncio.Event()
        self._awake = asyncio.Event()

    async def sleep(self, _: float) -> None:
        self.asleep.set()
        await self._awake.wait()

    def wake(self) -> None:
        self.asleep.clear()
        self._awake.set()
        self._awake = asyncio.Event()


class Silent:
    """Takes tasks through a service that answers nobody `times` times, and from then on everybody."""

    def __init__(self, times: int) -> None:
        self._left = times

    async def take(
        self, _: stream_pb2.Stream, task: stream_pb2.StreamTask, revision: int, patience: Patience
    ) -> stream_pb2.StreamRecord:
        await patience.until_done(self._call)
        return stream_pb2.StreamRecord(task=task, bank_revision_after=revision)

    async def _call(self) -> None:
        if self._left:
            self._left -= 1
            raise ServiceUnavailable("down")


class Records:
    """A ledger that takes everything."""

    async def write_record(self, _: stream_pb2.StreamRecord) -> bool:
        return True

    async def write_failure(self, _: stream_pb2.StreamFailure) -> None:
        return None


class Run:
    """One stream, run, with what Prometheus would be told of it."""

    def __init__(self, step: Any, outage_seconds: float) -> None:
        self.clock = Clock()
        made = manifest()
        stream = next(planned_streams(made))
        self._planned = PlannedStream(stream, stream_tasks(made, inputs(), stream))
        self.row = row_name(stream)
        self.progress = StreamProgress(
            agents={self.row: Tally(planned=len(self._planned.tasks))},
            streams=1,
            clock=lambda: self.clock.now,
            sleep=self.clock.sleep,
        )
        spec = StreamSpec.model_validate(
            {"name": "small", "methods": ["none"], "agents": [AGENT], "outage_seconds": outage_seconds}
        )
        self._runner = StreamRunner(
            spec, cast(Step, step), None, cast(StreamLedger, Records()), self.progress, lambda _: None
        )
        metrics = SweepMetrics()
        metrics.watch("small", "stream", self.progress)
        self._registry = CollectorRegistry()
        self._registry.register(metrics)

    def start(self) -> asyncio.Task[None]:
        return asyncio.create_task(self._runner.run(iter([self._planned]), frozenset()))

    def sample(self, name: str, **labels: str) -> float | None:
        row = {"run": "small", "stage": "stream", "agent": self.row}
        return self._registry.get_sample_value(name, {**row, **labels})

    def states(self) -> dict[str, float]:
        found = {state: self.sample("policysweep_units", state=state) or 0.0 for state in STATES}
        assert sum(found.values()) == len(self._planned.tasks)
        return {state: count for state, count in found.items() if count}

    async def in_backoff(self) -> None:
        async with asyncio.timeout(SECONDS):
            await self.clock.asleep.wait()


async def test_an_outage_shows_as_long_as_it_lasts_and_its_waiting_is_nobodys_time() -> None:
    run = Run(Silent(2), 300.0)
    running = run.start()
    await run.in_backoff()
    assert run.states()["waiting"] == 1
    first = run.sample("policysweep_backoff_seconds_total")
    assert first
    run.clock.now = 130.0
    assert run.sample("policysweep_failing_seconds") == 130.0
    assert run.sample("policysweep_oldest_attempt_seconds") == 0.0
    run.clock.wake()
    await run.in_backoff()
    run.clock.now = 140.0
    assert run.sample("policysweep_failing_seconds") == 140.0
    assert (run.sample("policysweep_backoff_seconds_total") or 0.0) > first
    run.clock.wake()
    await running
    assert run.sample("policysweep_failing_seconds") == 0.0
    assert run.states().keys() == {"done"}


async def test_a_stream_that_an_outage_ended_goes_on_failing() -> None:
    run = Run(Silent(1000), 1e-9)
    await run.start()
    run.clock.now = 7.0
    assert run.sample("policysweep_failing_seconds") == 7.0
    assert run.states().keys() == {"failed", "skipped"}


async def test_a_task_in_work_is_as_old_as_its_attempt() -> None:
    progress = StreamProgress()
    clock = Clock()
    progress.clock, progress.sleep = lambda: clock.now, clock.sleep
    with progress.working("a", "u"):
        clock.now = 5.0
        assert (progress.loads()["a"].running, progress.loads()["a"].oldest) == (1, 5.0)
        waiting = asyncio.create_task(progress.wait("a", "u", 3.0))
        await clock.asleep.wait()
        clock.now = 9.0
        clock.wake()
        await waiting
        clock.now = 10.0
        assert (progress.loads()["a"].waiting, progress.loads()["a"].oldest) == (0, 1.0)
    assert (progress.loads()["a"].running, progress.loads()["a"].backoff) == (0, 3.0)


async def test_a_task_that_is_given_up_in_its_backoff_is_not_left_in_work() -> None:
    progress, clock = StreamProgress(), Clock()
    progress.sleep = clock.sleep

    async def task() -> None:
        with progress.working("a", "u"):
            await progress.wait("a", "u", 3.0)

    running = asyncio.create_task(task())
    await clock.asleep.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not progress.playing
