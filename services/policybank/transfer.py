"""Banks as streams of records, out and back in; pure.

An export is the history up to a revision, then the entries at that revision, then the snapshots up to it. The
entries follow from the history: they are there for a reader, and an import holds them against it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from policysweep.errors import InputError
from policysweep.v1 import policybank_pb2 as pb
from services.policybank.bank import Bank, InconsistentHistory, State, fold

MOST_BYTES = 16 * 1024 * 1024
"""Size of the largest export that can be imported: it is written in one piece."""

ROOM_BYTES = 1024 * 1024
"""Of that, what lessons leave to rollbacks and snapshots."""


def check_room(bank: Bank, revision: pb.Revision) -> None:
    """Raises InputError if `bank` with this revision were too large to be exported and imported again."""
    parts = (*bank.revisions, revision, *bank.latest.entries.values(), revision.after)
    if sum(part.ByteSize() for part in parts) > MOST_BYTES - ROOM_BYTES:
        most = (MOST_BYTES - ROOM_BYTES) / 2**20
        raise InputError(
            f"bank {bank.bank_id!r} is full: with more than {most:g} MiB it could not be backed up and "
            "restored. Fork it, which leaves its history behind, and go on with the fork"
        )


def exported(bank: Bank, state: State, snapshots: Sequence[pb.Snapshot]) -> Iterator[pb.BankRecord]:
    """The records of a bank at a state."""
    for revision in bank.revisions[: state.number]:
        yield pb.BankRecord(revision=revision)
    for entry in state.sorted_entries():
        yield pb.BankRecord(entry=entry)
    for snapshot in snapshots:
        if snapshot.revision <= state.number:
            yield pb.BankRecord(snapshot=snapshot)


@dataclass(slots=True)
class Arrivals:
    """The records of an import, as they come."""

    revisions: list[pb.Revision] = field(default_factory=list)
    entries: list[pb.Entry] = field(default_factory=list)
    snapshots: list[pb.Snapshot] = field(default_factory=list)
    _bytes: int = 0

    def take(self, record: pb.BankRecord) -> None:
        """Add a record. Raises InputError for one that says nothing, and when there is too much."""
        self._bytes += record.ByteSize()
        if self._bytes > MOST_BYTES:
            raise InputError(f"ImportBank: a bank of more than {MOST_BYTES // 2**20} MiB cannot be imported")
        match record.WhichOneof("record"):
            case "revision":
                self.revisions.append(record.revision)
            case "entry":
                self.entries.append(record.entry)
            case "snapshot":
                self.snapshots.append(record.snapshot)
            case _:
                number = len(self.revisions) + len(self.entries) + len(self.snapshots) + 1
                raise InputError(f"ImportBank: record {number} is neither revision, entry nor snapshot")

    def check(self) -> None:
        """Raises InputError unless the records are those of a whole bank."""
        try:
            state = fold(self.revisions)
        except InconsistentHistory as error:
            raise InputError(f"ImportBank: the history is not that of a bank: {error}") from error
        if not self.revisions[0].HasField("bank"):
            raise InputError("ImportBank: revision 1 does not say what the bank is")
        if self.entries != state.sorted_entries():
            raise InputError("ImportBank: the entries are not those that the history amounts to")
        for snapshot in self.snapshots:
            if not snapshot.name or not 1 <= snapshot.revision <= state.number:
                raise InputError(
                    f"ImportBank: snapshot {snapshot.name!r} of revision {snapshot.revision} names none of "
                    f"the revisions 1 to {state.number}"
                )
