"""Judging, measured: transcripts per second, CPU per call, what the prompts hold, and what a report takes.

A sweep is played first, at no latency. Then one judge service judges all of it while the rehearsal server
takes 50 ms for each answer, driven from this process. At last `policysweep report` runs over the judged run.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop
from rich.console import Console
from rich.table import Table

from bench.prefix_cache import PromptFigures
from bench.processes import cpu_seconds
from policysweep.launch import Launcher
from policysweep.process import calm_collector
from policysweep.rpc.client import Channels
from policysweep.sweep.driver import Driver, load_inputs, runner_settings
from policysweep.sweep.judge_client import JudgeClient
from policysweep.sweep.judging import JudgeStage
from policysweep.sweep.ledger import RunLedger
from policysweep.sweep.runner import Progress
from policysweep.sweep.runs import prepare_run
from policysweep.sweep.spec import SweepSpec
from policysweep.v1 import judge_pb2, run_pb2, scenario_pb2
from services.judge import prompt
from services.judge.config import JudgeConfig
from services.judge.rubric import Rubric
from services.judge.rubric_files import RubricLibrary
from services.judge.score_sheet import score_sheet

RESULTS = Path(__file__).with_name("results") / "judging.json"
LATENCY = 0.05
SCENARIOS = 400
AGENTS = ("strict", "fair", "lenient", "cautious")

REFERENCE = {
    "transcripts_per_second": 2.4,
    "prompt_characters_per_episode": 144_000,
    "cached_within_episode": 0.04,
    "cached_over_sweep": 0.77,
    "uncached_characters_per_episode": 33_000,
}
"""The public evaluator on two cores against one scripted model server, as published in its measurement."""
BUDGET = {
    "transcripts_per_second": "40, aim 80",
    "cached_within_episode": 0.97,
    "uncached_characters_per_episode": 16_500,
    "report_seconds": 10,
    "report_rss_mb": 500,
}

_RUBRIC = judge_pb2.RubricRef(name="drip-r", version=1)


@dataclass(frozen=True, slots=True)
class Figures:
    """What judging cost. CPU in seconds by process, from the plan to the last verdict."""

    transcripts: int
    calls: int
    wall_seconds: float
    cpu: Mapping[str, float]
    prompts: PromptFigures
    report_seconds: float
    report_rss_mb: float

    def row(self) -> dict[str, float]:
        """The figures by name."""
        return {
            "transcripts": self.transcripts,
            "model_calls": self.calls,
            "transcripts_per_second": round(self.transcripts / self.wall_seconds, 1),
            **{
                f"{name}_cpu_ms_per_call": round(seconds * 1000 / self.calls, 2)
                for name, seconds in self.cpu.items()
            },
            "prompt_characters_per_episode": round(self.prompts.per_episode),
            "cached_within_episode": round(self.prompts.within_episode, 4),
            "cached_over_sweep": round(self.prompts.over_sweep, 4),
            "uncached_characters_per_episode": round(self.prompts.uncached_per_episode),
            "report_seconds": round(self.report_seconds, 1),
            "report_rss_mb": round(self.report_rss_mb),
        }


def run(console: Console, scenarios: int = SCENARIOS) -> dict[str, Any]:
    """Measure, print the figures; gives what belongs into the results."""
    row = measure(scenarios).row()
    title = f"Judging {row['transcripts']} transcripts by one judge, {LATENCY * 1000:.0f} ms a model call"
    table = Table(title=title)
    for name in ("Figure", "Measured", "Public evaluator", "Budget"):
        table.add_column(name, justify="left" if name == "Figure" else "right")
    for name, value in row.items():
        others = (str(found.get(name, "")) for found in (REFERENCE, BUDGET))
        table.add_row(name.replace("_", " "), f"{value:,}", *others)
    console.print(table)
    return {"latency_seconds": LATENCY, "public_evaluator": REFERENCE, "budget": BUDGET, "measured": row}


def measure(scenarios: int) -> Figures:
    """Play and judge `scenarios` of the built-in data set with four agents, then report."""
    calm_collector()
    with (
        tempfile.TemporaryDirectory() as folder,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        ledger, cpu, plan_calls, wall = runner.run(_judge(scenarios, folder))
        figures = runner.run(_prompts(ledger))
        seconds, rss = _report(ledger.url)
    return Figures(figures.episodes, plan_calls, wall, cpu, figures, seconds, rss)


async def _judge(scenarios: int, folder: str) -> tuple[RunLedger, Mapping[str, float], int, float]:
    spec = SweepSpec.model_validate(
        {
            "name": "bench-judging",
            "scenarios": {"limit": scenarios},
            "agents": [{"name": name, "model": f"rehearsal-{name}"} for name in AGENTS],
        }
    )
    played = load_inputs(spec)
    ledger = await prepare_run(folder, spec.name)
    async with Launcher(Path(folder, "logs"), print) as launcher:
        if not (await Driver(spec, played).run(ledger, launcher)).complete:
            raise SystemExit("units failed during the benchmark: its figures would mean nothing")
    async with Launcher(Path(folder, "logs"), print) as launcher, Channels() as channels:
        flags = ["--first-token", str(LATENCY)]
        rehearsal = await launcher.start("rehearsal", "policysweep rehearsal", flags)
        model = ["--model-url", f"http://{rehearsal}/v1", "--model", "rehearsal-judge"]
        target = await launcher.start("judge", "services.judge", model)
        client = JudgeClient("judge", target, channels)
        await client.info()
        stage = JudgeStage(
            ledger, played.inputs.scenarios, [client], runner_settings(spec), Progress(), print
        )
        pids = {**launcher.pids(), "driver": os.getpid()}
        before = {name: cpu_seconds(pid) for name, pid in pids.items()}
        started = time.monotonic()
        plan = await stage.plan(_RUBRIC)
        await stage.run(plan)
        wall = time.monotonic() - started
        used = {name: cpu_seconds(pid) - before[name] for name, pid in pids.items()}
    if stage.missing:
        raise SystemExit("verdicts are missing after the benchmark: its figures would mean nothing")
    return ledger, used, plan.calls, wall


# ------------------------------------------------------------------ prompts


async def _prompts(ledger: RunLedger) -> PromptFigures:
    rubric = RubricLibrary.read(JudgeConfig.model_fields["rubrics"].default).find(_RUBRIC)
    scenarios = {each.scenario_id: each for each in (await ledger.read_inputs()).scenarios}
    goals = {each.task_id: each.goals async for each in ledger.verdicts.read_all_goals()}
    judged = {record.unit_id async for record in ledger.read_verdicts()}
    figures = PromptFigures()
    async for record in ledger.read_records():
        unit = record.unit
        if unit.unit_id in judged:
            figures.add(_panel_prompts(rubric, scenarios[unit.scenario_id], record, goals[unit.task_id]))
    return figures


def _panel_prompts(
    rubric: Rubric,
    scenario: scenario_pb2.Scenario,
    record: run_pb2.UnitRecord,
    goals: Sequence[judge_pb2.Goal],
) -> list[str]:
    """The prompts of an episode's panels, each as one text."""
    shared = prompt.episode_text(rubric, scenario, record.episode)
    sheets = (score_sheet(panel, record.episode, goals) for panel in rubric.panels)
    return [
        "".join(
            message["content"]
            for message in prompt.panel_messages(rubric, scenario.policy, shared, prompt.panel_ask(sheet))
        )
        for sheet in sheets
        if not sheet.empty
    ]


# ------------------------------------------------------------------ the report


def _report(run: str) -> tuple[float, float]:
    """Seconds and peak memory in MB of `policysweep report` as a process of its own."""
    started = time.monotonic()
    process = subprocess.Popen(
        (sys.executable, "-m", "policysweep", "report", run), stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"policysweep report ended with code {process.returncode}")
    return time.monotonic() - started, used.ru_maxrss / 1024


def save(document: Mapping[str, Any]) -> None:
    """Write the figures to bench/results/."""
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
