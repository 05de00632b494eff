"""`policysweep stream`: run streams of tasks with memories that learn, or go on with them."""

from __future__ import annotations

import os
from pathlib import Path

import click
from rich.console import Console

from policysweep.commands.driving import Drive, conclude, driving_options, exit_with
from policysweep.commands.interrupt import interruptible
from policysweep.launch import Launcher
from policysweep.process import calm_collector
from policysweep.streams.driver import StreamDriver
from policysweep.streams.ledger import StreamLedger
from policysweep.streams.progress import StreamProgress
from policysweep.streams.selection import load_played
from policysweep.streams.spec import StreamSpec, load_spec
from policysweep.sweep.display import Display
from policysweep.sweep.driver import local_folder, logs_folder
from policysweep.sweep.runs import prepare_stream_run


@click.command()
@click.argument("streams", type=click.Path(dir_okay=False, path_type=Path))
@driving_options
def stream(streams: Path, drive: Drive) -> None:
    """Run the stream file STREAMS, or go on with it where an earlier run stopped.

    Exit code 0 when every task of the shard has a record, 1 when some have none, 2 for bad input, 130
    after Ctrl-C. Running the same command again plays exactly what is missing, and no bank learns twice.
    """
    spec = load_spec(streams)
    spec.check_environment(os.environ)
    exit_with(_run(spec, drive, Console()))


async def _run(spec: StreamSpec, drive: Drive, console: Console) -> int:
    played = load_played(spec)
    calm_collector()  # after tau2-bench was imported
    ledger = await prepare_stream_run(drive.store, spec.name)
    driver = StreamDriver(spec, played, drive.shard, credentials=drive.credentials)
    logs, folder = logs_folder(drive.store, spec.name), local_folder(drive.store, spec.name)
    complete = await interruptible(_play(driver, ledger, logs, folder, console))
    recorded = f"{driver.progress.total('recorded')} tasks"
    return await conclude(complete, recorded, ledger, logs, drive, console)


async def _play(
    driver: StreamDriver, ledger: StreamLedger, logs: Path, folder: Path | None, console: Console
) -> bool:
    """Play; whether every task has its record."""
    progress = driver.progress
    display = Display(
        progress, console, noun="tasks", also=lambda: f"{progress.ended} of {progress.streams} streams done"
    )
    driver.on_event = display.event
    async with Launcher(logs, display.event) as launcher:
        async with display.showing():
            complete = await driver.run(ledger, launcher, logs, folder)
        _tell(progress, console)
    return complete


def _tell(progress: StreamProgress, console: Console) -> None:
    lines = [
        f"{progress.total('recorded')} tasks recorded now, {progress.total('done_before')} before",
        f"{progress.ended} of {progress.streams} streams complete",
    ]
    if progress.stopped:
        lines.append(f"{progress.stopped} stopped by a failure; run the same command again to go on")
    console.print("; ".join(lines) + ".", markup=False, highlight=False, soft_wrap=True)
