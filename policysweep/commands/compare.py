"""`policysweep compare`: two runs of one data set against each other."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

import click
import orjson
from rich.console import Console

from policysweep.errors import InputError
from policysweep.sweep.ledger import RunLedger
from policysweep.sweep.manifest import describe_changes
from policysweep.sweep.plan import planned_units
from policysweep.sweep.runs import open_run
from policysweep.v1 import run_pb2

if TYPE_CHECKING:
    from policysweep.report.comparison import Run


@click.command()
@click.argument("run_a")
@click.argument("run_b")
@click.option("--agent-a", help="Agent of RUN_A to compare with --agent-b; each with its namesake otherwise.")
@click.option("--agent-b", help="Agent of RUN_B to compare with --agent-a.")
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON instead of tables.")
def compare(run_a: str, run_b: str, agent_a: str | None, agent_b: str | None, as_json: bool) -> None:
    """Compare RUN_B with RUN_A over the conversations that both have.

    Both are folders or prefixes that hold a manifest.json, and both must have played the same data set. Every
    difference is RUN_B minus RUN_A. RUN_A and RUN_B may be the same run, to compare two of its agents.
    """
    pairs = _pairs(agent_a, agent_b)
    comparison = asyncio.run(_compare(run_a, run_b, pairs))
    if as_json:
        click.echo(orjson.dumps(comparison, option=orjson.OPT_INDENT_2).decode())
        return
    from policysweep.report.terminal_comparison import render_comparison

    render_comparison(comparison, Console())


def _pairs(agent_a: str | None, agent_b: str | None) -> list[tuple[str, str]]:
    if agent_a is None and agent_b is None:
        return []
    if agent_a is None or agent_b is None:
        missing = "--agent-a" if agent_a is None else "--agent-b"
        raise InputError(f"{missing} is missing: name an agent of each run, or neither")
    return [(agent_a, agent_b)]


async def _compare(run_a: str, run_b: str, pairs: list[tuple[str, str]]) -> dict[str, Any]:
    # The statistics packages take a second to import: only a report waits for them.
    from policysweep.report.comparison import compare_runs

    first, second = [await load_run(await open_run(url)) for url in (run_a, run_b)]
    return compare_runs(first, second, pairs, changes=_changes(first.manifest, second.manifest))


async def load_run(ledger: RunLedger) -> Run:
    """What a comparison needs of a run: one pass over its records."""
    from policysweep.report.comparison import Run
    from policysweep.report.reading import load_verdicts
    from policysweep.report.rows import row

    manifest, inputs = await ledger.read_manifest(), await ledger.read_inputs()
    planned = Counter(unit.agent for unit in planned_units(manifest, inputs))
    rows = [row(record) async for record in ledger.read_records()]
    return Run(manifest, rows, planned, await load_verdicts(ledger))


def _changes(first: run_pb2.RunManifest, second: run_pb2.RunManifest) -> list[str]:
    """What else differs: the names of the runs say nothing."""
    renamed = run_pb2.RunManifest()
    renamed.CopyFrom(second)
    renamed.run = first.run
    return describe_changes(first, renamed)
