"""Runs streams: each from its first task without a record to its end, a fixed number of them at a time.

A stream that fails stops where it is: what comes after may not be played without the lesson. The others go
on. The runner can be stopped at any moment; what has no record is played the next time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from policysweep.errors import BankConflict, InputError, PolicysweepError, RevisionConflict, StoreError
from policysweep.streams.banks import RunBanks
from policysweep.streams.ledger import StreamLedger
from policysweep.streams.patience import Patience
from policysweep.streams.plan import has_bank, method_name, regime_name
from policysweep.streams.progress import StreamProgress
from policysweep.streams.spec import StreamSpec
from policysweep.streams.step import Step
from policysweep.sweep.runner import Tally, failed_attempt
from policysweep.v1 import stream_pb2


@dataclass(frozen=True, slots=True)
class PlannedStream:
    """A stream with its tasks."""

    stream: stream_pb2.Stream
    tasks: Sequence[stream_pb2.StreamTask]


class _TakenOver(PolicysweepError):
    """Somebody else recorded a task of this stream."""


_CONFLICTS = (_TakenOver, RevisionConflict, BankConflict)
"""What two drivers at one stream lead to. The records are sound, the loser stops."""


class StreamRunner:
    """Runs the streams of one shard."""

    def __init__(
        self,
        spec: StreamSpec,
        step: Step,
        banks: RunBanks | None,
        ledger: StreamLedger,
        progress: StreamProgress,
        on_event: Callable[[str], None],
    ) -> None:
        """`banks` is None when no method has one."""
        self._spec = spec
        self._step = step
        self._banks = banks
        self._ledger = ledger
        self._progress = progress
        self._on_event = on_event

    async def run(self, streams: Iterator[PlannedStream], done: frozenset[str]) -> None:
        """Run all streams; returns once each has ended or stopped.

        `done` are the unit ids of the tasks with a record. Cancelling stops at once and loses only what is in
        flight. A StoreError ends the run: without a ledger no result can be kept.
        """
        async with asyncio.TaskGroup() as group:
            for _ in range(min(self._spec.concurrency, max(1, self._progress.streams))):
                group.create_task(self._work(streams, done))

    async def _work(self, streams: Iterator[PlannedStream], done: frozenset[str]) -> None:
        # One iterator for all workers: a stream is taken without waiting, so no two take the same.
        for planned in streams:
            await self._run_stream(planned, done)

    async def _run_stream(self, planned: PlannedStream, done: frozenset[str]) -> None:
        tasks = planned.tasks
        reached = next((at for at, task in enumerate(tasks) if task.unit_id not in done), len(tasks))
        if reached == len(tasks):
            self._progress.ended += 1
            return
        task = tasks[reached]
        patience = self._patience(planned, task)
        try:
            revision = await self._enter(planned, reached, done, patience)
            for task in tasks[reached:]:
                if task.unit_id in done:  # only where there is no bank
                    continue
                patience = self._patience(planned, task)
                revision = await self._take(planned, task, revision, patience)
        except StoreError:
            raise
        except PolicysweepError as error:
            await self._stop(planned, task, patience, error)
            self._leave(planned, task, done)
        else:
            self._progress.ended += 1

    async def _enter(
        self, planned: PlannedStream, reached: int, done: frozenset[str], patience: Patience
    ) -> int:
        """The revision that the stream goes on from."""
        if self._banks is None or not has_bank(planned.stream.method):
            return 0
        _check_prefix(planned.tasks, reached, done)
        banks = self._banks
        last = await self._ledger.read_record(planned.tasks[reached - 1].unit_id) if reached else None
        with self._progress.working(row_name(planned.stream), planned.tasks[reached].unit_id):
            return await patience.until_done(lambda: banks.enter(planned.stream, last))

    async def _take(
        self, planned: PlannedStream, task: stream_pb2.StreamTask, revision: int, patience: Patience
    ) -> int:
        with self._progress.working(row_name(planned.stream), task.unit_id):
            record = await self._step.take(planned.stream, task, revision, patience)
        if not await self._ledger.write_record(record):
            self._tally(planned).duplicates += 1
            raise _TakenOver(f"task {task.unit_id} was recorded by somebody else meanwhile")
        self._count(planned, record)
        return record.bank_revision_after

    def _patience(self, planned: PlannedStream, task: stream_pb2.StreamTask) -> Patience:
        row, progress = row_name(planned.stream), self._progress

        def on_retry(error: PolicysweepError) -> None:
            progress.failed(row)
            tally = self._tally(planned)
            tally.retried += 1
            tally.errors[error.party, error.reason] += 1

        return Patience(
            task.unit_id,
            self._spec.max_attempts,
            self._spec.outage_seconds,
            on_retry=on_retry,
            on_answer=lambda: progress.answered(row),
            sleep=lambda seconds: progress.wait(row, task.unit_id, seconds),
        )

    async def _stop(
        self,
        planned: PlannedStream,
        task: stream_pb2.StreamTask,
        patience: Patience,
        error: PolicysweepError,
    ) -> None:
        self._progress.stopped += 1
        if not isinstance(error, _TakenOver):  # that one is counted as a duplicate
            tally = self._tally(planned)
            tally.failed += 1
            tally.errors[error.party, error.reason] += 1
        conflict = isinstance(error, _CONFLICTS)
        if not conflict:
            self._progress.failed(row_name(planned.stream))
        why = "another driver seems to be at this stream" if conflict else "what comes after waits for it"
        self._on_event(
            f"stream {planned.stream.stream_id[:8]} of {row_name(planned.stream)} stopped at task "
            f"{task.task_id}: {error}; {why}"
        )
        if not conflict:
            attempts = [*patience.failures]
            if not attempts or attempts[-1].message != str(error):
                attempts.append(failed_attempt(error))
            await self._ledger.write_failure(stream_pb2.StreamFailure(task=task, attempts=attempts))

    def _leave(self, planned: PlannedStream, failed: stream_pb2.StreamTask, done: frozenset[str]) -> None:
        open_ones = [task.unit_id for task in planned.tasks if task.unit_id not in done]
        after = len(open_ones) - open_ones.index(failed.unit_id) - 1
        self._progress.left[row_name(planned.stream)] += after

    def _count(self, planned: PlannedStream, record: stream_pb2.StreamRecord) -> None:
        tally, end = self._tally(planned), record.episode.end
        tally.recorded += 1
        tally.ends[end.fault, end.reason] += 1
        tally.faults += end.fault != 0
        usages = [call.usage for call in record.episode.model_calls]
        usages += [record.grade.usage, record.revision.usage]
        tally.tokens += sum(usage.prompt_tokens + usage.completion_tokens for usage in usages)

    def _tally(self, planned: PlannedStream) -> Tally:
        return self._progress.agents[row_name(planned.stream)]


def row_name(stream: stream_pb2.Stream) -> str:
    """What a display and metrics count a stream under: its agent, method and regime."""
    return f"{stream.agent}/{method_name(stream.method)}/{regime_name(stream.regime)}"


def _check_prefix(tasks: Sequence[stream_pb2.StreamTask], reached: int, done: frozenset[str]) -> None:
    later = [task.task_id for task in tasks[reached:] if task.unit_id in done]
    if later:
        raise InputError(
            f"task {tasks[reached].task_id} has no record, but {len(later)} that come after it have, "
            f"{later[0]} first: they were played with a bank that nobody can restore. Delete their records "
            "to play the stream from here, see policysweep verify"
        )
