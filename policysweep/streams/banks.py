"""The banks of a run, as its driver writes them: made once, forked for each stream, put back on a resume.

A stream stands where its last record says. Whatever its bank holds beyond that was learnt from a task that
has no record: it is rolled back, which takes the request along, and learnt again from the task as it is
played now. So no lesson stands twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import grpc

from policysweep import errors
from policysweep.rpc import status
from policysweep.rpc.client import Channels
from policysweep.streams.ledger import StreamLedger
from policysweep.streams.plan import bank_id, initial_bank_id, method_name
from policysweep.streams.selection import first_bank
from policysweep.v1 import policybank_pb2 as pb
from policysweep.v1 import policybank_pb2_grpc, stream_pb2

_SECONDS = 60.0
"""Deadline of a call that asks no model."""

Answer = TypeVar("Answer")


class RunBanks:
    """The banks of one run at one bank service. Every method raises the error that the service raised."""

    def __init__(
        self,
        target: str,
        channels: Channels,
        manifest: stream_pb2.StreamManifest,
        ledger: StreamLedger,
        curator_seconds: float,
    ) -> None:
        """`curator_seconds` is the deadline of calls that ask the curator."""
        self._target = target
        self._stub: policybank_pb2_grpc.PolicyBankServiceAsyncStub = (
            policybank_pb2_grpc.PolicyBankServiceStub(channels.get(target))
        )
        self._manifest = manifest
        self._ledger = ledger
        self._curator_seconds = curator_seconds
        self._made: dict[str, asyncio.Lock] = {}
        self._ready: set[str] = set()

    async def enter(self, stream: stream_pb2.Stream, last: stream_pb2.StreamRecord | None) -> int:
        """Make the stream's bank stand where its `last` record says; gives the revision that it has then.

        Raises InputError when the bank is not the one that the records were made with.
        """
        stands = 1 if last is None else last.bank_revision_after
        bank = bank_id(self._manifest, stream)
        if last is None:
            await self._fork(stream, bank)
        try:
            found = await self._call(self._stub.GetBank(pb.GetBankRequest(bank_id=bank), timeout=_SECONDS))
        except errors.BankNotFound as error:
            raise errors.InputError(
                f"bank {bank!r}, which a stream goes on with, is not at the bank service {self._target}: "
                "point it to the store that the run was begun with, or bring the bank back with "
                "policysweep bank import"
            ) from error
        if found.revision < stands:
            raise errors.InputError(
                f"bank {bank!r} stands at revision {found.revision}, but the last record of its stream at "
                f"{stands}: it is not the bank that the records were made with, or it lost revisions"
            )
        return (
            found.revision if found.revision == stands else await self._put_back(bank, stands, found.revision)
        )

    async def _fork(self, stream: stream_pb2.Stream, bank: str) -> None:
        first = initial_bank_id(self._manifest, stream)
        async with self._made.setdefault(first, asyncio.Lock()):
            if first not in self._ready:
                await self._make(stream, first)
                self._ready.add(first)
        request = pb.CreateBankRequest(bank_id=bank, fork_of=pb.BankRef(bank_id=first, revision=1))
        await self._call(self._stub.CreateBank(request, timeout=_SECONDS))

    async def _make(self, stream: stream_pb2.Stream, first: str) -> None:
        """The bank that all streams of a domain and method begin with; the folder keeps its entries."""
        request = await asyncio.to_thread(first_bank, stream.domain, stream.method, first)
        answer = await self._call(self._stub.CreateBank(request, timeout=self._curator_seconds))
        await self._ledger.keep_initial_bank(stream, answer.revision)
        if await self._ledger.read_initial_bank(stream) != answer.revision:
            raise errors.InputError(
                f"bank {first!r} is not the one that the streams of {stream.domain} and "
                f"{method_name(stream.method)} began with: point the bank service {self._target} to the "
                "store that the run was begun with, or begin a new run"
            )

    async def _put_back(self, bank: str, to: int, latest: int) -> int:
        request = pb.RollbackBankRequest(
            bank_id=bank, to_revision=to, expected_revision=latest, request_id=f"{bank}-{latest}-back-to-{to}"
        )
        answer = await self._call(self._stub.RollbackBank(request, timeout=_SECONDS))
        return answer.revision.number

    async def learn(self, request: pb.RecordFeedbackRequest) -> pb.Revision:
        """The revision that a feedback leads to."""
        answer = await self._call(self._stub.RecordFeedback(request, timeout=self._curator_seconds))
        return answer.revision

    async def _call(self, call: Awaitable[Answer]) -> Answer:
        with _told(self._target):
            return await call


async def bank_service_info(target: str, channels: Channels) -> pb.BankServiceInfo:
    """What a bank service says of itself. Raises the error that it raised."""
    stub: policybank_pb2_grpc.PolicyBankServiceAsyncStub = policybank_pb2_grpc.PolicyBankServiceStub(
        channels.get(target)
    )
    with _told(target):
        return (await stub.GetBankServiceInfo(pb.GetBankServiceInfoRequest(), timeout=_SECONDS)).info


@contextmanager
def _told(target: str) -> Iterator[None]:
    try:
        yield
    except grpc.aio.AioRpcError as error:
        raise status.error_from(error, status.POLICY_BANK, target) from error
