"""Policy banks over gRPC, for those who look after them: `policysweep bank`.

One call tells everything of a bank: an export is its history, its entries and its snapshots.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import grpc

from policysweep import errors
from policysweep.rpc import status
from policysweep.rpc.client import Channels
from policysweep.v1 import policybank_pb2 as pb
from policysweep.v1 import policybank_pb2_grpc

_SECONDS = 60
"""Deadline of a call that asks no model."""


@dataclass(frozen=True, slots=True)
class BankContents:
    """A bank at a revision: all that is known of it up to there."""

    bank_id: str
    revisions: Sequence[pb.Revision]
    """Oldest first, from revision 1; not empty."""
    entries: Mapping[str, pb.Entry]
    """By capability id, sorted."""
    snapshots: Sequence[pb.Snapshot]
    """Sorted by name."""

    @classmethod
    def of(cls, bank_id: str, records: Sequence[pb.BankRecord]) -> BankContents:
        """The contents that an export amounts to. Raises ServiceContractError when it has no revision."""
        revisions = [each.revision for each in records if each.HasField("revision")]
        if not revisions:
            raise errors.ServiceContractError(f"the export of bank {bank_id!r} has no revision")
        entries = {each.entry.capability_id: each.entry for each in records if each.HasField("entry")}
        snapshots = [each.snapshot for each in records if each.HasField("snapshot")]
        return cls(bank_id, revisions, entries, snapshots)

    @property
    def info(self) -> pb.BankInfo:
        """What the bank is."""
        return self.revisions[0].bank

    @property
    def revision(self) -> int:
        """The number of the last revision."""
        return self.revisions[-1].number

    @property
    def rehearsal(self) -> bool:
        """Whether the rehearsal model had a part in it."""
        return any(revision.rehearsal for revision in self.revisions)

    def records(self) -> Iterator[pb.BankRecord]:
        """The export again, in its order."""
        yield from (pb.BankRecord(revision=each) for each in self.revisions)
        yield from (pb.BankRecord(entry=each) for each in self.entries.values())
        yield from (pb.BankRecord(snapshot=each) for each in self.snapshots)


class BankClient:
    """The policy bank service at `target`. All methods raise what the service refuses with, and
    InfrastructureError when it cannot be reached. Nothing is tried twice.
    """

    def __init__(self, channels: Channels, target: str) -> None:
        self._target = target
        self._stub: policybank_pb2_grpc.PolicyBankServiceAsyncStub = (
            policybank_pb2_grpc.PolicyBankServiceStub(channels.get(target))
        )

    async def banks(self) -> list[pb.BankSummary]:
        """All banks, sorted by id."""
        found: list[pb.BankSummary] = []
        with self._told():
            while True:
                after = found[-1].bank_id if found else ""
                answer = await self._stub.ListBanks(
                    pb.ListBanksRequest(after_bank_id=after), timeout=_SECONDS
                )
                found += answer.banks
                if not answer.more:
                    return found

    async def read(self, ref: pb.BankRef) -> BankContents:
        """A bank at a revision."""
        with self._told():
            answers = self._stub.ExportBank(pb.ExportBankRequest(bank=ref), timeout=_SECONDS)
            return BankContents.of(ref.bank_id, [answer.record async for answer in answers])

    async def describe(self, bank_id: str) -> pb.GetBankResponse:
        """What a bank is and where it stands."""
        with self._told():
            return await self._stub.GetBank(pb.GetBankRequest(bank_id=bank_id), timeout=_SECONDS)

    async def create(self, request: pb.CreateBankRequest, seconds: float) -> pb.CreateBankResponse:
        """Make or fork a bank. The curator is asked, for as long as `seconds`."""
        with self._told():
            return await self._stub.CreateBank(request, timeout=seconds)

    async def restore(self, bank_id: str, records: Sequence[pb.BankRecord]) -> pb.ImportBankResponse:
        """Write a bank from an export. An export is taken whole or not at all."""
        requests = (pb.ImportBankRequest(bank_id=bank_id, record=record) for record in records)
        with self._told():
            return await self._stub.ImportBank(requests, timeout=_SECONDS)

    async def roll_back(self, bank_id: str, to: int, expected: int) -> pb.Revision:
        """Append the revision that restores revision `to`. RevisionConflict unless `expected` is the last."""
        request = pb.RollbackBankRequest(bank_id=bank_id, to_revision=to, expected_revision=expected)
        with self._told():
            return (await self._stub.RollbackBank(request, timeout=_SECONDS)).revision

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except grpc.aio.AioRpcError as error:
            raise status.error_from(error, status.POLICY_BANK, self._target) from error
