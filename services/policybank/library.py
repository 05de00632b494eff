"""Banks as the service holds them: read from the store at first use, and kept as long as there is room.

A store that other processes write to is asked for news on each read, which is one look-up by id. A read that
names a revision which is held already asks nobody: what was appended does not change.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from weakref import WeakValueDictionary

from policysweep import telemetry
from policysweep.errors import BankNotFound, RevisionConflict, StoreError
from policysweep.v1 import policybank_pb2 as pb
from services.policybank.bank import Bank, InconsistentHistory
from services.policybank.store import BankStore


class Library:
    """The banks of a store. At most `size` are kept in memory."""

    def __init__(self, store: BankStore, size: int) -> None:
        self._store = store
        self._size = size
        self._held: OrderedDict[str, Bank] = OrderedDict()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def writing(self, bank_id: str) -> asyncio.Lock:
        """The lock to hold from reading a bank until appending to it. Other banks are not waited for."""
        lock = self._locks.get(bank_id)
        if lock is None:
            lock = self._locks[bank_id] = asyncio.Lock()
        return lock

    async def find(self, bank_id: str, known: int | None = None) -> Bank | None:
        """The bank as it is now, or at least up to revision `known`; None when there is none."""
        held = self._held.get(bank_id)
        if held is None:
            revisions = await self._store.history(bank_id)
            return self._keep(_sound(bank_id, lambda: Bank.of(bank_id, revisions))) if revisions else None
        settled = known is not None and known <= held.latest.number
        if self._store.shared and not settled:
            held = await self._up_to_date(held)
        return self._keep(held)

    async def _up_to_date(self, bank: Bank) -> Bank:
        news = await self._store.history(bank.bank_id, after=bank.latest.number)
        # Another call may have read the same news, or appended, in the meantime.
        latest = self._held.get(bank.bank_id, bank)
        fresh = [revision for revision in news if revision.number > latest.latest.number]
        return _sound(bank.bank_id, lambda: latest.extended(fresh))

    async def read(self, bank_id: str, known: int | None = None) -> Bank:
        """As `find`; raises BankNotFound when there is none."""
        bank = await self.find(bank_id, known)
        if bank is None:
            raise BankNotFound(f"there is no bank {bank_id!r}: create it first")
        return bank

    async def append(self, bank_id: str, revisions: Sequence[pb.Revision]) -> Bank:
        """Write revisions, which follow on the bank as it was read under the lock, and give what it is then.

        Raises RevisionConflict when another process wrote first. Once it has begun it goes on even if the
        caller gives up, so that memory and store do not part.
        """
        return await asyncio.shield(asyncio.ensure_future(self._append(bank_id, revisions)))

    async def _append(self, bank_id: str, revisions: Sequence[pb.Revision]) -> Bank:
        held, number = self._held.get(bank_id), revisions[0].number
        following = number == 1 if held is None else number == held.latest.number + 1
        if not following or not await self._store.append(bank_id, revisions):
            self._held.pop(bank_id, None)
            raise RevisionConflict(
                f"revision {number} of bank {bank_id!r} was written by another request: read the bank again"
            )
        for revision in revisions:
            telemetry.BANK_REVISIONS.labels(telemetry.enum_label(pb.RevisionKind, revision.kind)).inc()
        return self._keep(held.extended(revisions) if held is not None else Bank.of(bank_id, revisions))

    def _keep(self, bank: Bank) -> Bank:
        # A read that began before an append may end after it.
        held = self._held.get(bank.bank_id)
        if held is not None and held.latest.number > bank.latest.number:
            bank = held
        self._held[bank.bank_id] = bank
        self._held.move_to_end(bank.bank_id)
        while len(self._held) > self._size:
            self._held.popitem(last=False)
        return bank


def _sound(bank_id: str, made: Callable[[], Bank]) -> Bank:
    """What was made of a history that the store gave."""
    try:
        return made()
    except InconsistentHistory as error:
        raise StoreError(f"the history of bank {bank_id!r} in the store is damaged: {error}") from error
