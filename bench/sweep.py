"""The main job, measured: CPU per model call, scenarios per second, and the share of the ideal under latency.

The driver runs in a process that plays one case, everything else as the processes that a local run starts.
The rehearsal server stands for the model server: its CPU is named apart and no part of the figure per call.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import uvloop

from bench.processes import cpu_seconds, memory_samples
from policysweep.launch import Launcher
from policysweep.process import calm_collector
from policysweep.sweep.backlog import Attempt, Backlog
from policysweep.sweep.driver import Driver, load_inputs
from policysweep.sweep.ledger import RunLedger
from policysweep.sweep.plan import WHOLE
from policysweep.sweep.runner import Runner
from policysweep.sweep.runs import prepare_run
from policysweep.sweep.spec import SweepSpec

AGENTS = ("strict", "fair", "lenient", "cautious")


@dataclass(frozen=True, slots=True)
class Case:
    """One measurement: conversations in flight, scenarios per agent, seconds a model call takes."""

    concurrency: int
    scenarios: int
    latency: float


@dataclass(slots=True)
class Figures:
    """What one case cost. CPU in seconds, memory in MB, at its peak and of all processes together."""

    case: Case
    units: int
    calls: int
    wall_seconds: float
    cpu: Mapping[str, float]
    """By process, from the first unit to the last."""
    start_cpu: Mapping[str, float]
    """By service, from its start to its readiness."""
    memory: Mapping[str, float]
    busy_seconds: float
    """Sum over units of the time from start to record."""

    @property
    def cpu_ms_per_call(self) -> float:
        """Driver, simulator and agents together."""
        ours = sum(seconds for name, seconds in self.cpu.items() if name != "rehearsal")
        return ours * 1000 / self.calls

    @property
    def rehearsal_ms_per_call(self) -> float:
        """The stand-in for the model server."""
        return self.cpu["rehearsal"] * 1000 / self.calls

    @property
    def share_of_ideal(self) -> float:
        """Time that conversations would take at the model's latency alone, over the time they took."""
        return self.calls * self.case.latency / self.busy_seconds


class _TimedRunner(Runner):
    """Adds up the time that units take."""

    busy_seconds = 0.0

    async def _attempt(self, backlog: Backlog, attempt: Attempt) -> None:
        started = time.monotonic()
        await super()._attempt(backlog, attempt)
        self.busy_seconds += time.monotonic() - started


class _Meter:
    """Reads the processes of a run from the first unit on."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher
        self.samples: list[Mapping[str, float]] = []
        self.runner: _TimedRunner | None = None
        self.sampler: asyncio.Task[None] | None = None
        self.start_cpu: dict[str, float] = {}
        self.started = 0.0

    def pids(self) -> dict[str, int]:
        return {**self._launcher.pids(), "driver": os.getpid()}

    def make_runner(self, **arguments: Any) -> Runner:
        """Called once the services are ready and the plan is made: the measurement begins."""
        self.runner = _TimedRunner(**arguments)
        self.start_cpu = {name: cpu_seconds(pid) for name, pid in self.pids().items()}
        self.started = time.monotonic()
        self.sampler = asyncio.create_task(self._sample_memory())
        return self.runner

    def used(self) -> dict[str, float]:
        return {name: cpu_seconds(pid) - self.start_cpu[name] for name, pid in self.pids().items()}

    async def _sample_memory(self) -> None:
        async with contextlib.aclosing(memory_samples(self.pids().values())) as samples:
            async for sample in samples:
                self.samples.append(sample)


def measure(case: Case) -> Figures:
    """Run one case in a process of its own: its driver holds nothing of earlier cases or other benchmarks."""
    argv = (sys.executable, "-m", __name__, json.dumps(asdict(case)), tempfile.mkdtemp(dir=_folder().name))
    done = subprocess.run(argv, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise SystemExit(done.returncode)
    return Figures(**{**json.loads(done.stdout), "case": case})


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Holds the runs of all cases until this process ends.

    For a minute ext4 looks at each deleted inode again whenever it needs a new one. To delete the records of
    one case would cost the driver of the next a third of its CPU.
    """
    return tempfile.TemporaryDirectory()


def measure_here(case: Case, folder: str) -> Figures:
    """Run one case in this process, into an empty folder."""
    calm_collector()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # as `policysweep run` does
        return runner.run(_measure(case, folder))


async def _measure(case: Case, folder: str) -> Figures:
    async with Launcher(Path(folder, "logs"), _tell) as launcher:
        flags = ["--first-token", str(case.latency)]
        rehearsal = await launcher.start("rehearsal", "policysweep rehearsal", flags)
        spec = _spec(case, f"http://{rehearsal}/v1")
        meter = _Meter(launcher)
        driver = Driver(spec, load_inputs(spec), WHOLE, _tell, make_runner=meter.make_runner)
        ledger = await prepare_run(folder, spec.name)
        outcome = await driver.run(ledger, launcher)
        wall, used = time.monotonic() - meter.started, meter.used()
        assert meter.runner is not None
        assert meter.sampler is not None
        meter.sampler.cancel()
        await asyncio.wait([meter.sampler])
        if not outcome.complete:
            raise SystemExit("units failed during the benchmark: its figures would mean nothing")
        return Figures(
            case=case,
            units=outcome.progress.total("recorded"),
            calls=await _calls(ledger),
            wall_seconds=wall,
            cpu=used,
            start_cpu={name: seconds for name, seconds in meter.start_cpu.items() if name != "driver"},
            memory=max(meter.samples, key=lambda sample: sample["pss"]),
            busy_seconds=meter.runner.busy_seconds,
        )


def _spec(case: Case, model_url: str) -> SweepSpec:
    return SweepSpec.model_validate(
        {
            "name": f"bench-{case.concurrency}",
            "scenarios": {"limit": case.scenarios},
            "agents": [
                {"name": name, "model": f"rehearsal-{name}", "model_url": model_url} for name in AGENTS
            ],
            "customer": {"model": "rehearsal-customer", "model_url": model_url},
            "concurrency": case.concurrency,
        }
    )


async def _calls(ledger: RunLedger) -> int:
    return sum(
        [
            sum(call.usage.model_calls for call in record.episode.model_calls)
            async for record in ledger.read_records()
        ]
    )


def _tell(event: str) -> None:
    print(event, file=sys.stderr)


if __name__ == "__main__":
    print(json.dumps(asdict(measure_here(Case(**json.loads(sys.argv[1])), sys.argv[2]))))
