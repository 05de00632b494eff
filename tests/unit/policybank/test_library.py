"""The library: what it keeps, whom it asks, and what becomes of writers that are given up or outrun."""

from __future__ import annotations

import asyncio

import pytest

from policysweep.errors import BankNotFound, RevisionConflict, StoreError
from policysweep.v1 import policybank_pb2 as pb
from services.policybank.library import Library
from services.policybank.store import MemoryStore

FIRST = pb.Revision(number=1, kind=pb.REVISION_KIND_CREATE)


def omitted(number: int, rationale: str = "") -> pb.Revision:
    return pb.Revision(number=number, kind=pb.REVISION_KIND_OMIT, rationale=rationale)


class Counted(MemoryStore):
    """Counts the reads, and holds a write back until it is let go."""

    def __init__(self, *, shared: bool = False) -> None:
        super().__init__()
        self.shared = shared
        self.reads = 0
        self.gate = asyncio.Event()
        self.gate.set()

    async def history(self, bank_id: str, after: int = 0) -> list[pb.Revision]:
        self.reads += 1
        return await super().history(bank_id, after)

    async def append(self, bank_id: str, revisions: object) -> bool:
        await self.gate.wait()
        return await super().append(bank_id, revisions)  # type: ignore[arg-type]  # handed on as it came


async def test_a_store_of_our_own_is_read_once() -> None:
    store = Counted()
    await store.append("b", [FIRST])
    library = Library(store, 4)
    for _ in range(3):
        assert (await library.read("b")).latest.number == 1
    assert store.reads == 1


async def test_a_shared_store_is_asked_for_news_unless_the_revision_is_known() -> None:
    store = Counted(shared=True)
    await store.append("b", [FIRST])
    library = Library(store, 4)
    await library.read("b")
    await store.append("b", [omitted(2)])
    assert (await library.read("b", known=1)).latest.number == 1
    assert store.reads == 1
    assert (await library.read("b", known=2)).latest.number == 2
    assert (await library.read("b")).latest.number == 2


async def test_only_the_banks_used_last_are_kept() -> None:
    store = Counted()
    for name in "abc":
        await store.append(name, [FIRST])
    library = Library(store, 2)
    for name in "abacabc":
        await library.read(name)
    assert store.reads == 5


async def test_a_bank_that_is_not_there() -> None:
    library = Library(MemoryStore(), 2)
    assert await library.find("b") is None
    with pytest.raises(BankNotFound, match="no bank 'b': create it first"):
        await library.read("b")


async def test_a_caller_that_gives_up_does_not_part_memory_and_store() -> None:
    store = Counted()
    await store.append("b", [FIRST])
    library = Library(store, 2)
    await library.read("b")
    store.gate.clear()
    writer = asyncio.create_task(library.append("b", [omitted(2)]))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    writer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writer
    store.gate.set()
    await asyncio.sleep(0.01)
    assert (await library.read("b")).latest.number == 2
    with pytest.raises(RevisionConflict, match="revision 2 of bank 'b' was written by another request"):
        await library.append("b", [omitted(2, "late")])
    assert (await library.read("b")).latest.number == 2


async def test_a_damaged_history_is_a_fault_of_the_store() -> None:
    store = MemoryStore()
    await store.append("b", [omitted(1)])
    with pytest.raises(StoreError, match="the history of bank 'b' in the store is damaged: revision 1"):
        await Library(store, 2).read("b")
