"""What the revisions of a policy bank tell: which of them still stand, and how an entry evolved; pure.

A rollback appends a revision and takes none away. What it took back is no part of the standing history: the
bank reads as if it had not been.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from policysweep.bank_text import entry_diff
from policysweep.v1 import policybank_pb2 as pb


@dataclass(frozen=True, slots=True)
class EvolutionStep:
    """One change of one entry."""

    revision: pb.Revision
    """What changed it, and why: kind, rationale, failure type, gap class, provenance, reward."""
    before: pb.Entry | None
    """The entry before; None when it was new."""
    after: pb.Entry
    """The entry after."""

    @property
    def diff(self) -> str:
        """Unified diff of the entry's text."""
        return entry_diff(self.before, self.after)


def standing(revisions: Sequence[pb.Revision]) -> list[pb.Revision]:
    """The revisions, without rollbacks and without those that a rollback took back, oldest first.

    `revisions` is a whole history, from revision 1.
    """
    stood: list[Sequence[pb.Revision]] = [()]
    for revision in revisions:
        if revision.kind == pb.REVISION_KIND_ROLLBACK:
            stood.append(stood[revision.restored_revision])
        else:
            stood.append((*stood[-1], revision))
    return list(stood[-1])


def entry_evolution(revisions: Sequence[pb.Revision], capability_id: str) -> list[EvolutionStep]:
    """How an entry came to read as it does, oldest first; empty when the bank does not hold it.

    `revisions` is a whole history, from revision 1. Only the standing history counts.
    """
    return list(_changes(standing(revisions), capability_id))


def _changes(revisions: Sequence[pb.Revision], capability_id: str) -> Iterator[EvolutionStep]:
    for revision in revisions:
        if revision.kind == pb.REVISION_KIND_CREATE:
            for entry in revision.entries:
                if entry.capability_id == capability_id:
                    yield EvolutionStep(revision, None, entry)
        elif revision.HasField("after") and revision.after.capability_id == capability_id:
            yield EvolutionStep(
                revision, revision.before if revision.HasField("before") else None, revision.after
            )
