"""The cluster while it stands: its pods, its Jobs, and what can be done to them."""

from __future__ import annotations

import asyncio
import json
import random
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from tests.cluster.disturbing import STREAMS, SWEEP, Fault
from tests.cluster.installation import DRAIN_SECONDS, PROMETHEUS, Installation, Size
from tests.cluster.jobs import Index, IndexedJob
from tests.cluster.names import NameServer
from tests.cluster.pods import RESTART_SECONDS, Pod, PodSpec, Tell
from tests.cluster.watching import Watch, program

Chosen = TypeVar("Chosen")
REPLICA = "agent-fair-2"
"""The replica that is added."""


@dataclass
class Drained:
    """What a replica said when it was drained."""

    calls: int
    seconds: float
    cut_off: bool
    code: int


@dataclass
class Box:
    """A cluster on this machine."""

    folder: Path
    names: NameServer
    size: Size
    tell: Tell
    draw: random.Random
    pods: dict[str, Pod] = field(default_factory=dict)
    jobs: dict[str, IndexedJob] = field(default_factory=dict)
    faults: Counter[tuple[str, str]] = field(default_factory=Counter)
    """What was done, to which kind of process."""
    drained: Drained | None = None

    def __post_init__(self) -> None:
        self.installation = Installation(self.folder, self.names, self.size)
        self.watch = Watch(self.folder, f"http://{self.installation.prometheus}:{PROMETHEUS}")

    async def open(self) -> None:
        """Start everything but the Jobs."""
        await asyncio.to_thread(self.installation.prepare)
        prometheus = self.installation.prometheus_pod(program(), self.watch.configure())
        pods = [*self.installation.service_pods()]
        await asyncio.gather(
            asyncio.to_thread(self.installation.s3.start),
            *(self._start(spec) for spec in (prometheus, *pods)),
        )

    async def close(self) -> None:
        """End every process."""
        await asyncio.gather(*(job.stop() for job in self.jobs.values()))
        await asyncio.gather(*(pod.stop() for pod in self.pods.values()))
        self.installation.s3.kill()

    async def _start(self, spec: PodSpec) -> Pod:
        pod = self.pods[spec.name] = Pod(spec, self.names, self.folder, self.tell)
        await pod.start()
        if spec.kind != "prometheus":
            self.watch.discover(spec.kind, spec.name, spec.address)
        return pod

    # -------------------------------------------------------------------- work

    async def work(self) -> None:
        """Run the sweep and the streams to their ends."""
        install = self.installation
        shards = {SWEEP: ("run", install.sweep_file(), 4), STREAMS: ("stream", install.stream_file(), 2)}
        for work, (command, file, number) in shards.items():
            self.jobs[work] = IndexedJob(
                command,
                file,
                install.driver_addresses(number),
                install.environment,
                install.tls("driver"),
                self.folder,
            )
        async with asyncio.TaskGroup() as group:
            for job in self.jobs.values():
                group.create_task(self._run(job))

    async def _run(self, job: IndexedJob) -> None:
        names = [f"{job.name}-{index.number}" for index in job.indexes]
        for name, index in zip(names, job.indexes, strict=True):
            self.watch.discover("driver", name, index.address)
        await job.run()
        for name in names:
            self.watch.forget(name)

    def over(self, work: str) -> bool:
        """Whether a Job has come to its end."""
        return work in self.jobs and all(index.done for index in self.jobs[work].indexes)

    # ------------------------------------------------------------------ faults

    async def inflict(self, fault: Fault) -> None:
        """Do it, as soon as there is somebody to do it to."""
        match fault.what, fault.kind:
            case "add", _:
                await self._add_replica()
            case "drain", _:
                await self._drain_replica()
            case "kill", "driver":
                await self._disrupt(SWEEP, signal.SIGKILL)
            case "kill", "stream driver":
                await self._disrupt(STREAMS, signal.SIGKILL)
            case "restart", _:
                await self._restart_store()
            case "preempt", _:
                await self._disrupt(SWEEP, signal.SIGTERM)
            case _:
                await self._kill(fault.kind)
        self.faults[fault.what, fault.kind] += 1

    async def _kill(self, kind: str) -> None:
        victim = await self._choose(lambda: self._ready(kind))
        self.tell(f"kill {victim.spec.name}")
        victim.kill()

    async def _restart_store(self) -> None:
        self.tell("kill the store")
        await asyncio.to_thread(self.installation.s3.kill)
        await asyncio.sleep(RESTART_SECONDS)
        await asyncio.to_thread(self.installation.s3.start, wait=False)

    async def _disrupt(self, work: str, number: signal.Signals) -> None:
        job = self.jobs[work]

        def running() -> list[Index]:
            assert not self.over(work), f"{work} was over before somebody could end a driver of it"
            return [each for each in job.indexes if each.running]

        index = await self._choose(running)
        self.tell(f"{'kill' if number is signal.SIGKILL else 'preempt'} {job.name}-{index.number}")
        job.disrupt(index, number)

    async def _choose(self, candidates: Callable[[], Sequence[Chosen]]) -> Chosen:
        while True:
            if found := candidates():
                return self.draw.choice(found)
            await asyncio.sleep(0.1)

    def _ready(self, kind: str) -> list[Pod]:
        return [pod for pod in self.pods.values() if pod.spec.kind == kind and pod.ready.is_set()]

    async def _add_replica(self) -> None:
        self.tell(f"add {REPLICA}")
        await self._start(self.installation.agent("fair", 2))

    async def _drain_replica(self) -> None:
        """Out of the name and told to stop at once, with calls in flight and more on their way.

        Kubernetes would leave clients a while to forget it, see docs/operating.md; the box is harder.
        """
        victim = await self._choose(
            lambda: [pod for pod in self._ready("agent") if pod.spec.name in ("agent-fair-0", "agent-fair-1")]
        )
        name = victim.spec.name
        await self.watch.busy(victim.spec.address)
        self.tell(f"drain {name}")
        code = await victim.terminate(DRAIN_SECONDS + 10)
        del self.pods[name]
        self.watch.forget(name)
        said = json.loads(victim.log.read_text("utf-8").splitlines()[-1])
        assert said["event"].startswith("drained"), victim.tail()
        self.drained = Drained(said["calls"], said["seconds"], said["level"] == "warning", code)
        self.tell(f"{name} drained {said['calls']} calls in {said['seconds']} s, exit code {code}")
