"""tau2-bench tasks, measured: CPU per task over all processes but the model's, memory, cost of the first.

Every task of airline and retail is played and graded, several times over, at no latency, by the services as
processes. This process drives them. The rehearsal server stands for the model server and is named apart.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop
from rich.console import Console
from rich.table import Table

from bench.processes import cpu_seconds, memory_mb
from policysweep.datasets.tau2 import DOMAINS, load_tau2
from policysweep.datasets.tau2_gold import write_gold
from policysweep.launch import Launcher
from policysweep.process import calm_collector
from policysweep.rpc.client import Channels
from policysweep.v1 import judge_pb2, judge_pb2_grpc, simulator_pb2, simulator_pb2_grpc, tau2_pb2

RESULTS = Path(__file__).with_name("results") / "tau2.json"
REPEATS = 3
CONCURRENCY = 32
SECONDS = 120.0

REFERENCE = {"cpu_ms_per_task": "1,100 to 1,500", "rss_mb": "500 to 2,500"}
"""tau2-bench itself on two cores against one scripted model server, as published in its measurement."""
BUDGET = {"cpu_ms_per_task": 100, "pss_mb": 500}

_LIMITS = simulator_pb2.Tau2Limits(max_steps=200, max_errors=10, max_tokens=10**7, agent_call_seconds=60)


@dataclass(frozen=True, slots=True)
class Figures:
    """What the tasks cost. CPU in seconds by process; memory in MB at the end, without the model's."""

    tasks: int
    solved: int
    calls: int
    wall_seconds: float
    cpu: Mapping[str, float]
    first_cpu: Mapping[str, float]
    """Of the first task of each domain, which imports the package and reads the database."""
    memory: Mapping[str, float]

    def row(self) -> dict[str, float]:
        """The figures by name."""
        ours = sum(seconds for name, seconds in self.cpu.items() if name != "rehearsal")
        per_task = {
            f"{name}_cpu_ms_per_task": round(seconds * 1000 / self.tasks, 1)
            for name, seconds in self.cpu.items()
        }
        return {
            "tasks": self.tasks,
            "solved": self.solved,
            "model_calls_per_task": round(self.calls / self.tasks, 1),
            "cpu_ms_per_task": round(ours * 1000 / self.tasks, 1),
            **per_task,
            "cpu_ms_per_model_call": round(ours * 1000 / self.calls, 2),
            "tasks_per_second": round(self.tasks / self.wall_seconds, 1),
            "first_tasks_cpu_seconds": round(sum(self.first_cpu.values()), 1),
            "pss_mb": round(self.memory["pss"]),
            "rss_mb": round(self.memory["rss"]),
        }


def run(console: Console) -> dict[str, Any]:
    """Measure, print the figures; gives what belongs into the results."""
    row = measure().row()
    table = Table(title=f"{row['tasks']} tau2-bench tasks, {CONCURRENCY} in flight, no latency")
    for name in ("Figure", "Measured", "tau2-bench", "Budget"):
        table.add_column(name, justify="left" if name == "Figure" else "right")
    for name, value in row.items():
        others = (str(found.get(name, "")) for found in (REFERENCE, BUDGET))
        table.add_row(name.replace("_", " "), f"{value:,}", *others)
    console.print(table)
    return {"tau2_bench": REFERENCE, "budget": BUDGET, "measured": row}


def measure(repeats: int = REPEATS) -> Figures:
    """Play and grade every task of both domains `repeats` times."""
    calm_collector()
    with (
        tempfile.TemporaryDirectory() as folder,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        return runner.run(_measure(Path(folder), repeats))


async def _measure(folder: Path, repeats: int) -> Figures:
    datasets = [load_tau2(domain) for domain in DOMAINS]
    write_gold(folder / "gold.json", datasets)
    async with Launcher(folder / "logs", print) as launcher, Channels() as channels:
        driver = await _Driver.start(launcher, channels, folder / "gold.json")
        pids = {**launcher.pids(), "driver": os.getpid()}
        first_cpu = await _used(pids, driver.play_all([dataset.tasks[0] for dataset in datasets]))
        tasks = [task for _ in range(repeats) for dataset in datasets for task in dataset.tasks]
        driver.calls, driver.solved, started = 0, 0, time.monotonic()
        cpu = await _used(pids, driver.play_all(tasks))
        ours = [pid for name, pid in pids.items() if name != "rehearsal"]
        return Figures(
            tasks=len(tasks),
            solved=driver.solved,
            calls=driver.calls,
            wall_seconds=time.monotonic() - started,
            cpu=cpu,
            first_cpu=first_cpu,
            memory=memory_mb(ours),
        )


async def _used(pids: Mapping[str, int], work: Any) -> dict[str, float]:
    """CPU seconds by process while `work` is done."""
    before = {name: cpu_seconds(pid) for name, pid in pids.items()}
    await work
    return {name: cpu_seconds(pid) - before[name] for name, pid in pids.items()}


class _Driver:
    """Plays and grades tasks, a bounded number at a time."""

    def __init__(self, channels: Channels, agent: str, simulator: str, judge: str) -> None:
        self._agent = agent
        self._simulator: simulator_pb2_grpc.SimulatorServiceAsyncStub = (
            simulator_pb2_grpc.SimulatorServiceStub(channels.get(simulator))
        )
        self._judge: judge_pb2_grpc.JudgeServiceAsyncStub = judge_pb2_grpc.JudgeServiceStub(
            channels.get(judge)
        )
        self._slots = asyncio.Semaphore(CONCURRENCY)
        self.calls = 0
        self.solved = 0

    @classmethod
    async def start(cls, launcher: Launcher, channels: Channels, gold: Path) -> _Driver:
        """Start the services."""
        flags = ["--tau2-gold", str(gold)]
        rehearsal = await launcher.start("rehearsal", "policysweep rehearsal", flags)
        targets = [
            await launcher.start(
                name, f"services.{name}", ["--model-url", f"http://{rehearsal}/v1", "--model", model]
            )
            for name, model in (
                ("agent", "rehearsal-judge"),
                ("simulator", "rehearsal-customer"),
                ("judge", "rehearsal-judge"),
            )
        ]
        return cls(channels, *targets)

    async def play_all(self, tasks: Sequence[tau2_pb2.Tau2Task]) -> None:
        """All tasks. Ends the benchmark when one does not end as it should."""
        async with asyncio.TaskGroup() as group:
            for number, task in enumerate(tasks):
                group.create_task(self._play(number, task))

    async def _play(self, number: int, task: tau2_pb2.Tau2Task) -> None:
        async with self._slots:
            request = simulator_pb2.RunTau2EpisodeRequest(
                episode_id=f"{number}",
                domain=task.domain,
                task_id=task.task_id,
                user_scenario=task.user_scenario,
                agent_target=self._agent,
                limits=_LIMITS,
            )
            async for event in self._simulator.RunTau2Episode(request, timeout=SECONDS):
                episode = event.episode
            answer = await self._judge.JudgeTau2(
                judge_pb2.JudgeTau2Request(task=task, episode=episode), timeout=SECONDS
            )
        self.calls += len(episode.model_calls)
        self.solved += int(answer.grade.reward)
        if not answer.grade.ended_by_participant:
            raise SystemExit(f"{task.domain} task {task.task_id} did not end: the figures would mean nothing")


def save(document: Mapping[str, Any]) -> None:
    """Write the figures to bench/results/."""
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
