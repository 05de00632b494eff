"""`policysweep import`: turn what others recorded into a run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import click

from policysweep.errors import InputError
from policysweep.interop.dripr.conversation import MAX_TURNS
from policysweep.interop.importing import Batch, ImportedRun, Source, collect, plan_import, source, write
from policysweep.interop.spool import Spool
from policysweep.sweep.runs import prepare_run
from policysweep.sweep.spec_fields import run_name


@click.group(name="import")
def import_run() -> None:
    """Turn conversations that were played elsewhere into a run: verify, judge, report and show take it."""


@import_run.command(name="dripr")
@click.argument(
    "conversations", nargs=-1, required=True, type=click.Path(dir_okay=False, exists=True, path_type=Path)
)
@click.option("--store", required=True, help="Directory, s3://, gs:// or az:// URL that holds the runs.")
@click.option("--name", default="imported", show_default=True, help="Name of the run.")
@click.option(
    "--agent",
    "agents",
    multiple=True,
    help="Name of the agent under test; once for each file, in their order. "
    "By default the folder of a conversations.jsonl, the name of any other file.",
)
@click.option(
    "--max-turns",
    type=click.IntRange(min=1),
    default=MAX_TURNS,
    show_default=True,
    help="Limit that the conversations were played under, in replies of the customer.",
)
def import_dripr(
    conversations: tuple[Path, ...], store: str, name: str, agents: tuple[str, ...], max_turns: int
) -> None:
    """Import conversation records of the public DRIP-R code (JSON Lines), one agent a file.

    All lines are checked before anything is written. Importing the same files again completes an import
    that was interrupted, and changes nothing otherwise.
    """
    sources = _sources(conversations, agents)
    try:
        run_name(name)
    except ValueError as error:
        raise InputError(f"--name {error}") from error
    with Spool() as spool:
        batch = collect(sources, spool, max_turns)
        run = plan_import(batch, name, sources, max_turns)
        asyncio.run(_import(store, run, batch))


def _sources(paths: Sequence[Path], agents: Sequence[str]) -> list[Source]:
    if not agents:
        return [source(path) for path in paths]
    if len(agents) != len(paths):
        raise InputError(
            f"--agent is given {len(agents)} times for {len(paths)} files: once for each, or never"
        )
    return [source(path, agent) for path, agent in zip(paths, agents, strict=True)]


async def _import(store: str, run: ImportedRun, batch: Batch) -> None:
    ledger = await prepare_run(store, run.manifest.run)
    written = await write(ledger, batch, run)
    for note in written.notes:
        click.echo(note)
    before = len(run.units) - written.new
    dataset, agents = run.manifest.dataset, ", ".join(agent.name for agent in run.manifest.agents)
    click.echo(
        f"{written.new} conversations imported{f', {before} were there before' if before else ''}: "
        f"{dataset.scenarios} scenarios, {dataset.tasks} tasks, agents: {agents}"
    )
    if written.without_outcome:
        click.echo(f"{written.without_outcome} have no outcome: they are kept, and lower the coverage")
    click.echo(f"Run: {ledger.url}")
