"""`policysweep verify`: prove that every planned unit of a run has exactly one record, and more."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import click

from policysweep.commands.bank_where import Where
from policysweep.commands.tls import tls_options
from policysweep.errors import InputError
from policysweep.rpc.tls import Credentials
from policysweep.streams.ledger import StreamLedger
from policysweep.streams.verify import verify_streams
from policysweep.sweep.ledger import RunLedger
from policysweep.sweep.runs import open_any_run
from policysweep.sweep.verify import VerifyResult, verify_run
from policysweep.sweep.verify_verdicts import VerdictsResult

_SHOWN = 20


@click.command()
@click.argument("run")
@click.option("--verdicts", is_flag=True, help="Fail when the run was not judged, or a verdict is missing.")
@click.option(
    "--bank",
    metavar="HOST:PORT|DIR",
    help="Hold the banks of a stream run against its records as well: a policybank service that runs, or the "
    "folder of an embedded store.",
)
@tls_options
def verify(run: str, verdicts: bool, bank: str | None, credentials: Credentials | None) -> None:
    """Prove that every planned unit of RUN has exactly one record, and that nothing else is there.

    RUN is the folder or prefix that holds manifest.json or stream-manifest.json. Of a run that was judged,
    the verdicts that count must be sound, and those missing are named. Of a stream run, the revisions of each
    bank must follow on one another. Exit code 0 when the proof holds, 1 when not.
    """
    ledger = asyncio.run(open_any_run(run))
    if isinstance(ledger, StreamLedger):
        if verdicts:
            raise InputError(f"{run}: is a stream run, whose tasks are graded and not judged: no --verdicts")
        raise SystemExit(_verify_streams(ledger, _where(bank, credentials)))
    if bank is not None:
        raise InputError(f"{run}: is the run of a sweep, which has no banks: no --bank")
    raise SystemExit(_verify_sweep(ledger, verdicts))


def _verify_sweep(ledger: RunLedger, verdicts: bool) -> int:
    result = asyncio.run(verify_run(ledger))
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
    return 0 if result.ok and (result.judged or not verdicts) else 1


def _where(bank: str | None, credentials: Credentials | None) -> Where | None:
    if bank is None:
        return None
    return Where(None, Path(bank), credentials) if Path(bank).is_dir() else Where(bank, None, credentials)


def _verify_streams(ledger: StreamLedger, where: Where | None) -> int:
    if where is None:
        result = asyncio.run(verify_streams(ledger))
    else:
        result = where.run(lambda client: verify_streams(ledger, client))
    for note in result.notes:
        click.echo(f"note: {note}")
    failed = set(result.failed)
    _list("problem", result.problems)
    lost = [(task, "failed" if task in failed else "was not played") for task in result.missing]
    _list("missing", [f"task {task} {what}" for task, what in lost])
    click.echo(
        f"{result.recorded} of {result.planned} planned tasks have exactly one record"
        + ("." if result.ok else f"; {len(result.missing)} missing, {len(result.problems)} problems.")
        + f" They led to {result.lessons} revisions."
    )
    if result.banks is not None and result.ok:
        click.echo(f"{result.banks} banks hold exactly these revisions, each once.")
    return 0 if result.ok else 1


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
