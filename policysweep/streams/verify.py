"""The proof that a stream run is complete, and that its banks learnt each lesson once.

The plan is derived again from manifest and inputs in the run's folder. Of every stream the records must be
those of its tasks, in order, with the planned seeds, and the revisions of its bank must follow on one
another. With the bank service at hand the banks are held against the records as well: what stands of a bank's
history, rollbacks applied, is exactly the revisions in the records of its stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from policysweep.bank_client import BankClient
from policysweep.bank_history import standing
from policysweep.errors import BankNotFound
from policysweep.streams.inputs import StreamInputs
from policysweep.streams.ledger import INITIAL_BANKS, RECORDS, StreamLedger
from policysweep.streams.plan import (
    bank_id,
    has_bank,
    initial_bank_name,
    learns,
    planned_streams,
    stream_tasks,
)
from policysweep.streams.records import record_problems
from policysweep.sweep.records import DamagedRecord, record_name
from policysweep.v1 import policybank_pb2 as pb
from policysweep.v1 import stream_pb2, tau2_pb2

_KINDS = {
    "originals": tau2_pb2.TAU2_TASK_KIND_ORIGINAL,
    "sisters": tau2_pb2.TAU2_TASK_KIND_SISTER,
    "controls": tau2_pb2.TAU2_TASK_KIND_CONTROL,
}

Planned = tuple[stream_pb2.Stream, Sequence[stream_pb2.StreamTask]]


@dataclass(slots=True)
class StreamsResult:
    """What the proof found."""

    planned: int = 0
    """Tasks of the plan, over all streams."""
    recorded: int = 0
    """Tasks of the plan with a sound record."""
    missing: list[str] = field(default_factory=list)
    """Unit ids of planned tasks without a record, in the order of the plan."""
    failed: list[str] = field(default_factory=list)
    """Those of the missing tasks that failed; the others were not tried to the end."""
    problems: list[str] = field(default_factory=list)
    """Everything else that is wrong, one sentence each."""
    notes: list[str] = field(default_factory=list)
    """Harmless findings, such as files that are not ours."""
    lessons: int = 0
    """Revisions in sound records."""
    banks: int | None = None
    """Banks that were held against the records; None without a bank service."""

    @property
    def ok(self) -> bool:
        """Whether every planned task has exactly one sound record, and every record belongs to the plan."""
        return not self.missing and not self.problems


async def verify_streams(ledger: StreamLedger, banks: BankClient | None = None) -> StreamsResult:
    """Prove a run. InputError when it is no run or its manifest or inputs cannot be read."""
    manifest, inputs = await ledger.read_manifest(), await ledger.read_inputs()
    names = await ledger.record_names()
    unseen = set(names.unit_ids)
    result = StreamsResult(problems=list(_input_problems(manifest, inputs)))
    result.banks = None if banks is None else 0
    for stream in planned_streams(manifest):
        tasks = stream_tasks(manifest, inputs, stream)
        present = [task.unit_id for task in tasks if task.unit_id in unseen]
        unseen.difference_update(present)
        check = StreamCheck((stream, tasks))
        async for record in ledger.scan_records(present):
            check.see(record)
        check.add_to(result)
        if has_bank(stream.method):
            await _check_banks(ledger, banks, manifest, check, result)
    result.problems += [f"{RECORDS}/{record_name(unit)}: no task of the plan" for unit in sorted(unseen)]
    result.notes += [f"{RECORDS}/{name}: not a file of ours" for name in names.foreign]
    missing = set(result.missing)
    result.failed += [
        each.task.unit_id async for each in ledger.read_failures() if each.task.unit_id in missing
    ]
    return result


class StreamCheck:
    """Holds the records of one stream against its plan, one at a time and in order."""

    def __init__(self, planned: Planned) -> None:
        self.stream, tasks = planned
        self._planned = {task.unit_id: task for task in tasks}
        self._open = dict(self._planned)
        self._recorded = 0
        self._stands = 1
        self._played_until = -1
        self.problems: list[str] = []
        self.lessons: list[pb.Revision] = []
        """The revisions in the records, in order."""

    def see(self, record: stream_pb2.StreamRecord | DamagedRecord) -> None:
        """Take the next record of the stream into account."""
        unit_id = record.unit_id if isinstance(record, DamagedRecord) else record.task.unit_id
        planned = self._open.pop(unit_id)
        if isinstance(record, DamagedRecord):
            problems = [f"damaged: {record.problem}; delete the file and those after it, and run again"]
        else:
            problems = [*_task_problems(record.task, planned), *record_problems(record), *self._chain(record)]
            if planned.position == self._played_until + 1:
                self._played_until += 1
        if problems:
            self.problems.append(f"{RECORDS}/{record_name(unit_id)}: {'; '.join(problems)}")
        else:
            self._recorded += 1

    def _chain(self, record: stream_pb2.StreamRecord) -> Iterator[str]:
        """What is wrong between a record and the one before it."""
        if not has_bank(self.stream.method):
            if record.bank_revision_before or record.bank_revision_after:
                yield "it names a revision, but its method has no bank"
            return
        if record.bank_revision_before < self._stands:
            yield (
                f"it was played at revision {record.bank_revision_before}, but the stream stood at "
                f"{self._stands}"
            )
        if self._played_until + 1 != record.task.position:
            yield "a task before it has no record: delete the file, and the task is played again in its place"
        self._stands = record.bank_revision_after
        if record.HasField("revision"):
            # A copy: a message that is a part of a record keeps all of the record in memory.
            self.lessons.append(pb.Revision.FromString(record.revision.SerializeToString()))
        answered = record.HasField("revision") or record.HasField("missing_feedback")
        if learns(self.stream) and not answered:
            yield "it says neither what was learnt nor why nothing was"

    def add_to(self, result: StreamsResult) -> None:
        """Add what was found once all records were seen."""
        result.planned += len(self._planned)
        result.recorded += self._recorded
        result.missing += self._open
        result.problems += self.problems
        result.lessons += len(self.lessons)

    @property
    def complete(self) -> bool:
        """Whether every task has a record."""
        return not self._open

    @property
    def begun(self) -> bool:
        """Whether any task has a record."""
        return len(self._open) < len(self._planned)


async def _check_banks(
    ledger: StreamLedger,
    banks: BankClient | None,
    manifest: stream_pb2.StreamManifest,
    check: StreamCheck,
    result: StreamsResult,
) -> None:
    if not check.begun:
        return
    first = await ledger.read_initial_bank(check.stream)
    if first is None:
        result.problems.append(f"{INITIAL_BANKS}/{initial_bank_name(check.stream)}.binpb is missing")
    if banks is None:
        return
    bank = bank_id(manifest, check.stream)
    result.banks = (result.banks or 0) + 1
    try:
        contents = await banks.read(pb.BankRef(bank_id=bank))
    except BankNotFound as error:
        result.problems.append(str(error))
        return
    result.problems += [
        f"bank {bank}: {problem}" for problem in bank_problems(contents.revisions, check, first)
    ]


def bank_problems(
    revisions: Sequence[pb.Revision], check: StreamCheck, first: pb.Revision | None
) -> Iterator[str]:
    """What in a bank's history contradicts the records of its stream. `first` is what it was forked from."""
    created, *lessons = standing(revisions)
    if first is not None and _texts(created.entries) != _texts(first.entries):
        yield "it does not begin with the entries of the bank that it was forked from"
    if not check.complete:
        # One lesson may stand whose task has no record yet; the next run takes it back.
        if len(lessons) > len(check.lessons) + 1:
            yield f"{len(lessons)} lessons stand, but the records have {len(check.lessons)}"
        lessons = lessons[: len(check.lessons)]
    if lessons != check.lessons:
        missing = [each.number for each in check.lessons if each not in lessons]
        surplus = [each.number for each in lessons if each not in check.lessons]
        yield (
            f"what stands is not what the records say: revisions {_listed(missing)} of the records do not "
            f"stand, {_listed(surplus)} stand and are in no record"
        )


def _texts(entries: Iterable[pb.Entry]) -> list[bytes]:
    return [entry.SerializeToString(deterministic=True) for entry in entries]


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers)) or "none"


def _task_problems(found: stream_pb2.StreamTask, planned: stream_pb2.StreamTask) -> Iterator[str]:
    for name in stream_pb2.StreamTask.DESCRIPTOR.fields_by_name:
        was, expected = getattr(found, name), getattr(planned, name)
        if was != expected:
            yield f"{name} is {was}, planned is {expected}"


def _input_problems(manifest: stream_pb2.StreamManifest, inputs: StreamInputs) -> Iterator[str]:
    """What contradicts the manifest in the inputs."""
    for domain in manifest.domains:
        kinds = [task.kind for task in inputs.of_domain(domain.domain)]
        for name, kind in _KINDS.items():
            said = getattr(domain, name)
            if kinds.count(kind) != said:
                yield f"the inputs hold {kinds.count(kind)} {domain.domain} {name}, the manifest says {said}"
