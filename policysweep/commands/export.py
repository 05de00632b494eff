"""`policysweep export`: write a run into the files of others."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import click

from policysweep.interop.exporting import FORMATS, Exported, export_run
from policysweep.sweep.runs import open_run


@click.command()
@click.argument("run")
@click.option(
    "--format",
    "kind",
    required=True,
    type=click.Choice(FORMATS),
    help="dripr: the public DRIP-R code's files; jsonl: all of it as protobuf JSON; parquet: flat tables.",
)
@click.option(
    "--output",
    required=True,
    type=click.Path(path_type=Path),
    help="Folder to write; it is there in full or not at all.",
)
@click.option("--force", is_flag=True, help="Replace files of the same names in a folder that is not empty.")
def export(run: str, kind: str, output: Path, force: bool) -> None:
    """Write RUN, its conversations and the verdicts on them, into the folder OUTPUT.

    RUN is the folder or prefix that holds manifest.json.
    """
    done = asyncio.run(_export(run, kind, output, force))
    click.echo(f"{done.units} units and {done.verdicts} verdicts exported: {output}")
    if done.missing:
        click.echo(f"{done.missing} planned units have no record and are not in it")
    if done.orphans:
        click.echo(f"{done.orphans} verdicts on units without record are not in it")
    if done.rehearsal:
        click.echo("REHEARSAL: a model without weights took part. No figure here is a finding.")


async def _export(run: str, kind: str, output: Path, force: bool) -> Exported:
    ledger = await open_run(run)
    async with contextlib.aclosing(ledger.read_verdicts()) as verdicts:
        return await export_run(ledger, verdicts, kind, output, force=force)
