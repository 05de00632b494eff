"""The state of a stream run: what its tasks are doing, and whether the calls that they make are answered."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from policysweep.sweep.backlog import Load
from policysweep.sweep.runner import Progress


@dataclass(slots=True)
class TaskInWork:
    """A task that is played, graded and learnt from, or that waits to be tried again."""

    row: str
    since: float
    """Monotonic time at which it began, or came back from its last back-off."""
    waiting: bool = False


@dataclass(slots=True)
class StreamProgress(Progress):
    """The state of a run that a display reads; `agents` are tallies of tasks by `row_name`."""

    streams: int = 0
    """Streams of this shard."""
    ended: int = 0
    """Of them, those of which every task has a record."""
    stopped: int = 0
    """Of them, those that a failure ended."""
    playing: dict[str, TaskInWork] = field(default_factory=dict)
    """Tasks in work by unit id."""
    left: Counter[str] = field(default_factory=Counter)
    """Tasks that come after the failure of their stream, by `row_name`."""
    failing: dict[str, float] = field(default_factory=dict)
    """Rows whose calls only fail, with the monotonic time of the first of these failures."""
    backoff: dict[str, float] = field(default_factory=dict)
    """Seconds of back-off that tasks were given so far, by `row_name`."""
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    @contextmanager
    def working(self, row: str, unit_id: str) -> Iterator[None]:
        """A task is in work while the block runs."""
        self.playing[unit_id] = TaskInWork(row, self.clock())
        try:
            yield
        finally:
            del self.playing[unit_id]

    async def wait(self, row: str, unit_id: str, seconds: float) -> None:
        """Back-off of a task in work, in which no time of it runs."""
        self.backoff[row] = self.backoff.get(row, 0.0) + seconds
        task = self.playing[unit_id]
        task.waiting = True
        await self.sleep(seconds)
        task.waiting, task.since = False, self.clock()

    def failed(self, row: str) -> None:
        """A call for a task failed."""
        self.failing.setdefault(row, self.clock())

    def answered(self, row: str) -> None:
        """A call for a task was answered."""
        self.failing.pop(row, None)

    def loads(self) -> Mapping[str, Load]:
        """See Progress."""
        now = self.clock()
        found = {row: Load(backoff=seconds) for row, seconds in list(self.backoff.items())}
        for row, since in list(self.failing.items()):
            found.setdefault(row, Load()).failing = now - since
        for task in list(self.playing.values()):
            load = found.setdefault(task.row, Load())
            load.waiting += task.waiting
            load.running += not task.waiting
            if not task.waiting:
                load.oldest = max(load.oldest, now - task.since)
        return found

    def longest(self) -> tuple[str, str, float] | None:
        """See Progress."""
        running = [
            (task.since, unit_id, task.row) for unit_id, task in self.playing.items() if not task.waiting
        ]
        since, unit_id, row = min(running, default=(0.0, "", ""))
        return (unit_id, row, since) if running else None

    def skipped(self, agent: str) -> int:
        """See Progress."""
        return self.left[agent]
