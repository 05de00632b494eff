"""Local services as child processes: started, watched, restarted on the same address, ended with us.

A child tells its address by one JSON line on stdout (`process.announce`) and ends when its stdin does,
so that no child outlives a driver that was killed. Children run in sessions of their own: Ctrl-C at a
terminal reaches the driver alone, which then ends them in order.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import orjson

from policysweep.errors import InputError, ServiceUnavailable

MAX_RESTARTS = 5
"""Restarts of one child before the launcher gives it up."""

_START_SECONDS = 60.0
_STOP_SECONDS = 10.0
_RESTART_SECONDS = 0.2
"""Pause before a restart, times the number of restarts so far."""

OnEvent = Callable[[str], None]


@dataclass(slots=True)
class _Child:
    name: str
    argv: Sequence[str]
    log: Path
    address: str = ""
    process: Process | None = None
    restarts: int = 0
    watcher: asyncio.Task[None] | None = field(default=None)


class Launcher:
    """Starts children and keeps them running while the block runs."""

    def __init__(self, logs: Path, on_event: OnEvent) -> None:
        """`logs` is the folder for the children's stderr; `on_event` is told of deaths and restarts."""
        self._logs = logs
        self._on_event = on_event
        self._children: list[_Child] = []

    async def __aenter__(self) -> Self:
        self._logs.mkdir(parents=True, exist_ok=True)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # In reverse: those that call go before those that are called.
        for child in reversed(self._children):
            await self._stop(child)

    async def start(
        self, name: str, module: str, args: Sequence[str] = (), *, listen: str = "127.0.0.1:0"
    ) -> str:
        """Start `python -m module args` and give the address that it listens on.

        Raises InputError with the child's own words when it refuses its settings, ServiceUnavailable when
        it does not come up.
        """
        # -P: what lies in the current folder must not pass for a module of the standard library.
        argv = (sys.executable, "-P", "-m", *module.split(), *args, "--stop-on-stdin-eof")
        child = _Child(name, argv, self._logs / f"{name}.log", address=listen)
        self._children.append(child)
        await self._spawn(child)
        child.watcher = asyncio.create_task(self._watch(child), name=f"watch {name}")
        return child.address

    def pids(self) -> dict[str, int]:
        """Process ids of the children that run, by name."""
        return {
            child.name: child.process.pid
            for child in self._children
            if child.process is not None and child.process.returncode is None
        }

    async def _spawn(self, child: _Child) -> None:
        with child.log.open("ab") as log:
            said_before = log.tell()
            child.process = await asyncio.create_subprocess_exec(
                *child.argv,
                "--listen",
                child.address,
                stdin=PIPE,
                stdout=PIPE,
                stderr=log,
                start_new_session=True,
            )
        assert child.process.stdout is not None
        try:
            line = await asyncio.wait_for(child.process.stdout.readline(), _START_SECONDS)
        except TimeoutError:
            raise ServiceUnavailable(
                f"{child.name} did not come up in {_START_SECONDS:.0f} s, see {child.log}"
            ) from None
        if not line:
            await self._refused(child, said_before)
        child.address = orjson.loads(line)["address"]

    async def _refused(self, child: _Child, said_before: int) -> None:
        assert child.process is not None
        code = await child.process.wait()
        said = child.log.read_bytes()[said_before:].decode("utf-8", "replace").strip()
        last = said.rpartition("\n")[2].removeprefix("error: ")
        if code == InputError.exit_code:
            raise InputError(f"{child.name}: {last}")
        raise ServiceUnavailable(f"{child.name} ended with code {code} at start: {last} (see {child.log})")

    async def _watch(self, child: _Child) -> None:
        """Restart the child whenever it dies, at most MAX_RESTARTS times."""
        while child.process is not None:
            code = await child.process.wait()
            if child.restarts == MAX_RESTARTS:
                self._on_event(f"{child.name} ended with code {code} once more and is given up")
                return
            child.restarts += 1
            self._on_event(
                f"{child.name} ended with code {code}: restarting it ({child.restarts} of {MAX_RESTARTS})"
            )
            await asyncio.sleep(child.restarts * _RESTART_SECONDS)
            try:
                await self._spawn(child)
            except (InputError, ServiceUnavailable) as error:
                self._on_event(f"{child.name} cannot be restarted: {error}")

    async def _stop(self, child: _Child) -> None:
        if child.watcher is not None:
            child.watcher.cancel()
        process = child.process
        if process is None or process.returncode is not None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), _STOP_SECONDS)
        except TimeoutError:
            process.kill()
            await process.wait()
