"""`policysweep export`: write a run into the files of others."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

import click

from policysweep.interop.exporting import FORMATS, Exported, export_run
from policysweep.interop.stream_export import ExportedStreams, export_streams
from policysweep.streams.ledger import StreamLedger
from policysweep.sweep.ledger import RunLedger
from policysweep.sweep.runs import open_any_run


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
    """Write RUN, its conversations and what they were found to be, into the folder OUTPUT.

    RUN is the folder or prefix that holds manifest.json, or stream-manifest.json: a stream run has the form
    jsonl alone.
    """
    done = asyncio.run(_export(run, kind, output, force))
    for line in _told(done):
        click.echo(line)
    click.echo(f"Written: {output}")
    if done.rehearsal:
        click.echo("REHEARSAL: a model without weights took part. No figure here is a finding.")


def _told(done: Exported | ExportedStreams) -> Iterator[str]:
    """What was exported, and what was not."""
    if isinstance(done, ExportedStreams):
        yield f"{done.records} tasks of streams exported"
        if done.missing:
            yield f"{done.missing} planned tasks have no record and are not in it"
        return
    yield f"{done.units} units and {done.verdicts} verdicts exported"
    if done.missing:
        yield f"{done.missing} planned units have no record and are not in it"
    if done.orphans:
        yield f"{done.orphans} verdicts on units without record are not in it"


async def _export(run: str, kind: str, output: Path, force: bool) -> Exported | ExportedStreams:
    ledger = await open_any_run(run)
    if isinstance(ledger, StreamLedger):
        return await export_streams(ledger, kind, output, force=force)
    return await _export_sweep(ledger, kind, output, force)


async def _export_sweep(ledger: RunLedger, kind: str, output: Path, force: bool) -> Exported:
    async with contextlib.aclosing(ledger.read_verdicts()) as verdicts:
        return await export_run(ledger, verdicts, kind, output, force=force)
