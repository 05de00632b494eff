"""`policysweep report`: summarise a run as tables, as JSON and as a page."""

from __future__ import annotations

import asyncio

import click
from rich.console import Console

from policysweep.streams.ledger import StreamLedger
from policysweep.sweep.ledger import RunLedger
from policysweep.sweep.runs import open_any_run


@click.command()
@click.argument("run")
@click.option("--json", "as_json", is_flag=True, help="Print the JSON report and write nothing.")
def report(run: str, as_json: bool) -> None:
    """Summarise RUN: print the tables, and write report.json, report.html and report-data/ into its folder.

    RUN is the folder or prefix that holds manifest.json, or stream-manifest.json: the JSON report of a stream
    run is stream-report.json.
    """
    asyncio.run(_report(run, as_json))


async def _report(run: str, as_json: bool) -> None:
    ledger = await open_any_run(run)
    if as_json:
        click.echo((await _encoded(ledger)).decode())
        return
    await print_report(ledger, Console())


async def _encoded(ledger: RunLedger | StreamLedger) -> bytes:
    # The statistics packages take a second to import: only a report waits for them.
    from policysweep.report import reading
    from policysweep.report.streams import reading as stream_reading

    if isinstance(ledger, StreamLedger):
        return reading.encode_summary(await stream_reading.summary_of(ledger))
    return reading.encode_summary(await reading.summary_of(ledger))


async def print_report(ledger: RunLedger | StreamLedger, console: Console) -> None:
    """Write the reports of a run and print the tables."""
    from policysweep.report import reading, terminal
    from policysweep.report.html.write import PAGE
    from policysweep.report.streams import reading as stream_reading
    from policysweep.report.streams import terminal as stream_terminal

    if isinstance(ledger, StreamLedger):
        stream_terminal.render(await stream_reading.write_reports(ledger), console)
    else:
        terminal.render(await reading.write_reports(ledger), console)
    console.print(f"Report: {ledger.url}/{PAGE}", markup=False, highlight=False, soft_wrap=True)
