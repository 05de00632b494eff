"""Where `policysweep bank` finds banks: in a service that runs, or in a folder, for which it starts one."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click
import uvloop

from policysweep.bank_client import BankClient
from policysweep.commands.interrupt import EXIT_INTERRUPTED, interruptible
from policysweep.errors import InputError
from policysweep.launch import Launcher
from policysweep.rpc.client import Channels
from policysweep.v1 import policybank_pb2 as pb

_QDRANT_FILE = "meta.json"
"""The embedded Qdrant keeps its list of collections in it."""

# Nothing that these commands do asks the curator's model.
_NO_MODEL = ("--model-url", "http://127.0.0.1:9/v1", "--model", "none")

_MOST = 2**31 - 1

Function = TypeVar("Function", bound=Callable[..., Any])
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Where:
    """What --target and --store say."""

    target: str | None
    store: Path | None

    @classmethod
    def of(cls, target: str | None, store: Path | None, *, create: bool = False) -> Where:
        """Raises InputError unless exactly one is given, and the folder, unless `create`, holds a store."""
        if bool(target) == bool(store):
            raise InputError("give either --target HOST:PORT of a policybank service, or --store DIR")
        if store and not create and not (store / _QDRANT_FILE).is_file():
            raise InputError(
                f"{store} holds no policy banks: there is no {_QDRANT_FILE} of an embedded Qdrant"
            )
        return cls(target, store)

    def run(self, work: Callable[[BankClient], Coroutine[Any, Any, Result]]) -> Result:
        """The result of `work`, done with a client."""
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            done = runner.run(interruptible(self._do(work)))
        if done is None:
            raise SystemExit(EXIT_INTERRUPTED)
        return done

    async def _do(self, work: Callable[[BankClient], Coroutine[Any, Any, Result]]) -> Result:
        async with self._service() as target, Channels() as channels:
            return await work(BankClient(channels, target))

    @asynccontextmanager
    async def _service(self) -> AsyncIterator[str]:
        if self.target:
            yield self.target
            return
        assert self.store is not None
        with tempfile.TemporaryDirectory() as logs:
            async with Launcher(Path(logs), lambda event: click.echo(event, err=True)) as launcher:
                args = ("--store", str(self.store), *_NO_MODEL)
                yield await launcher.start("policybank", "services.policybank", args)


def where_options(function: Function) -> Function:
    """--target and --store."""
    folder = click.Path(file_okay=False, path_type=Path)
    for option in (
        click.option("--store", type=folder, help="Folder of an embedded store that no service has open."),
        click.option("--target", metavar="HOST:PORT", help="Policybank service that runs."),
    ):
        function = option(function)
    return function


def when_options(function: Function) -> Function:
    """--revision and --snapshot."""
    for option in (
        click.option("--snapshot", metavar="NAME", help="The bank as this snapshot names it."),
        click.option("--revision", type=click.IntRange(min=1), help="The bank at this revision."),
    ):
        function = option(function)
    return function


def ref_of(bank_id: str, revision: int | None = None, snapshot: str | None = None) -> pb.BankRef:
    """A bank at what --revision or --snapshot say. Raises InputError when both do."""
    if revision is not None and snapshot:
        raise InputError("give --revision or --snapshot, not both")
    if revision is not None and revision > _MOST:
        raise InputError(f"bank {bank_id!r} has no revision {revision}")
    return pb.BankRef(bank_id=bank_id, revision=revision, snapshot=snapshot or "")


def named(bank_id: str, name: str) -> pb.BankRef:
    """A bank at a revision, by its number or by the name of a snapshot."""
    return ref_of(bank_id, int(name)) if name.isdecimal() else ref_of(bank_id, snapshot=name)
