"""Where banks are kept: a store of histories, snapshots and vectors.

A history is a chain of records, one per write, keyed by the number of the first revision in it. Writing a
record is the commit: it is written whole where none is, or not at all, so that the first writer wins and a
process that dies leaves the bank as it was before or after. Nothing else has to be in step with it. Vectors
are derived: they are keyed by the text that they stand for, and whoever misses one makes it again.

    memory                     MemoryStore      this process; for tests
    DIRECTORY                  EmbeddedStore    Qdrant in this process, one process at a time
    http(s)://HOST:PORT        QdrantStore      a Qdrant server, any number of processes
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from policysweep.v1 import policybank_pb2 as pb

Vector: TypeAlias = npt.NDArray[np.float32]
"""A vector of length 1."""

Hit: TypeAlias = tuple[str, float]
"""The id of a vector and its cosine similarity to a query."""


class BankStore(Protocol):
    """Keeps banks. Any string is a bank id. All methods raise StoreError when the store cannot be reached."""

    @property
    def shared(self) -> bool:
        """Whether other processes may write to it."""
        ...

    async def banks(self) -> list[str]:
        """The ids of all banks, sorted."""
        ...

    async def history(self, bank_id: str, after: int = 0) -> list[pb.Revision]:
        """The revisions after the number `after`, oldest first; none for a bank that does not exist.

        `after` is 0, or where an earlier answer ended.
        """
        ...

    async def append(self, bank_id: str, revisions: Sequence[pb.Revision]) -> bool:
        """Write revisions, which follow one another, in one piece.

        False, and nothing changes, when there is a record that begins with the number of the first.
        """
        ...

    async def name(self, bank_id: str, snapshot: pb.Snapshot) -> pb.Snapshot:
        """Give a revision a name, and give the snapshot that has the name: an earlier one stands."""
        ...

    async def snapshots(self, bank_id: str) -> list[pb.Snapshot]:
        """The snapshots of a bank, sorted by name."""
        ...

    async def save_vectors(self, bank_id: str, vectors: Mapping[str, Vector]) -> None:
        """Keep vectors by id. An id that is there already stands for the same vector."""
        ...

    async def missing_vectors(self, bank_id: str, ids: Collection[str]) -> set[str]:
        """Which of the ids have no vector."""
        ...

    async def nearest(self, bank_id: str, query: Vector, ids: Collection[str], limit: int) -> list[Hit]:
        """The vectors among `ids` that are nearest to the query, best first, at most `limit`."""
        ...

    async def close(self) -> None:
        """Let go of files and connections."""
        ...


def rank(query: Vector, vectors: Mapping[str, Vector], limit: int) -> list[Hit]:
    """The vectors nearest to the query by exact search. Equal similarities are ordered by id."""
    if not vectors:
        return []
    similarities = np.stack(list(vectors.values())) @ query
    hits = zip(vectors, similarities.tolist(), strict=True)
    return sorted(hits, key=lambda hit: (-hit[1], hit[0]))[:limit]


class MemoryStore:
    """Banks in the memory of this process. Implements BankStore."""

    shared = False

    def __init__(self) -> None:
        self._histories: dict[str, list[bytes]] = {}
        self._snapshots: dict[str, dict[str, int]] = {}
        self._vectors: dict[str, dict[str, Vector]] = {}

    async def banks(self) -> list[str]:
        """See BankStore."""
        return sorted(self._histories)

    async def history(self, bank_id: str, after: int = 0) -> list[pb.Revision]:
        """See BankStore."""
        return [pb.Revision.FromString(data) for data in self._histories.get(bank_id, [])[after:]]

    async def append(self, bank_id: str, revisions: Sequence[pb.Revision]) -> bool:
        """See BankStore."""
        held = self._histories.get(bank_id, [])
        if revisions[0].number != len(held) + 1:
            return False
        self._histories[bank_id] = held + [revision.SerializeToString() for revision in revisions]
        return True

    async def name(self, bank_id: str, snapshot: pb.Snapshot) -> pb.Snapshot:
        """See BankStore."""
        held = self._snapshots.setdefault(bank_id, {})
        return pb.Snapshot(name=snapshot.name, revision=held.setdefault(snapshot.name, snapshot.revision))

    async def snapshots(self, bank_id: str) -> list[pb.Snapshot]:
        """See BankStore."""
        held = self._snapshots.get(bank_id, {})
        return [pb.Snapshot(name=name, revision=held[name]) for name in sorted(held)]

    async def save_vectors(self, bank_id: str, vectors: Mapping[str, Vector]) -> None:
        """See BankStore."""
        self._vectors.setdefault(bank_id, {}).update(vectors)

    async def missing_vectors(self, bank_id: str, ids: Collection[str]) -> set[str]:
        """See BankStore."""
        return set(ids) - self._vectors.get(bank_id, {}).keys()

    async def nearest(self, bank_id: str, query: Vector, ids: Collection[str], limit: int) -> list[Hit]:
        """See BankStore."""
        held = self._vectors.get(bank_id, {})
        return rank(query, {each: held[each] for each in ids if each in held}, limit)

    async def close(self) -> None:
        """Nothing to let go of."""
