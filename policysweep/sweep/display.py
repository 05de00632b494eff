"""How a running sweep shows itself: bars at a terminal, a line now and then elsewhere."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from policysweep.sweep.runner import Progress as State
from policysweep.sweep.runner import Tally

_REFRESH_SECONDS = 0.5
_LINE_SECONDS = 10.0
_STRAGGLER_SHARE = 0.95
"""From this share of settled units on, the longest conversation in flight is named."""


class Display:
    """Shows a run's state on a console while `showing` is entered."""

    def __init__(
        self, state: State, console: Console, noun: str = "units", also: Callable[[], str] = str
    ) -> None:
        """`noun` names what is counted; `also` gives more to say about the whole, or ""."""
        self._state = state
        self._noun = noun
        self._also = also
        self._console = console
        self._started = time.monotonic()

    def event(self, text: str) -> None:
        """Print a line above the bars."""
        self._print(text, style="yellow")

    def _print(self, text: str, style: str = "") -> None:
        # In the log of a pod a message is one line, however long.
        log = not self._console.is_terminal
        self._console.print(text, style=style, markup=False, highlight=False, soft_wrap=log)

    @asynccontextmanager
    async def showing(self) -> AsyncIterator[None]:
        """Keep the display current while the block runs."""
        show = self._bars if self._console.is_terminal else self._lines
        task = asyncio.create_task(show())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _lines(self) -> None:
        while True:
            await asyncio.sleep(_LINE_SECONDS)
            settled, planned = _settled(self._state), self._state.total("planned")
            self._print(f"{settled}/{planned} {self._noun}, {self._details()}")

    async def _bars(self) -> None:
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=28),
            MofNCompleteColumn(),
            TimeRemainingColumn(compact=True),
            TextColumn("{task.fields[note]}", markup=False),
        )
        with Progress(*columns, console=self._console, transient=True) as bars:
            overall = bars.add_task("starting the services", total=None, note="")
            tasks: dict[str, TaskID] = {}
            while True:
                # What is planned is known only once the services have answered.
                if self._state.total("planned"):
                    self._update(bars, overall, tasks)
                await asyncio.sleep(_REFRESH_SECONDS)

    def _update(self, bars: Progress, overall: TaskID, tasks: dict[str, TaskID]) -> None:
        bars.update(
            overall,
            description=self._noun,
            completed=_settled(self._state),
            total=self._state.total("planned"),
            note=self._details(),
        )
        for name, tally in self._state.agents.items():
            if name not in tasks:
                tasks[name] = bars.add_task(f"  {name}", total=tally.planned, note="")
            bars.update(tasks[name], completed=_settled_by(tally), note=_note(tally))

    def _details(self) -> str:
        state = self._state
        done = state.total("recorded") + state.total("duplicates") + state.total("failed")
        rate = done / max(1e-9, time.monotonic() - self._started)
        left = state.total("planned") - _settled(state)
        parts = [f"{rate:.1f}/s", f"{_short(state.total('tokens'))} tokens"]
        if not self._console.is_terminal and rate > 0:
            parts.append(f"{left / rate:.0f} s left")
        if failed := state.total("failed"):
            parts.append(f"{failed} failed")
        if waiting := sum(load.waiting for load in state.loads().values()):
            parts.append(f"{waiting} waiting to be tried again")
        return ", ".join(filter(None, [*parts, self._straggler(), self._also()]))

    def _straggler(self) -> str:
        if _settled(self._state) < _STRAGGLER_SHARE * self._state.total("planned"):
            return ""
        if (longest := self._state.longest()) is None:
            return ""
        unit_id, agent, began = longest
        return f"longest in flight {unit_id[:8]} of {agent}, {time.monotonic() - began:.0f} s"


def _settled(state: State) -> int:
    return sum(_settled_by(tally) for tally in state.agents.values())


def _settled_by(tally: Tally) -> int:
    return tally.done_before + tally.recorded + tally.duplicates + tally.failed


def _note(tally: Tally) -> str:
    parts = [f"{_short(tally.tokens)} tokens"]
    if tally.faults:
        parts.append(f"{tally.faults} unclean ends")
    if tally.failed:
        parts.append(f"{tally.failed} failed")
    if tally.retried:
        parts.append(f"{tally.retried} tried again")
    return ", ".join(parts)


def _short(number: int) -> str:
    for size, unit in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if number >= size:
            return f"{number / size:.1f}{unit}"
    return str(number)
