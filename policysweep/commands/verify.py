"""`policysweep verify`: prove that every planned unit of a run has exactly one record."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import click

from policysweep.sweep.runs import open_run
from policysweep.sweep.verify import VerifyResult, verify_run

_SHOWN = 20


@click.command()
@click.argument("run")
def verify(run: str) -> None:
    """Prove that every planned unit of RUN has exactly one record, and that nothing else is there.

    RUN is the folder or prefix that holds manifest.json. Exit code 0 when the proof holds, 1 when not.
    """
    result = asyncio.run(_verify(run))
    for note in result.notes:
        click.echo(f"note: {note}")
    _list("problem", result.problems)
    _list("missing", _described(result))
    click.echo(
        f"{result.recorded} of {result.planned} planned units have exactly one record"
        + ("." if result.ok else f"; {len(result.missing)} missing, {len(result.problems)} problems.")
    )
    raise SystemExit(0 if result.ok else 1)


async def _verify(run: str) -> VerifyResult:
    return await verify_run(await open_run(run))


def _described(result: VerifyResult) -> list[str]:
    failed = set(result.failed)
    return [f"unit {unit} {'failed' if unit in failed else 'was not run'}" for unit in result.missing]


def _list(kind: str, lines: Sequence[str]) -> None:
    for line in lines[:_SHOWN]:
        click.echo(f"{kind}: {line}")
    if len(lines) > _SHOWN:
        click.echo(f"{kind}: and {len(lines) - _SHOWN} more")
