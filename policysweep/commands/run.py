"""`policysweep run`: run a sweep, or go on with one."""

from __future__ import annotations

import os
from pathlib import Path

import click
from rich.console import Console

from policysweep.commands.driving import Drive, conclude, driving_options, exit_with
from policysweep.commands.interrupt import interruptible
from policysweep.commands.judge import judge_run
from policysweep.launch import Launcher
from policysweep.process import calm_collector
from policysweep.sweep.display import Display
from policysweep.sweep.driver import Driver, Outcome, load_inputs, logs_folder, runner_settings
from policysweep.sweep.ledger import RunLedger
from policysweep.sweep.runs import prepare_run
from policysweep.sweep.spec import SweepSpec, load_spec
from policysweep.sweep.spec_fields import parse_rubric


@click.command()
@click.argument("sweep", type=click.Path(dir_okay=False, path_type=Path))
@driving_options
def run(sweep: Path, drive: Drive) -> None:
    """Run the sweep file SWEEP, or go on with it where an earlier run stopped.

    Exit code 0 when every unit of the shard has a record, 1 when some have none, 2 for bad input, 130
    after Ctrl-C. Running the same command again runs exactly what is missing.
    """
    spec = load_spec(sweep)
    spec.check_environment(os.environ)
    calm_collector()
    exit_with(_run(spec, drive, Console()))


async def _run(spec: SweepSpec, drive: Drive, console: Console) -> int:
    played = load_inputs(spec)
    ledger = await prepare_run(drive.store, spec.name)
    driver = Driver(spec, played, drive.shard, credentials=drive.credentials)
    logs = logs_folder(drive.store, spec.name)
    complete = await interruptible(_play(driver, spec, ledger, drive, logs, console))
    recorded = f"{driver.progress.total('recorded')} units"
    return await conclude(complete, recorded, ledger, logs, drive, console)


async def _play(
    driver: Driver, spec: SweepSpec, ledger: RunLedger, drive: Drive, logs: Path, console: Console
) -> bool:
    """Play, then judge; whether every unit has its record and its verdicts."""
    display = Display(driver.progress, console)
    driver.on_event = display.event
    async with Launcher(logs, display.event) as launcher:
        async with display.showing():
            outcome = await driver.run(ledger, launcher)
        _tell(outcome, console)
        if not spec.judges:
            return outcome.complete
        judged = await judge_run(
            ledger,
            driver.scenarios,
            driver.judges,
            parse_rubric(spec.rubric),
            runner_settings(spec),
            console,
            shard=drive.shard,
            credentials=drive.credentials,
        )
        return outcome.complete and judged


def _tell(outcome: Outcome, console: Console) -> None:
    progress = outcome.progress
    lines = [
        f"{progress.total('recorded')} units recorded now, {progress.total('done_before')} before",
    ]
    if duplicates := progress.total("duplicates"):
        lines.append(f"{duplicates} finished by somebody else first and were discarded")
    if failed := progress.total("failed"):
        lines.append(f"{failed} failed; run the same command again to try them again")
    for agent in outcome.backlog.given_up():
        lines.append(
            f"agent {agent} was given up after an outage, {outcome.backlog.skipped[agent]} of its units "
            "were not tried; run the same command again once it is back"
        )
    console.print("; ".join(lines) + ".", markup=False, highlight=False, soft_wrap=True)
