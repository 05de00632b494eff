"""Static retrieval: the entries of a bank that are nearest to a query.

Vectors are made when they are first missed and kept in the store from then on, under an id that is derived
from bank and text. So a write needs no vector, a crash leaves none behind that is wrong, and an entry whose
text comes back has its vector already.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from policysweep.bank_text import entry_text
from policysweep.errors import EmbedderMismatch, InputError
from policysweep.v1 import policybank_pb2 as pb
from services.policybank.bank import Bank, State
from services.policybank.embedder import Embedder
from services.policybank.entries import vector_text
from services.policybank.identity import derived_id
from services.policybank.store import BankStore


def check_embedder(bank: Bank, ours: pb.Embedder) -> None:
    """Raises EmbedderMismatch when the bank was made with another embedder."""
    theirs = bank.info.embedder
    if theirs != ours:
        raise EmbedderMismatch(
            f"bank {bank.bank_id!r} was made with the embedder {theirs.name!r} ({theirs.dimension} numbers), "
            f"and this service has {ours.name!r} ({ours.dimension}): start it with the bank's embedder, or "
            "make a new bank"
        )


def all_items(state: State) -> list[pb.RecalledItem]:
    """All entries, sorted by capability id."""
    return [_item(entry) for entry in state.sorted_entries()]


class Recall:
    """Ranks entries by the similarity of a query to what they are about."""

    def __init__(self, store: BankStore, embedder: Embedder) -> None:
        self._store = store
        self._embedder = embedder

    async def nearest(
        self, bank: Bank, state: State, query: str, limit: int, seconds_left: Callable[[], float]
    ) -> list[pb.RecalledItem]:
        """At most `limit` entries, best first; those that are equally near are sorted by capability id."""
        check_embedder(bank, self._embedder.info)
        if not query.strip():
            raise InputError("Recall: query must not be empty: this method ranks by it")
        by_text: dict[str, list[pb.Entry]] = {}
        for entry in state.entries.values():
            by_text.setdefault(vector_text(entry), []).append(entry)
        if not by_text:
            return []
        by_id = {derived_id("vector", bank.bank_id, text): text for text in by_text}
        await self._fill(bank.bank_id, by_id, seconds_left)
        (vector,) = await self._embedder.embed([query], seconds_left())
        hits = await self._store.nearest(bank.bank_id, vector, list(by_id), limit)
        ranked = [
            (round(similarity, 6), entry)
            for identifier, similarity in hits
            for entry in by_text[by_id[identifier]]
        ]
        ranked.sort(key=lambda each: (-each[0], each[1].capability_id))
        # Stores compute with single precision, each in its own order: what is told is what they agree on.
        return [_item(entry, round(similarity, 4)) for similarity, entry in ranked[:limit]]

    async def _fill(self, bank_id: str, texts: Mapping[str, str], seconds_left: Callable[[], float]) -> None:
        missing: Sequence[str] = sorted(await self._store.missing_vectors(bank_id, list(texts)))
        if missing:
            vectors = await self._embedder.embed([texts[each] for each in missing], seconds_left())
            await self._store.save_vectors(bank_id, dict(zip(missing, vectors, strict=True)))


def _item(entry: pb.Entry, similarity: float | None = None) -> pb.RecalledItem:
    return pb.RecalledItem(capability_id=entry.capability_id, text=entry_text(entry), similarity=similarity)
