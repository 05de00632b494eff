"""The proof of a stream run: every task once, revisions that follow on one another, banks that agree."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from policysweep.bank_client import BankContents
from policysweep.errors import BankNotFound
from policysweep.streams.ledger import StreamLedger
from policysweep.streams.plan import bank_id, has_bank
from policysweep.streams.verify import StreamsResult, verify_streams
from policysweep.sweep.store import ResultStore
from policysweep.v1 import policybank_pb2 as pb
from policysweep.v1 import run_pb2, stream_pb2

from .samples import complete_run, initial_bank, inputs, manifest, planned, record

ONE = manifest(seeds=[0], trials=1)
NONE, LEARNING = planned(ONE)


def memory() -> ResultStore:
    return ResultStore.from_url("memory://")


class Banks:
    """The bank service of a run, as far as the proof asks it."""

    def __init__(self, revisions: list[pb.Revision]) -> None:
        self.revisions = revisions

    async def read(self, ref: pb.BankRef) -> BankContents:
        if ref.bank_id != bank_id(ONE, LEARNING[0]):
            raise BankNotFound(f"there is no bank {ref.bank_id!r}")
        return BankContents(ref.bank_id, self.revisions, {}, [])


def history() -> list[pb.Revision]:
    """What the bank of the learning stream holds at the end."""
    first = initial_bank(LEARNING[0], ONE)
    return [first, *(record(LEARNING[0], task).revision for task in LEARNING[1])]


async def proof(
    change: Callable[[stream_pb2.StreamRecord], None], at: int = 2, revisions: list[pb.Revision] | None = None
) -> StreamsResult:
    """The proof of a run in which a record of the learning stream was changed by force."""
    store = memory()
    ledger = await complete_run(store, ONE)
    changed = record(LEARNING[0], LEARNING[1][at])
    change(changed)
    await store.replace(f"tasks/{LEARNING[1][at].unit_id}.binpb", changed.SerializeToString())
    return await verify_streams(ledger, Banks(revisions) if revisions else None)  # type: ignore[arg-type]


def nothing(record: stream_pb2.StreamRecord) -> None:
    """Change nothing."""


async def test_a_complete_run_is_proven() -> None:
    result = await proof(nothing)
    assert result == StreamsResult(planned=14, recorded=14, lessons=7)
    assert result.ok


async def test_the_banks_are_held_against_the_records() -> None:
    result = await proof(nothing, revisions=history())
    assert result.ok
    assert result.banks == 1


async def test_a_rollback_that_was_taken_back_along_is_no_problem() -> None:
    lost = pb.Revision(number=9, kind=pb.REVISION_KIND_ADD, request_id="lost")
    back = pb.Revision(number=10, kind=pb.REVISION_KIND_ROLLBACK, restored_revision=8)
    assert (await proof(nothing, revisions=[*history(), lost, back])).ok


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda record: record.task.__setattr__("seed", 1), "seed is 1, planned is"),
        (lambda record: record.task.__setattr__("position", 5), "position is 5, planned is 2"),
        (lambda record: record.ClearField("grade"), "it has no grade"),
        (lambda record: record.revision.__setattr__("request_id", "x"), "rests on request x"),
        (lambda record: record.ClearField("revision"), "no revision, but moves the bank"),
    ],
)
async def test_an_unsound_record_is_named(
    change: Callable[[stream_pb2.StreamRecord], None], said: str
) -> None:
    result = await proof(change)
    assert not result.ok
    assert any(said in problem for problem in result.problems), result.problems


async def test_a_lesson_at_an_older_revision_is_found() -> None:
    def back(record: stream_pb2.StreamRecord) -> None:
        record.bank_revision_before, record.bank_revision_after, record.revision.number = 1, 2, 2

    result = await proof(back)
    assert any("played at revision 1, but the stream stood at 3" in each for each in result.problems)


async def test_a_later_revision_is_sound_after_a_resume() -> None:
    """A resume rolls back, which appends a revision: the next record begins further on."""
    store = memory()
    ledger = StreamLedger(store)
    await ledger.begin(ONE, inputs())
    stream, tasks = LEARNING
    await ledger.keep_initial_bank(stream, initial_bank(stream, ONE))
    for task in tasks:
        await ledger.write_record(
            record(stream, task, before=task.position + (1 if task.position < 3 else 3))
        )
    result = await verify_streams(ledger)
    assert not result.problems
    assert len(result.missing) == 7  # the stream without a memory


async def test_silence_about_a_lesson_is_a_problem() -> None:
    def silent(record: stream_pb2.StreamRecord) -> None:
        record.ClearField("revision")
        record.bank_revision_after = record.bank_revision_before

    result = await proof(silent)
    assert any("neither what was learnt nor why" in each for each in result.problems)


async def test_a_lesson_that_stands_twice_is_found() -> None:
    again = pb.Revision(number=9, kind=pb.REVISION_KIND_ADD, request_id="again")
    result = await proof(nothing, revisions=[*history(), again])
    assert any("9 stand and are in no record" in each for each in result.problems)


async def test_a_lesson_that_was_lost_is_found() -> None:
    result = await proof(nothing, revisions=history()[:-1])
    assert any("revisions 8 of the records do not stand" in each for each in result.problems)


async def test_a_bank_that_began_otherwise_is_found() -> None:
    revisions = history()
    revisions[0].entries[0].header = "Something else."
    result = await proof(nothing, revisions=revisions)
    assert any("does not begin with the entries" in each for each in result.problems)


async def test_missing_tasks_are_named_and_those_that_failed() -> None:
    ledger = StreamLedger(memory())
    await ledger.begin(ONE, inputs())
    stream, tasks = LEARNING
    await ledger.keep_initial_bank(stream, initial_bank(stream, ONE))
    for task in tasks[:4]:
        await ledger.write_record(record(stream, task))
    await ledger.write_failure(
        stream_pb2.StreamFailure(task=tasks[4], attempts=[run_pb2.FailedAttempt(message="down")])
    )
    pending = pb.Revision(number=6, kind=pb.REVISION_KIND_ADD, request_id=tasks[4].unit_id)
    banks = Banks([*history()[:5], pending])
    result = await verify_streams(ledger, banks)  # type: ignore[arg-type]
    assert result.missing == [task.unit_id for task in (*NONE[1], *tasks[4:])]
    assert result.failed == [tasks[4].unit_id]
    assert not result.problems  # the pending lesson is taken back by the next run


async def test_a_hole_in_a_stream_that_learns_is_a_problem() -> None:
    store = memory()
    ledger = await complete_run(store, ONE)
    other = StreamLedger(memory())
    await other.begin(ONE, inputs())
    async for each in ledger.read_records():
        if each.task != LEARNING[1][2]:
            await other.write_record(each)
    result = await verify_streams(other)
    assert any("a task before it has no record" in each for each in result.problems)
    assert any("initial-banks/airline-policy_bank.binpb is missing" in each for each in result.problems)


async def test_a_record_of_no_plan_is_found_and_foreign_files_are_noted() -> None:
    store = memory()
    ledger = await complete_run(store, ONE)
    await store.replace(f"tasks/{'0' * 32}.binpb", b"")
    await store.replace("tasks/notes.txt", b"")
    result = await verify_streams(ledger)
    assert result.problems == [f"tasks/{'0' * 32}.binpb: no task of the plan"]
    assert result.notes == ["tasks/notes.txt: not a file of ours"]


def test_the_samples_have_a_stream_with_and_one_without_a_bank() -> None:
    assert (has_bank(NONE[0].method), has_bank(LEARNING[0].method)) == (False, True)
