"""What comes after a sweep, on 40,000 units: time, peak memory, and how much of it grows with the run.

The 400 built-in scenarios are played by four rehearsal agents and judged, once. Each conversation and its
verdicts then stand for all trials of their scenario and agent, under the ids of the trials, in two runs of
different size. Every command is a process of its own; what it grows by is the difference of the two runs.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop
import yaml
from rich.console import Console
from rich.table import Table

from policysweep.sweep.ledger import RunLedger
from policysweep.sweep.plan import planned_units
from policysweep.sweep.runs import open_run, prepare_run
from policysweep.v1 import run_pb2

RESULTS = Path(__file__).with_name("results") / "report.json"
SCENARIOS = 400
AGENTS = ("strict", "fair", "lenient", "cautious")
TRIALS = (5, 25)
"""Trials of the two runs: 8,000 and 40,000 units."""

_WRITES = 256
"""Units that are written at once."""

Judged = tuple[run_pb2.UnitRecord, Sequence[run_pb2.VerdictRecord]]


@dataclass(frozen=True, slots=True)
class Cost:
    """What a command took on a run of so many units."""

    units: int
    seconds: float
    rss_mb: float


def run(console: Console, scenarios: int = SCENARIOS, trials: Sequence[int] = TRIALS) -> dict[str, Any]:
    """Measure, print the figures; gives what belongs into the results."""
    with (
        tempfile.TemporaryDirectory() as folder,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        base = _play(folder, scenarios)
        sizes = runner.run(_sizes(base))
        costs: defaultdict[str, list[Cost]] = defaultdict(list)
        for number in trials:
            ledger, units = runner.run(_multiply(base, folder, number))
            for name, seconds, rss_mb in _commands(ledger.url, folder):
                costs[name].append(Cost(units, seconds, rss_mb))
                console.print(f"{units:,} units, {name}: {seconds:.0f} s, {rss_mb:.0f} MB", style="dim")
    rows = {name: _row(*found) for name, found in costs.items()}
    _print(rows, sizes, console)
    return {"scenarios": scenarios, "agents": len(AGENTS), "store_bytes": sizes, "measured": rows}


def _row(small: Cost, large: Cost) -> dict[str, float]:
    grown = (large.rss_mb - small.rss_mb) * 1000 / (large.units - small.units)
    return {
        "records": large.units,
        "seconds": round(large.seconds, 1),
        "peak_rss_mb": round(large.rss_mb),
        "peak_rss_mb_of_the_smaller_run": round(small.rss_mb),
        "rss_mb_per_1000_records": round(grown, 2),
    }


def _print(rows: Mapping[str, Mapping[str, float]], sizes: Mapping[str, float], console: Console) -> None:
    table = Table(title="After a sweep with one judge: each command as a process")
    table.add_column("command")
    for name in next(iter(rows.values())):
        table.add_column(name.replace("_", " "), justify="right")
    for command, row in rows.items():
        table.add_row(command, *(f"{value:,}" for value in row.values()))
    console.print(table)
    console.print("Bytes: " + ", ".join(f"{name.replace('_', ' ')} {size:,}" for name, size in sizes.items()))


# ------------------------------------------------------------------ the runs


def _play(folder: str, scenarios: int) -> str:
    """A run with one trial, judged; gives where it is."""
    sweep = {
        "name": "base",
        "scenarios": {"limit": scenarios},
        "agents": [{"name": name, "model": f"rehearsal-{name}"} for name in AGENTS],
        "judges": [{"name": "judge", "model": "rehearsal-judge"}],
    }
    file = Path(folder, "sweep.yaml")
    file.write_text(yaml.safe_dump(sweep), encoding="utf-8")
    _measured("run", str(file), "--store", folder, "--no-report")
    return f"{folder}/base"


async def _sizes(base: str) -> dict[str, int]:
    """What a run takes in the store, in bytes."""
    ledger = await open_run(base)
    records = [record.ByteSize() async for record in ledger.read_records()]
    verdicts = [verdict.ByteSize() async for verdict in ledger.read_verdicts()]
    return {
        "per_unit_record": sum(records) // len(records),
        "largest_unit_record": max(records),
        "per_verdict": sum(verdicts) // len(verdicts),
        "verdicts_per_unit": len(verdicts) // len(records),
        "per_unit_with_its_verdicts": (sum(records) + sum(verdicts)) // len(records),
    }


async def _multiply(base: str, folder: str, trials: int) -> tuple[RunLedger, int]:
    """A run in which every trial of a scenario and agent went as the one of `base`; and its units."""
    source = await open_run(base)
    judging = await source.verdicts.read_judging()
    assert judging is not None
    manifest, inputs = await source.read_manifest(), await source.read_inputs()
    manifest.run, manifest.trials = f"trials-{trials}", trials
    ledger = await prepare_run(folder, manifest.run)
    await ledger.begin(manifest, inputs)
    await ledger.verdicts.begin(judging)
    async for goals in source.verdicts.read_all_goals():
        await ledger.verdicts.write_goals(goals)
    played = {
        (record.unit.scenario_id, record.unit.agent): (record, found)
        async for record, found in _judged(source)
    }
    units = list(planned_units(manifest, inputs))
    for first in range(0, len(units), _WRITES):
        batch = units[first : first + _WRITES]
        await asyncio.gather(*(_write(ledger, unit, *played[unit.scenario_id, unit.agent]) for unit in batch))
    return ledger, len(units)


async def _judged(ledger: RunLedger) -> AsyncIterator[Judged]:
    verdicts: defaultdict[str, list[run_pb2.VerdictRecord]] = defaultdict(list)
    async for verdict in ledger.read_verdicts():
        verdicts[verdict.unit_id].append(verdict)
    async for record in ledger.read_records():
        yield record, verdicts[record.unit.unit_id]


async def _write(
    ledger: RunLedger, unit: run_pb2.Unit, played: run_pb2.UnitRecord, found: Sequence[run_pb2.VerdictRecord]
) -> None:
    record = run_pb2.UnitRecord()
    record.CopyFrom(played)
    record.unit.CopyFrom(unit)
    record.episode.episode_id = unit.unit_id
    record.episode.agent_persona = unit.agent_persona
    record.episode.seed = unit.seed
    await ledger.write_record(record)
    for each in found:
        verdict = run_pb2.VerdictRecord()
        verdict.CopyFrom(each)
        verdict.unit_id = unit.unit_id
        await ledger.verdicts.write(verdict)


# ---------------------------------------------------------------- the commands


def _commands(run_url: str, folder: str) -> Iterator[tuple[str, float, float]]:
    """Each command with its seconds and its peak memory in MB."""
    out = str(Path(folder, "exported"))
    for name, arguments in {
        "report": ("report", run_url),
        "verify": ("verify", run_url, "--verdicts"),
        "export jsonl": ("export", run_url, "--format", "jsonl", "--output", out, "--force"),
        "export parquet": ("export", run_url, "--format", "parquet", "--output", out, "--force"),
    }.items():
        yield name, *_measured(*arguments)
        shutil.rmtree(out, ignore_errors=True)


def _measured(*arguments: str) -> tuple[float, float]:
    """Seconds and peak memory in MB of `policysweep ARGUMENTS`."""
    started = time.monotonic()
    process = subprocess.Popen((sys.executable, "-m", "policysweep", *arguments), stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"policysweep {arguments[0]} ended with code {process.returncode}")
    return time.monotonic() - started, used.ru_maxrss / 1024


def save(document: Mapping[str, Any]) -> None:
    """Write the figures to bench/results/."""
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
