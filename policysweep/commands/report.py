"""`policysweep report`: summarise a run as tables and as report.json."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import click
import orjson
from rich.console import Console

from policysweep.commands.compare import load_verdicts
from policysweep.interop.labels import read_labels
from policysweep.sweep.ledger import RunLedger
from policysweep.sweep.plan import planned_units
from policysweep.sweep.runs import open_run


@click.command()
@click.argument("run")
@click.option("--json", "as_json", is_flag=True, help="Print report.json instead of the tables.")
def report(run: str, as_json: bool) -> None:
    """Summarise RUN, print the tables, and keep report.json beside the records.

    RUN is the folder or prefix that holds manifest.json.
    """
    asyncio.run(_report(run, as_json))


async def _report(run: str, as_json: bool) -> None:
    ledger = await open_run(run)
    if as_json:
        click.echo(_encoded(await summary_of(ledger)).decode())
        return
    await print_report(ledger, Console())


async def print_report(ledger: RunLedger, console: Console) -> None:
    """Summarise a run, print the tables, and keep report.json beside the records."""
    from policysweep.report.terminal import render

    summary = await summary_of(ledger)
    url = await ledger.write_report("report.json", _encoded(summary))
    render(summary, console)
    console.print(f"Report: {url}", markup=False, highlight=False, soft_wrap=True)


async def summary_of(ledger: RunLedger) -> dict[str, Any]:
    """The content of report.json: one pass over the records."""
    # The statistics packages take a second to import: only a report waits for them.
    from policysweep.report.rows import row
    from policysweep.report.summary import summarise

    manifest, inputs = await ledger.read_manifest(), await ledger.read_inputs()
    return summarise(
        [row(record) async for record in ledger.read_records()],
        Counter(unit.agent for unit in planned_units(manifest, inputs)),
        [failure async for failure in ledger.read_failures()],
        manifest,
        verdicts=await load_verdicts(ledger),
        labels=await read_labels(ledger),
        scenarios=inputs.scenarios,
    )


def _encoded(summary: dict[str, Any]) -> bytes:
    return orjson.dumps(summary, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
