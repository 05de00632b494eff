"""What can be done with banks. The logic behind each call of the service, without the wire."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from policysweep.errors import BankConflict, BankNotFound, CuratorUnusable, InputError, RevisionConflict
from policysweep.v1 import policybank_pb2 as pb
from services.policybank.bank import (
    Bank,
    State,
    digest,
    first_revision,
    lesson_revision,
    rollback_revision,
)
from services.policybank.curator import Curator, Work
from services.policybank.library import Library
from services.policybank.recall import Recall, all_items, check_embedder
from services.policybank.store import BankStore
from services.policybank.strategies.strategy import Lesson, MemoryStrategy
from services.policybank.transfer import check_room

SecondsLeft = Callable[[], float]


class Banks:
    """The banks of a store, curated by one model and ranked by one embedder."""

    def __init__(
        self,
        store: BankStore,
        library: Library,
        recall: Recall,
        curator: Curator,
        strategies: Mapping[int, MemoryStrategy],
        template: pb.BankInfo,
    ) -> None:
        """`template` describes new banks: embedder and curator."""
        self._store = store
        self._library = library
        self._recall = recall
        self._curator = curator
        self._strategies = strategies
        self._template = template

    # ----------------------------------------------------------------- reading

    async def look(self, bank_id: str) -> tuple[Bank, list[pb.Snapshot]]:
        """A bank with its snapshots."""
        bank = await self._library.read(bank_id)
        return bank, await self._store.snapshots(bank_id)

    async def summaries(self, after: str, count: int) -> tuple[list[pb.BankSummary], bool]:
        """At most `count` banks whose id sorts after `after`, and whether there are more."""
        ids = [bank_id for bank_id in await self._store.banks() if bank_id > after]
        banks = [await self._library.read(bank_id) for bank_id in ids[:count]]
        return [_summary(bank) for bank in banks], len(ids) > count

    async def at(self, ref: pb.BankRef) -> tuple[Bank, State]:
        """A bank and its state where `ref` points."""
        if not ref.HasField("revision") and not ref.snapshot:
            bank = await self._library.read(ref.bank_id)
            return bank, bank.latest
        if ref.HasField("revision") and ref.snapshot:
            raise InputError("bank: give a revision or a snapshot, not both")
        number = ref.revision if ref.HasField("revision") else await self._named(ref.bank_id, ref.snapshot)
        bank = await self._library.read(ref.bank_id, known=number)
        return bank, bank.at(number)

    async def _named(self, bank_id: str, name: str) -> int:
        await self._library.read(bank_id)
        for snapshot in await self._store.snapshots(bank_id):
            if snapshot.name == name:
                return snapshot.revision
        raise BankNotFound(f"bank {bank_id!r} has no snapshot {name!r}")

    async def recall(self, request: pb.RecallRequest, seconds_left: SecondsLeft) -> pb.RecallResponse:
        """Texts for a prompt."""
        bank, state = await self.at(request.bank)
        if request.limit < 0:
            raise InputError(f"Recall: limit is {request.limit}: give 0 for the method's own")
        limit = request.limit or self.strategy(bank.info.method).recall_limit
        if request.all or not limit:
            items = all_items(state)
        else:
            items = await self._recall.nearest(bank, state, request.query, limit, seconds_left)
        return pb.RecallResponse(items=items, revision=state.number)

    def strategy(self, method: pb.MemoryMethod.ValueType) -> MemoryStrategy:
        """A memory method. Raises InputError for one that there is not."""
        strategy = self._strategies.get(method)
        if strategy is None:
            known = ", ".join(name for name, value in pb.MemoryMethod.items() if value in self._strategies)
            raise InputError(f"method is {method}, which this service does not know: use {known}")
        return strategy

    # ---------------------------------------------------------------- creating

    async def create(
        self, request: pb.CreateBankRequest, seconds_left: SecondsLeft
    ) -> tuple[pb.Revision, bool]:
        """The first revision of a bank, and whether it was there before."""
        content = digest(request, "seed")
        async with self._library.writing(request.bank_id):
            bank = await self._library.find(request.bank_id)
            if bank is None:
                draft = pb.Revision(request_digest=content)
                if request.HasField("fork_of"):
                    first = await self._fork(request, draft)
                else:
                    first = await self._make(request, draft, seconds_left)
                try:
                    await self._library.append(request.bank_id, [first])
                except RevisionConflict:
                    bank = await self._library.read(request.bank_id)
                else:
                    return first, False
        return _same(bank, content), True

    async def _make(
        self, request: pb.CreateBankRequest, draft: pb.Revision, seconds_left: SecondsLeft
    ) -> pb.Revision:
        work = Work(request.bank_id, request.seed, seconds_left)
        entries: list[pb.Entry] = []
        draft.rationale = "Begins empty."
        if self.strategy(request.method).starts_from_policy:
            entries = await self._curator.first_entries(request, work)
            if not entries:
                raise CuratorUnusable("the curator found no capability in the policy; nothing was recorded")
            draft.rationale = "Made from the written policy, the tools and the database schema."
            draft.MergeFrom(work.cost)
        info = pb.BankInfo(method=request.method, policy=request.policy)
        info.source_digest = digest(request, "seed", "bank_id", "method", "fork_of")
        info.MergeFrom(self._template)
        return first_revision(info, entries, draft, _now())

    async def _fork(self, request: pb.CreateBankRequest, draft: pb.Revision) -> pb.Revision:
        source, state = await self.at(request.fork_of)
        check_embedder(source, self._template.embedder)
        info = pb.BankInfo()
        info.CopyFrom(source.info)
        info.method = self._forked_method(request.method, info.method)
        info.forked_from.CopyFrom(pb.BankRef(bank_id=source.bank_id, revision=state.number))
        draft.rationale = f"Forked from bank {source.bank_id!r} at revision {state.number}."
        draft.rehearsal = any(each.rehearsal for each in source.revisions[: state.number])
        copies = [pb.Entry.FromString(entry.SerializeToString()) for entry in state.sorted_entries()]
        return first_revision(info, copies, draft, _now())

    def _forked_method(
        self, wanted: pb.MemoryMethod.ValueType, theirs: pb.MemoryMethod.ValueType
    ) -> pb.MemoryMethod.ValueType:
        """Policy entries serve every method that begins with them; other memories serve their own alone."""
        if wanted in (pb.MEMORY_METHOD_UNSPECIFIED, theirs):
            return theirs
        if not (self.strategy(wanted).starts_from_policy and self.strategy(theirs).starts_from_policy):
            raise InputError(
                f"CreateBank: a bank of {pb.MemoryMethod.Name(theirs)} cannot be forked into one of "
                f"{pb.MemoryMethod.Name(wanted)}: they remember different things"
            )
        return wanted

    # ----------------------------------------------------------------- writing

    async def learn(
        self, request: pb.RecordFeedbackRequest, seconds_left: SecondsLeft
    ) -> tuple[pb.Revision, bool]:
        """The revision that a feedback leads to, and whether it was recorded before."""
        content = digest(request, "expected_revision")
        async with self._library.writing(request.bank_id):
            bank = await self._library.read(request.bank_id)
            if (known := bank.recorded(request.request_id, content)) is not None:
                return known, True
            check_embedder(bank, self._template.embedder)
            bank.expect(request.expected_revision)
            work = Work(request.bank_id, request.seed, seconds_left)
            lesson = Lesson(request, bank.info, bank.latest, self._curator, work)
            draft = await self.strategy(bank.info.method).learn(lesson)
            draft.MergeFrom(work.cost)
            draft.MergeFrom(_evidence(request, content))
            revision = lesson_revision(bank.latest, draft, _now())
            check_room(bank, revision)
            await self._library.append(request.bank_id, [revision])
        return revision, False

    async def roll_back(self, request: pb.RollbackBankRequest) -> tuple[pb.Revision, bool]:
        """The revision that a rollback appends, and whether it was recorded before."""
        content = digest(request, "expected_revision")
        async with self._library.writing(request.bank_id):
            bank = await self._library.read(request.bank_id)
            if request.request_id and (known := bank.recorded(request.request_id, content)) is not None:
                return known, True
            bank.expect(request.expected_revision)
            to = request.to_revision
            if request.to_snapshot:
                to = await self._named(request.bank_id, request.to_snapshot)
            draft = pb.Revision(request_id=request.request_id, request_digest=content)
            revision = rollback_revision(bank, to, draft, _now())
            await self._library.append(request.bank_id, [revision])
        return revision, False

    async def name(self, request: pb.CreateSnapshotRequest) -> int:
        """Give a revision a name; the revision that the name stands for."""
        _, state = await self.at(request.bank)
        wanted = pb.Snapshot(name=request.name, revision=state.number)
        held = await self._store.name(request.bank.bank_id, wanted)
        if held != wanted:
            raise BankConflict(
                f"snapshot {request.name!r} of bank {request.bank.bank_id!r} stands for revision "
                f"{held.revision}, not {wanted.revision}: choose another name"
            )
        return held.revision

    async def restore(self, bank_id: str, revisions: list[pb.Revision], snapshots: list[pb.Snapshot]) -> bool:
        """Write an imported bank, in one piece but for its snapshots; whether it was there before.

        Repeating an import that was cut off adds what is missing.
        """
        async with self._library.writing(bank_id):
            bank = await self._library.find(bank_id)
            if bank is None:
                await self._library.append(bank_id, revisions)
            elif list(bank.revisions) != revisions:
                raise BankConflict(f"there is a bank {bank_id!r} with another history: choose another id")
        for snapshot in snapshots:
            held = await self._store.name(bank_id, snapshot)
            if held != snapshot:
                raise BankConflict(
                    f"snapshot {snapshot.name!r} of bank {bank_id!r} stands for revision {held.revision}, "
                    f"not {snapshot.revision}"
                )
        return bank is not None


def _summary(bank: Bank) -> pb.BankSummary:
    return pb.BankSummary(
        bank_id=bank.bank_id,
        method=bank.info.method,
        revision=bank.latest.number,
        entries=len(bank.latest.entries),
        changed_at=bank.revisions[-1].created_at,
    )


def _same(bank: Bank, content: str) -> pb.Revision:
    first = bank.revisions[0]
    if first.request_digest != content:
        raise BankConflict(
            f"there is a bank {bank.bank_id!r} that was made from something else: choose another id"
        )
    return first


def _evidence(request: pb.RecordFeedbackRequest, content: str) -> pb.Revision:
    """What a feedback leaves in the revision that it leads to."""
    return pb.Revision(
        request_id=request.request_id,
        request_digest=content,
        reward=request.reward,
        rehearsal=request.episode.rehearsal,
        regime=request.regime,
        explanation=request.explanation,
        provenance=pb.Provenance(
            episode_id=request.episode.episode_id, task_id=request.task_id, request_id=request.request_id
        ),
    )


def _now() -> datetime:
    return datetime.now(UTC)
