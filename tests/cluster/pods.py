"""The kubelet: starts the process of a pod, starts it again when it ends, and knows whether it is ready.

A pod that is ready is behind the name of its Service; one that died is taken out of it and started again
after a second. Processes end with the test, whatever happens to it.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster.names import NameServer

RESTART_SECONDS = 1.0
"""Kubernetes waits ten seconds before it starts a container again; the box is ten times as fast."""
Tell = Callable[[str], None]
"""Hears of events, as a person would tell them."""
_START_SECONDS = 120.0
_DIE_WITH_PARENT = 1
_libc = ctypes.CDLL(None)


def _die_with_parent() -> None:
    _libc.prctl(_DIE_WITH_PARENT, signal.SIGKILL)


async def spawn(
    argv: Sequence[str], env: Mapping[str, str], log: Path, *, announces: bool = False
) -> asyncio.subprocess.Process:
    """Start a process that writes into `log` and dies with this one; stdout is a pipe if it `announces`."""
    with log.open("ab") as file:
        return await asyncio.create_subprocess_exec(
            *argv,
            env={**os.environ, **env},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE if announces else file,
            stderr=file,
            preexec_fn=_die_with_parent,
        )


@dataclass(frozen=True)
class PodSpec:
    """What a pod is."""

    kind: str
    """What it is one of, and the label of its metrics: simulator, agent, judge, ..."""
    name: str
    address: str
    """Its own, on the loopback network."""
    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    service: str = ""
    """The Service that it is behind; none for the empty one."""
    ready_url: str = ""
    """Answers once the pod is ready. Without it, the pod says so on stdout as our services do."""


class Pod:
    """A pod that is kept running."""

    def __init__(self, spec: PodSpec, names: NameServer, logs: Path, tell: Tell) -> None:
        """`logs` is a folder; `tell` hears of the pod when it is back."""
        self.spec = spec
        self._tell = tell
        self.log = logs / f"{spec.name}.log"
        self.restarts = 0
        self.ready = asyncio.Event()
        self._names = names
        self._process: asyncio.subprocess.Process | None = None
        self._kept: asyncio.Task[None] | None = None
        self._deleted = False

    async def start(self) -> None:
        """Start it; returns once it is ready."""
        self._kept = asyncio.create_task(self._keep())
        ready = asyncio.create_task(self.ready.wait())
        await asyncio.wait([ready, self._kept], timeout=_START_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if not self.ready.is_set():
            ready.cancel()
            raise AssertionError(f"{self.spec.name} did not become ready: {self.tail()}")

    def kill(self) -> None:
        """End the process at once, as a lost node or a lack of memory does."""
        assert self._process is not None
        self._process.kill()

    async def terminate(self, grace: float) -> int:
        """Delete the pod: SIGTERM, and after `grace` seconds SIGKILL; gives its exit code."""
        assert self._process is not None
        self._deleted = True
        self._withdraw()
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        try:
            return await asyncio.wait_for(self._process.wait(), grace)
        except TimeoutError:
            self._process.kill()
            return await self._process.wait()

    async def stop(self) -> None:
        """End it with the box."""
        self._deleted = True
        if self._kept is not None:
            self._kept.cancel()
            await asyncio.gather(self._kept, return_exceptions=True)
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    def tail(self) -> str:
        """The end of its log."""
        return self.log.read_text("utf-8", "replace")[-1500:] if self.log.exists() else ""

    async def _keep(self) -> None:
        died = 0.0
        while True:
            await self._run_once(died)
            if self._deleted:
                return
            died = time.monotonic()
            self.restarts += 1
            await asyncio.sleep(RESTART_SECONDS)

    async def _run_once(self, died: float) -> None:
        spec = self.spec
        announces = not spec.ready_url
        self._process = await spawn(spec.argv, spec.env, self.log, announces=announces)
        try:
            if await (self._announced() if announces else self._answers()):
                self._names.ready[spec.service].add(spec.address)
                self.ready.set()
                if self.restarts:
                    self._tell(f"{spec.name} is back after {time.monotonic() - died:.1f} s")
            await self._process.wait()
        finally:
            self._withdraw()

    def _withdraw(self) -> None:
        self.ready.clear()
        self._names.ready[self.spec.service].discard(self.spec.address)

    async def _announced(self) -> bool:
        assert self._process is not None
        assert self._process.stdout is not None
        return bool(await self._process.stdout.readline())

    async def _answers(self) -> bool:
        assert self._process is not None
        while self._process.returncode is None:
            if await asyncio.to_thread(_answers, self.spec.ready_url):
                return True
            await asyncio.sleep(0.2)
        return False


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2):
            return True
    except urllib.error.HTTPError as error:
        return error.code < 500  # a refusal is an answer
    except OSError:
        return False


class Clock:
    """Time since the box was opened, for lines that a person reads."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def __call__(self) -> float:
        return time.monotonic() - self._began
