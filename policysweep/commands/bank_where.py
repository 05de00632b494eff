"""Where `policysweep bank` finds banks: in a service that runs, or in a folder, for which it starts one."""

from __future__ import annotations

import asyncio
import functools
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
from policysweep.commands.tls import tls_options
from policysweep.errors import InputError
from policysweep.launch import Launcher
from policysweep.rpc.client import Channels
from policysweep.rpc.tls import Credentials
from policysweep.sweep.model_spec import ModelSpec
from policysweep.sweep.services import service_flags, start_rehearsal
from policysweep.v1 import policybank_pb2 as pb

_QDRANT_FILE = "meta.json"
"""The embedded Qdrant keeps its list of collections in it."""

_NO_MODEL = ModelSpec(model="none", model_url="http://127.0.0.1:9/v1")
"""The curator of a service that is started for work that asks none."""

_MOST = 2**31 - 1

Function = TypeVar("Function", bound=Callable[..., Any])
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Where:
    """What --target and --store say: exactly one of them is given."""

    target: str | None
    store: Path | None
    credentials: Credentials | None

    def run(
        self,
        work: Callable[[BankClient], Coroutine[Any, Any, Result]],
        *,
        create: bool = False,
        curator: ModelSpec | None = None,
    ) -> Result:
        """The result of `work`, done with a client.

        `curator` is the model of a service that is started; without one it can ask none. Raises InputError
        for a folder that holds no store, unless it is one to `create`.
        """
        if self.store and not create and not (self.store / _QDRANT_FILE).is_file():
            raise InputError(
                f"{self.store} holds no policy banks: there is no {_QDRANT_FILE} of an embedded Qdrant"
            )
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            done = runner.run(interruptible(self._do(work, curator)))
        if done is None:
            raise SystemExit(EXIT_INTERRUPTED)
        return done

    async def _do(
        self, work: Callable[[BankClient], Coroutine[Any, Any, Result]], curator: ModelSpec | None
    ) -> Result:
        async with self._service(curator) as target, Channels(self.credentials) as channels:
            return await work(BankClient(channels, target))

    @asynccontextmanager
    async def _service(self, curator: ModelSpec | None) -> AsyncIterator[str]:
        if self.store is None:
            assert self.target is not None
            yield self.target
            return
        tls = self.credentials.files if self.credentials else None
        with tempfile.TemporaryDirectory() as logs:
            async with Launcher(Path(logs), lambda event: click.echo(event, err=True)) as launcher:
                model = curator or _NO_MODEL
                flags = service_flags(model, await start_rehearsal([model], launcher), tls)
                args = ["--store", str(self.store), *flags]
                yield await launcher.start("policybank", "services.policybank", args)


def where_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds --target, --store and the TLS options; the command gets them as `where`."""

    @functools.wraps(command)
    def with_where(
        *args: Any, target: str | None, store: Path | None, credentials: Credentials | None, **kwargs: Any
    ) -> None:
        if bool(target) == bool(store):
            raise InputError("give either --target HOST:PORT of a policybank service, or --store DIR")
        command(*args, where=Where(target, store, credentials), **kwargs)

    wrapped = tls_options(with_where)
    folder = click.Path(file_okay=False, path_type=Path)
    for option in (
        click.option("--store", type=folder, help="Folder of an embedded store that no service has open."),
        click.option("--target", metavar="HOST:PORT", help="Policybank service that runs."),
    ):
        wrapped = option(wrapped)
    return wrapped


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
