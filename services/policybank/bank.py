"""A bank is the fold over its revisions; pure.

    revision 1        CREATE     the entries that the bank begins with
    revision n + 1    ADD        one entry more
                      REVISE     one entry changed
                      OMIT       nothing changed, but the feedback was read
                      ROLLBACK   all is as it was at an earlier revision

Revisions are only ever appended. What a bank holds, and which requests it has answered, follows from them and
is stored nowhere else. A rollback also takes back the requests behind what it takes back: such a request may
be recorded anew, because the bank no longer holds what it led to.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from google.protobuf.message import Message

from policysweep.bank_text import bank_diff, entry_diff
from policysweep.errors import BankConflict, BankNotFound, RevisionConflict
from policysweep.v1 import policybank_pb2 as pb
from services.policybank.entries import same_content


class InconsistentHistory(ValueError):
    """Revisions that no bank can have; the message names the first that does not follow."""


@dataclass(frozen=True, slots=True)
class State:
    """A bank at a revision: its entries by capability id, and the revisions of recorded requests by id."""

    number: int = 0
    entries: Mapping[str, pb.Entry] = field(default_factory=dict)
    requests: Mapping[str, int] = field(default_factory=dict)

    def sorted_entries(self) -> list[pb.Entry]:
        """The entries, sorted by capability id."""
        return [self.entries[capability_id] for capability_id in sorted(self.entries)]


@dataclass(frozen=True, slots=True)
class Bank:
    """All revisions of a bank, oldest first, and the state that they amount to. Not empty."""

    bank_id: str
    revisions: Sequence[pb.Revision]
    latest: State

    @classmethod
    def of(cls, bank_id: str, revisions: Sequence[pb.Revision]) -> Bank:
        """The bank with this history. Raises InconsistentHistory."""
        return cls(bank_id, tuple(revisions), fold(revisions))

    @property
    def info(self) -> pb.BankInfo:
        """What the bank is."""
        return self.revisions[0].bank

    def extended(self, revisions: Sequence[pb.Revision]) -> Bank:
        """The bank with more revisions. Raises InconsistentHistory."""
        whole = (*self.revisions, *revisions)
        state = self.latest
        for revision in revisions:
            state = _step(state, revision, lambda number: fold(whole[:number]))
        return replace(self, revisions=whole, latest=state)

    def at(self, number: int) -> State:
        """The bank at a revision. Raises BankNotFound when it has none of this number."""
        if number == self.latest.number:
            return self.latest
        if not 1 <= number <= self.latest.number:
            raise BankNotFound(
                f"bank {self.bank_id!r} has the revisions 1 to {self.latest.number}, not {number}"
            )
        return fold(self.revisions[:number])

    def recorded(self, request_id: str, digest: str) -> pb.Revision | None:
        """The revision that a request led to; None when it is new, or what it led to was rolled back.

        Raises BankConflict when the id was used for another request.
        """
        number = self.latest.requests.get(request_id)
        if number is None:
            return None
        revision = self.revisions[number - 1]
        if revision.request_digest != digest:
            raise BankConflict(
                f"request id {request_id!r} led to revision {number} of bank {self.bank_id!r} with another "
                "content: use an id of its own for each request"
            )
        return revision

    def expect(self, number: int) -> None:
        """Raises RevisionConflict unless `number` is the latest revision."""
        if number != self.latest.number:
            raise RevisionConflict(
                f"bank {self.bank_id!r} is at revision {self.latest.number}, not at {number} as expected: "
                "read it again"
            )


def fold(revisions: Sequence[pb.Revision]) -> State:
    """The state that revisions amount to. Raises InconsistentHistory when they are none or do not fit."""
    if not revisions:
        raise InconsistentHistory("there is no revision")
    states = [State()]
    for revision in revisions:
        states.append(_step(states[-1], revision, states.__getitem__))
    return states[-1]


def _step(state: State, revision: pb.Revision, earlier: Callable[[int], State]) -> State:
    """The state after one more revision. `earlier` gives the state at an earlier one."""
    if revision.number != state.number + 1:
        raise InconsistentHistory(f"revision {revision.number} comes after revision {state.number}")
    if (revision.kind == pb.REVISION_KIND_CREATE) != (revision.number == 1):
        raise InconsistentHistory(f"revision {revision.number}: the first one, and no other, is a CREATE")
    entries, requests = state.entries, state.requests
    match revision.kind:
        case pb.REVISION_KIND_CREATE:
            entries = {entry.capability_id: entry for entry in revision.entries}
            if len(entries) != len(revision.entries):
                raise InconsistentHistory("revision 1: a capability id occurs twice")
        case pb.REVISION_KIND_ADD | pb.REVISION_KIND_REVISE:
            _check_change(state, revision)
            entries = {**entries, revision.after.capability_id: revision.after}
        case pb.REVISION_KIND_ROLLBACK:
            if not 1 <= revision.restored_revision < revision.number:
                raise InconsistentHistory(
                    f"revision {revision.number} restores revision {revision.restored_revision}"
                )
            restored = earlier(revision.restored_revision)
            entries, requests = restored.entries, restored.requests
        case pb.REVISION_KIND_OMIT:
            pass
        case unknown:
            raise InconsistentHistory(f"revision {revision.number} has the unknown kind {unknown}")
    if revision.request_id:
        requests = {**requests, revision.request_id: revision.number}
    return State(revision.number, entries, requests)


def _check_change(state: State, revision: pb.Revision) -> None:
    if not revision.HasField("after"):
        raise InconsistentHistory(f"revision {revision.number} changes an entry and does not hold it")
    before = state.entries.get(revision.after.capability_id)
    held = revision.before if revision.HasField("before") else None
    if (revision.kind == pb.REVISION_KIND_ADD) != (before is None) or held != before:
        raise InconsistentHistory(
            f"revision {revision.number} does not follow from the entry that the bank held before it"
        )


# ------------------------------------------------------------------ the next revision


def digest(request: Message, *ignored: str) -> str:
    """SHA-256 over a request, hex, without the fields `ignored`: equal content, equal digest."""
    content = type(request)()
    content.CopyFrom(request)
    for name in ignored:
        content.ClearField(name)
    return hashlib.sha256(content.SerializeToString(deterministic=True)).hexdigest()


def first_revision(
    info: pb.BankInfo, entries: Sequence[pb.Entry], draft: pb.Revision, now: datetime
) -> pb.Revision:
    """The revision that makes a bank. `draft` holds the rationale, the request and what the curator cost."""
    revision = _stamped(draft, 1, now)
    revision.kind = pb.REVISION_KIND_CREATE
    revision.bank.CopyFrom(info)
    for entry in sorted(entries, key=lambda entry: entry.capability_id):
        revision.entries.add().CopyFrom(entry)
        revision.entries[-1].revision = 1
    return revision


def lesson_revision(state: State, draft: pb.Revision, now: datetime) -> pb.Revision:
    """The revision that a lesson leads to.

    ADD or REVISE when `draft` has an entry in `after` that the bank does not hold as it is, else OMIT. The
    draft also holds the rationale, the provenance, the request and what the curator cost.
    """
    revision = _stamped(draft, state.number + 1, now)
    entry = revision.after
    before = state.entries.get(entry.capability_id)
    if not draft.HasField("after") or (before is not None and same_content(before, entry)):
        revision.kind = pb.REVISION_KIND_OMIT
        revision.ClearField("after")
        return revision
    del entry.provenance[:]
    entry.provenance.extend([*(before.provenance if before is not None else ()), revision.provenance])
    entry.revision = revision.number
    revision.capability_id = entry.capability_id
    revision.kind = pb.REVISION_KIND_ADD if before is None else pb.REVISION_KIND_REVISE
    if before is not None:
        revision.before.CopyFrom(before)
    revision.diff = entry_diff(before, entry)
    return revision


def rollback_revision(bank: Bank, to: int, draft: pb.Revision, now: datetime) -> pb.Revision:
    """The revision that restores revision `to`. Raises BankNotFound when there is none."""
    restored = bank.at(to)
    revision = _stamped(draft, bank.latest.number + 1, now)
    revision.kind = pb.REVISION_KIND_ROLLBACK
    revision.restored_revision = to
    revision.rationale = f"Restores revision {to}."
    revision.diff = bank_diff(bank.latest.entries, restored.entries)
    return revision


def _stamped(draft: pb.Revision, number: int, now: datetime) -> pb.Revision:
    revision = pb.Revision()
    revision.CopyFrom(draft)
    revision.number = number
    revision.created_at.FromDatetime(now)
    return revision
