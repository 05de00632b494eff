"""`policysweep verify`: prove that every planned unit of a run has exactly one record, and its verdicts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import click

from policysweep.sweep.runs import open_run
from policysweep.sweep.verify import VerifyResult, verify_run
from policysweep.sweep.verify_verdicts import VerdictsResult

_SHOWN = 20


@click.command()
@click.argument("run")
@click.option("--verdicts", is_flag=True, help="Fail when the run was not judged, or a verdict is missing.")
def verify(run: str, verdicts: bool) -> None:
    """Prove that every planned unit of RUN has exactly one record, and that nothing else is there.

    RUN is the folder or prefix that holds manifest.json. Of a run that was judged, the verdicts that count
    must be sound, and those missing are named. Exit code 0 when the proof holds, 1 when not.
    """
    result = asyncio.run(_verify(run))
    for note in result.notes:
        click.echo(f"note: {note}")
    judged = result.verdicts
    problems = [*result.problems, *(judged.problems if judged else ())]
    _list("problem", problems)
    _list("missing", _described(result))
    if judged:
        _list("missing", _described_verdicts(judged))
        click.echo(f"{judged.found} of {judged.expected} verdicts that count are there.")
    elif verdicts:
        click.echo("The run was never judged.")
    click.echo(
        f"{result.recorded} of {result.planned} planned units have exactly one record"
        + ("." if result.ok else f"; {len(result.missing)} missing, {len(problems)} problems.")
    )
    raise SystemExit(0 if result.ok and (result.judged or not verdicts) else 1)


async def _verify(run: str) -> VerifyResult:
    return await verify_run(await open_run(run))


def _described(result: VerifyResult) -> list[str]:
    failed = set(result.failed)
    return [f"unit {unit} {'failed' if unit in failed else 'was not run'}" for unit in result.missing]


def _described_verdicts(result: VerdictsResult) -> list[str]:
    return [
        f"verdicts of judge {judge} on panel {panel}: {len(units)}, the first of unit {units[0]}"
        for (judge, panel), units in result.missing.items()
    ]


def _list(kind: str, lines: Sequence[str]) -> None:
    for line in lines[:_SHOWN]:
        click.echo(f"{kind}: {line}")
    if len(lines) > _SHOWN:
        click.echo(f"{kind}: and {len(lines) - _SHOWN} more")
