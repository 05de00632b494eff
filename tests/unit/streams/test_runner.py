"""The runner of streams, where no process and no service is needed to see what it does."""

from __future__ import annotations

from typing import Any, cast

from policysweep.streams.ledger import StreamLedger
from policysweep.streams.plan import planned_streams, stream_tasks
from policysweep.streams.progress import StreamProgress
from policysweep.streams.runner import PlannedStream, StreamRunner, row_name
from policysweep.streams.spec import StreamSpec
from policysweep.streams.step import Step
from policysweep.sweep.runner import Tally
from policysweep.v1 import stream_pb2

from .samples import inputs, manifest

SPEC = StreamSpec.model_validate(
    {"name": "small", "methods": ["none"], "agents": [{"name": "fair", "targets": {"none": "h:1"}}]}
)


class Steps:
    """Plays nothing and says that it did."""

    async def take(
        self, stream: stream_pb2.Stream, task: stream_pb2.StreamTask, *_: Any
    ) -> stream_pb2.StreamRecord:
        return stream_pb2.StreamRecord(task=task)


class Taken:
    """A ledger in which another driver has recorded the task of a position meanwhile."""

    def __init__(self, position: int) -> None:
        self._position = position
        self.failures: list[stream_pb2.StreamFailure] = []

    async def write_record(self, record: stream_pb2.StreamRecord) -> bool:
        return record.task.position != self._position

    async def write_failure(self, failure: stream_pb2.StreamFailure) -> None:
        self.failures.append(failure)


async def test_a_task_that_another_driver_recorded_is_a_duplicate_and_no_failure() -> None:
    made = manifest()
    stream = next(planned_streams(made))
    planned = PlannedStream(stream, stream_tasks(made, inputs(), stream))
    tally, ledger, told = Tally(planned=len(planned.tasks)), Taken(2), list[str]()
    progress = StreamProgress(agents={row_name(stream): tally}, streams=1)
    runner = StreamRunner(SPEC, cast(Step, Steps()), None, cast(StreamLedger, ledger), progress, told.append)
    await runner.run(iter([planned]), frozenset())
    assert (tally.recorded, tally.duplicates, tally.failed) == (2, 1, 0)
    assert not tally.errors
    assert not ledger.failures
    assert tally.planned == tally.recorded + tally.duplicates + progress.skipped(row_name(stream))
    assert (progress.stopped, progress.ended) == (1, 0)
    assert "another driver seems to be at this stream" in told[0]
