"""What is printed where nobody looks at a terminal: the log of a pod."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator

import pytest
from rich.console import Console

from policysweep.streams.progress import StreamProgress, TaskInWork
from policysweep.sweep import display as displays
from policysweep.sweep.backlog import Backlog
from policysweep.sweep.display import Display
from policysweep.sweep.runner import Progress, Tally
from policysweep.v1 import run_pb2


def test_a_message_in_a_log_is_one_line() -> None:
    written = io.StringIO()
    display = Display(Progress(), Console(file=written, width=40))
    text = "unit 1 of strict failed: model server http://model/v1 broke off before its answer was whole"
    display.event(text)
    assert written.getvalue() == f"{text}\n"


def units(count: int) -> Iterator[run_pb2.Unit]:
    for number in range(count):
        yield run_pb2.Unit(unit_id=f"{number:032x}", agent="strict")


async def line_of(progress: Progress, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a log says of a run, once."""
    monkeypatch.setattr(displays, "_LINE_SECONDS", 0.001)
    written = io.StringIO()
    async with asyncio.timeout(9), Display(progress, Console(file=written)).showing():
        while "\n" not in written.getvalue():  # noqa: ASYNC110 - polls
            await asyncio.sleep(0.001)
    return written.getvalue().splitlines()[0]


async def swept(settled: int, planned: int) -> Progress:
    """A sweep with one unit in flight."""
    backlog = Backlog(units(planned), max_attempts=3, outage_seconds=9)
    assert await backlog.take()
    return Progress({"strict": Tally(planned=planned, recorded=settled)}, backlog)


async def test_near_the_end_the_slowest_unit_is_named_with_the_time_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = await line_of(await swept(99, 100), monkeypatch)
    assert line.startswith("99/100 units")
    assert " s left" in line
    assert "longest in flight 00000000 of strict, " in line


async def test_before_that_none_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "longest" not in await line_of(await swept(50, 100), monkeypatch)


async def test_of_streams_the_slowest_task_is_named_and_those_that_wait_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    progress = StreamProgress({"fair/none": Tally(planned=100, recorded=98)})
    progress.playing["a" * 32] = TaskInWork("fair/none", since=0.0, waiting=True)
    progress.playing["b" * 32] = TaskInWork("fair/none", since=1.0)
    progress.playing["c" * 32] = TaskInWork("fair/none", since=2.0)
    line = await line_of(progress, monkeypatch)
    assert "1 waiting to be tried again" in line
    assert "longest in flight bbbbbbbb of fair/none, " in line
