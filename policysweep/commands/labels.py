"""`policysweep labels`: scores that people gave, beside the records of a run."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from policysweep.interop.label_reader import metrics_of
from policysweep.interop.labels import LabelImport, count_labels, import_labels, read_labels
from policysweep.sweep.runs import open_run
from policysweep.v1 import run_pb2


@click.group()
def labels() -> None:
    """Scores that people gave to conversations of a run, to hold judges against."""


@labels.command(name="import")
@click.argument("file", type=click.Path(dir_okay=False, exists=True, path_type=Path))
@click.option("--run", required=True, help="Folder or prefix that holds manifest.json.")
def import_command(file: Path, run: str) -> None:
    """Check the labels in FILE (.csv or .jsonl) and keep them with the run; docs/interop.md has the format.

    Everything that is wrong with the file is listed, and then nothing is kept. Importing a file again changes
    nothing.
    """
    done = asyncio.run(_import(run, file))
    click.echo(f"{done.labels} labels {'imported' if done.new else 'were there before'}: {done.name}")


async def _import(run: str, file: Path) -> LabelImport:
    ledger = await open_run(run)
    judging = await ledger.verdicts.read_judging()
    return await import_labels(ledger, file, metrics_of(judging.rubric) if judging else None)


@labels.command(name="list")
@click.argument("run")
def list_command(run: str) -> None:
    """Count the labels of RUN by metric and annotator."""
    found = asyncio.run(_read(run))
    if not found:
        click.echo("no labels: import some with `policysweep labels import FILE --run RUN`")
        return
    counts = count_labels(found)
    width = max(len(metric) for metric, _ in counts)
    for (metric, annotator), count in counts.items():
        click.echo(f"{metric:{width}}  {count:6}  {annotator}")
    units = len({label.unit_id for label in found})
    click.echo(f"{len(found)} labels on {units} units by {len({name for _, name in counts})} annotators")


async def _read(run: str) -> list[run_pb2.HumanLabel]:
    return await read_labels(await open_run(run))
