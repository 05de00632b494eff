"""`policysweep stream`: run streams of tasks with memories that learn, or go on with them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click
import uvloop
from rich.console import Console

from policysweep import telemetry
from policysweep.commands.interrupt import EXIT_INTERRUPTED, interruptible
from policysweep.commands.run import EXIT_INCOMPLETE
from policysweep.commands.tls import tls_options
from policysweep.launch import Launcher
from policysweep.process import calm_collector
from policysweep.rpc.tls import Credentials
from policysweep.streams.driver import StreamDriver
from policysweep.streams.ledger import StreamLedger
from policysweep.streams.runner import StreamProgress
from policysweep.streams.selection import load_played
from policysweep.streams.spec import StreamSpec, load_spec
from policysweep.sweep.display import Display
from policysweep.sweep.driver import local_folder, logs_folder
from policysweep.sweep.plan import Shard, parse_shard
from policysweep.sweep.runs import prepare_stream_run


@click.command()
@click.argument("streams", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--store", required=True, help="Directory, s3://, gs:// or az:// URL that holds the runs.")
@click.option("--shard", default="0/1", show_default=True, help="Run part i of N, counted from 0.")
@click.option("--report/--no-report", default=True, help="Print the report at the end.")
@click.option("--metrics-listen", default="", help="HOST:PORT to serve the driver's Prometheus metrics on.")
@click.option("--log-level", default="warning", show_default=True, help="debug, info, warning or error.")
@tls_options
def stream(
    streams: Path,
    store: str,
    shard: str,
    report: bool,
    metrics_listen: str,
    log_level: str,
    credentials: Credentials | None,
) -> None:
    """Run the stream file STREAMS, or go on with it where an earlier run stopped.

    Exit code 0 when every task of the shard has a record, 1 when some have none, 2 for bad input, 130
    after Ctrl-C. Running the same command again plays exactly what is missing, and no bank learns twice.
    """
    import os

    telemetry.configure_logging(log_level)
    spec = load_spec(streams)
    spec.check_environment(os.environ)
    telemetry.serve_metrics(metrics_listen, "driver")
    part = parse_shard(shard)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        raise SystemExit(runner.run(_run(spec, store, part, report, credentials, Console())))


async def _run(
    spec: StreamSpec,
    store: str,
    shard: Shard,
    report: bool,
    credentials: Credentials | None,
    console: Console,
) -> int:
    played = load_played(spec)
    calm_collector()  # after tau2-bench was imported
    ledger = await prepare_stream_run(store, spec.name)
    driver = StreamDriver(spec, played, shard, credentials=credentials)
    logs, folder = logs_folder(store, spec.name), local_folder(store, spec.name)
    complete = await interruptible(_drive(driver, ledger, logs, folder, console))
    if complete is None:
        recorded = driver.progress.total("recorded")
        console.print(
            f"Interrupted: {recorded} tasks recorded now. Run the same command again to go on.",
            highlight=False,
        )
        return EXIT_INTERRUPTED
    if report:
        await _report(ledger, console)
    console.print(f"Run: {ledger.url}\nLogs: {logs}", markup=False, highlight=False, soft_wrap=True)
    return 0 if complete else EXIT_INCOMPLETE


async def _drive(
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
        _conclude(progress, console)
    return complete


async def _report(ledger: StreamLedger, console: Console) -> None:
    from policysweep.commands.report import print_report

    await print_report(ledger, console)


def _conclude(progress: StreamProgress, console: Console) -> None:
    lines = [
        f"{progress.total('recorded')} tasks recorded now, {progress.total('done_before')} before",
        f"{progress.ended} of {progress.streams} streams complete",
    ]
    if progress.stopped:
        lines.append(f"{progress.stopped} stopped by a failure; run the same command again to go on")
    console.print("; ".join(lines) + ".", markup=False, highlight=False, soft_wrap=True)
