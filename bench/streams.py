"""Streams, measured: what a task costs beside its conversation and its grade, at no latency.

Streams of both domains run against services that are warm, as processes; this process drives them. The
figure is CPU per task by process, for tasks without a memory and for tasks that a bank learns from. What a
bank costs is the difference; the rehearsal server stands for the model servers and is named apart.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop
from rich.console import Console
from rich.table import Table

from bench.processes import cpu_seconds
from policysweep.launch import Launcher
from policysweep.process import calm_collector
from policysweep.streams.driver import StreamDriver
from policysweep.streams.selection import load_played
from policysweep.streams.services import Endpoints, start_services
from policysweep.streams.spec import MethodName, StreamSpec
from policysweep.sweep.runs import prepare_stream_run

RESULTS = Path(__file__).with_name("results") / "streams.json"
METHODS: tuple[MethodName, ...] = ("none", "reasoning_bank", "policy_bank", "human_oracle")
TRIALS = 8

_SPEC = StreamSpec.model_validate(
    {
        "name": "bench",
        "agents": [{"name": "fair", "model": "rehearsal-fair"}],
        "methods": METHODS,
        "seeds": [0],
        "trials": TRIALS,
        "originals": {"ordinary": 3},
        "concurrency": 16,
    }
)


@dataclass(frozen=True, slots=True)
class Figures:
    """What the tasks of one method cost. CPU in seconds by process."""

    tasks: int
    wall_seconds: float
    cpu: Mapping[str, float]

    def row(self) -> dict[str, float]:
        """The figures by name, in ms a task."""
        each = {name: round(seconds * 1000 / self.tasks, 1) for name, seconds in self.cpu.items()}
        ours = sum(seconds for name, seconds in self.cpu.items() if name != "rehearsal")
        return {
            "tasks": self.tasks,
            "tasks_per_second": round(self.tasks / self.wall_seconds, 1),
            "cpu_ms_per_task": round(ours * 1000 / self.tasks, 1),
            **{f"{name}_cpu_ms_per_task": ms for name, ms in each.items()},
        }


def run(console: Console) -> dict[str, Any]:
    """Measure, print the figures; gives what belongs into the results."""
    rows = {method: figures.row() for method, figures in measure().items()}
    table = Table(title=f"Streams of both domains, {_SPEC.concurrency} in flight, no latency")
    table.add_column("Figure")
    for method in rows:
        table.add_column(method, justify="right")
    for name in rows[METHODS[0]]:
        table.add_row(name.replace("_", " "), *(f"{row[name]:,}" for row in rows.values()))
    console.print(table)
    return {"measured": rows}


def measure() -> dict[str, Figures]:
    """Run the streams of each method, one method after another."""
    with (
        tempfile.TemporaryDirectory() as folder,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        return runner.run(_measure(Path(folder)))


async def _measure(folder: Path) -> dict[str, Figures]:
    load_played(_SPEC)
    calm_collector()
    async with Launcher(folder / "logs", print) as launcher:
        endpoints = await start_services(_SPEC, launcher, str(folder / "banks"), folder / "gold.json")
        spec = _served(endpoints)
        pids = {**launcher.pids(), "driver": os.getpid()}
        found: dict[str, Figures] = {}
        for method in METHODS:
            # The first tasks of a process import the package, and the first bank is made from the policy.
            await _run(spec.model_copy(update={"methods": (method,), "trials": 1}), f"warm-{method}", folder)
            before, started = {name: cpu_seconds(pid) for name, pid in pids.items()}, time.monotonic()
            tasks = await _run(spec.model_copy(update={"methods": (method,)}), method, folder)
            wall = time.monotonic() - started
            cpu = _by_service({name: cpu_seconds(pid) - before[name] for name, pid in pids.items()})
            found[method] = Figures(tasks, wall, cpu)
    return found


def _by_service(cpu: Mapping[str, float]) -> dict[str, float]:
    """CPU by service; the agent services, one a memory mode, together."""
    found: dict[str, float] = {}
    for name, seconds in cpu.items():
        service = name.partition("-")[0]
        found[service] = found.get(service, 0.0) + seconds
    return found


def _served(endpoints: Endpoints) -> StreamSpec:
    """The stream file, with the services that run."""
    described = _SPEC.model_dump(exclude_none=True, exclude={"agents", "bank", "judge"})
    targets = {mode: target for (_, mode), target in endpoints.agents.items()}
    return StreamSpec.model_validate(
        {
            **described,
            "agents": [{"name": "fair", "targets": targets}],
            "bank": {"target": endpoints.bank},
            "judge": {"target": endpoints.judge},
            "simulators": list(endpoints.simulators),
        }
    )


async def _run(spec: StreamSpec, name: str, folder: Path) -> int:
    """Run streams to the end; the number of their tasks. Ends the benchmark when one stops."""
    named = spec.model_copy(update={"name": name.replace("_", "-")})
    ledger = await prepare_stream_run(str(folder / "store"), named.name)
    driver = StreamDriver(named, load_played(named))
    async with Launcher(folder / "logs", print) as nothing:
        if not await driver.run(ledger, nothing, folder / "logs", None):
            raise SystemExit("a stream stopped: the figures would mean nothing")
    return driver.progress.total("recorded")


def save(document: Mapping[str, Any]) -> None:
    """Write the figures to bench/results/."""
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
