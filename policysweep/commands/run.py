"""`policysweep run`: run a sweep, or go on with one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click
import uvloop
from rich.console import Console

from policysweep import telemetry
from policysweep.commands.interrupt import EXIT_INTERRUPTED, interruptible
from policysweep.commands.judge import judge_run
from policysweep.commands.report import print_report
from policysweep.commands.tls import tls_options
from policysweep.launch import Launcher
from policysweep.process import calm_collector
from policysweep.rpc.tls import Credentials
from policysweep.sweep.display import Display
from policysweep.sweep.driver import Driver, Outcome, load_inputs, logs_folder, runner_settings
from policysweep.sweep.ledger import RunLedger
from policysweep.sweep.plan import Shard, parse_shard
from policysweep.sweep.runs import prepare_run
from policysweep.sweep.spec import SweepSpec, load_spec
from policysweep.sweep.spec_fields import parse_rubric

EXIT_INCOMPLETE = 1
"""Exit code when units are left without a record."""


@click.command()
@click.argument("sweep", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--store", required=True, help="Directory, s3://, gs:// or az:// URL that holds the runs.")
@click.option("--shard", default="0/1", show_default=True, help="Run part i of N, counted from 0.")
@click.option("--report/--no-report", default=True, help="Print the report at the end.")
@click.option("--metrics-listen", default="", help="HOST:PORT to serve the driver's Prometheus metrics on.")
@click.option("--log-level", default="warning", show_default=True, help="debug, info, warning or error.")
@tls_options
def run(
    sweep: Path,
    store: str,
    shard: str,
    report: bool,
    metrics_listen: str,
    log_level: str,
    credentials: Credentials | None,
) -> None:
    """Run the sweep file SWEEP, or go on with it where an earlier run stopped.

    Exit code 0 when every unit of the shard has a record, 1 when some have none, 2 for bad input, 130
    after Ctrl-C. Running the same command again runs exactly what is missing.
    """
    import os

    telemetry.configure_logging(log_level)
    spec = load_spec(sweep)
    spec.check_environment(os.environ)
    telemetry.serve_metrics(metrics_listen, "driver")
    calm_collector()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        raise SystemExit(runner.run(_run(spec, store, parse_shard(shard), report, credentials, Console())))


async def _run(
    spec: SweepSpec, store: str, shard: Shard, report: bool, credentials: Credentials | None, console: Console
) -> int:
    played = load_inputs(spec)
    ledger = await prepare_run(store, spec.name)
    driver = Driver(spec, played, shard, credentials=credentials)
    logs = logs_folder(store, spec.name)
    complete = await interruptible(_drive(driver, spec, ledger, shard, logs, credentials, console))
    if complete is None:
        recorded = driver.progress.total("recorded")
        console.print(
            f"Interrupted: {recorded} units recorded now. Run the same command again to go on.",
            highlight=False,
        )
        return EXIT_INTERRUPTED
    if report:
        await print_report(ledger, console)
    console.print(f"Run: {ledger.url}\nLogs: {logs}", markup=False, highlight=False, soft_wrap=True)
    return 0 if complete else EXIT_INCOMPLETE


async def _drive(
    driver: Driver,
    spec: SweepSpec,
    ledger: RunLedger,
    shard: Shard,
    logs: Path,
    credentials: Credentials | None,
    console: Console,
) -> bool:
    """Play, then judge; whether every unit has its record and its verdicts."""
    display = Display(driver.progress, console)
    driver.on_event = display.event
    async with Launcher(logs, display.event) as launcher:
        async with display.showing():
            outcome = await driver.run(ledger, launcher)
        _conclude(outcome, console)
        if not spec.judges:
            return outcome.complete
        judged = await judge_run(
            ledger,
            driver.scenarios,
            driver.judges,
            parse_rubric(spec.rubric),
            runner_settings(spec),
            console,
            shard=shard,
            credentials=credentials,
        )
        return outcome.complete and judged


def _conclude(outcome: Outcome, console: Console) -> None:
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
