"""`policysweep report`: summarise a run as tables, as report.json and as a page."""

from __future__ import annotations

import asyncio

import click
from rich.console import Console

from policysweep.sweep.ledger import RunLedger
from policysweep.sweep.runs import open_run


@click.command()
@click.argument("run")
@click.option("--json", "as_json", is_flag=True, help="Print report.json and write nothing.")
def report(run: str, as_json: bool) -> None:
    """Summarise RUN: print the tables, and write report.json, report.html and report-data/ into its folder.

    RUN is the folder or prefix that holds manifest.json.
    """
    asyncio.run(_report(run, as_json))


async def _report(run: str, as_json: bool) -> None:
    # The statistics packages take a second to import: only a report waits for them.
    from policysweep.report.reading import encode_summary, summary_of

    ledger = await open_run(run)
    if as_json:
        click.echo(encode_summary(await summary_of(ledger)).decode())
        return
    await print_report(ledger, Console())


async def print_report(ledger: RunLedger, console: Console) -> None:
    """Write the reports of a run and print the tables."""
    from policysweep.report.html.write import PAGE
    from policysweep.report.reading import write_reports
    from policysweep.report.terminal import render

    render(await write_reports(ledger), console)
    console.print(f"Report: {ledger.url}/{PAGE}", markup=False, highlight=False, soft_wrap=True)
