"""What the commands that drive a run have in common: options, logs and metrics, how they end."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import click
import uvloop
from rich.console import Console

from policysweep import telemetry
from policysweep.commands.interrupt import EXIT_INTERRUPTED
from policysweep.commands.tls import tls_options
from policysweep.rpc.tls import Credentials
from policysweep.streams.ledger import StreamLedger
from policysweep.sweep.ledger import RunLedger
from policysweep.sweep.plan import Shard, parse_shard

EXIT_INCOMPLETE = 1
"""Exit code when something planned is left without a record."""

_OPTIONS = (
    click.option("--store", required=True, help="Directory, s3://, gs:// or az:// URL that holds the runs."),
    click.option("--shard", default="0/1", show_default=True, help="Run part i of N, counted from 0."),
    click.option("--report/--no-report", default=True, help="Print the report at the end."),
    click.option(
        "--metrics-listen", default="", help="HOST:PORT to serve the driver's Prometheus metrics on."
    ),
    click.option("--log-level", default="warning", show_default=True, help="debug, info, warning or error."),
    tls_options,
)


@dataclass(frozen=True, slots=True)
class Drive:
    """What the options say."""

    store: str
    shard: Shard
    report: bool
    credentials: Credentials | None


def driving_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options; the command gets them as `drive`, logs as they say, and serves its metrics."""

    @functools.wraps(command)
    def driving(
        *args: Any,
        store: str,
        shard: str,
        report: bool,
        metrics_listen: str,
        log_level: str,
        credentials: Credentials | None,
        **kwargs: Any,
    ) -> None:
        telemetry.configure_logging(log_level)
        drive = Drive(store, parse_shard(shard), report, credentials)
        telemetry.serve_metrics(metrics_listen, "driver")
        command(*args, drive=drive, **kwargs)

    wrapped: Callable[..., None] = driving
    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped


def exit_with(work: Coroutine[Any, Any, int]) -> NoReturn:
    """Do the work on an event loop of its own and exit with its code."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        raise SystemExit(runner.run(work))


async def conclude(
    complete: bool | None,
    recorded: str,
    ledger: RunLedger | StreamLedger,
    logs: Path,
    drive: Drive,
    console: Console,
) -> int:
    """The exit code; prints the report, and where everything lies.

    `complete` is None after an interruption, and `recorded` says what there is, such as "3 units".
    """
    if complete is None:
        console.print(
            f"Interrupted: {recorded} recorded now. Run the same command again to go on.", highlight=False
        )
        return EXIT_INTERRUPTED
    if drive.report:
        from policysweep.commands.report import print_report

        await print_report(ledger, console)
    console.print(f"Run: {ledger.url}\nLogs: {logs}", markup=False, highlight=False, soft_wrap=True)
    return 0 if complete else EXIT_INCOMPLETE
