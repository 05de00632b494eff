"""The folder of a stream run: the first writer wins, and nothing unsound gets in."""

from __future__ import annotations

import asyncio

import pytest

from policysweep.errors import InputError, ManifestMismatch, StoreError
from policysweep.streams.ledger import StreamLedger
from policysweep.sweep.store import ResultStore
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import run_pb2, stream_pb2

from .samples import complete_run, initial_bank, inputs, manifest, planned, record


def memory() -> ResultStore:
    return ResultStore.from_url("memory://")


async def test_records_come_stream_by_stream_and_in_order() -> None:
    ledger = await complete_run(memory())
    found = [each.task async for each in ledger.read_records()]
    assert found == [task for _, tasks in planned(manifest()) for task in tasks]


async def test_inputs_survive_the_files() -> None:
    ledger = await complete_run(memory())
    assert await ledger.read_inputs() == inputs()


async def test_the_first_record_stands() -> None:
    ledger = await complete_run(memory())
    stream, tasks = planned(manifest())[0]
    other = record(stream, tasks[0])
    other.attempts = 9
    assert not await ledger.write_record(other)
    kept = await ledger.read_record(tasks[0].unit_id)
    assert kept is not None
    assert kept.attempts == 1


async def test_several_drivers_begin_one_run_and_one_namespace_stands() -> None:
    store = memory()
    begun = await asyncio.gather(
        *(
            StreamLedger(store).begin(manifest(bank_namespace=f"small-{number}"), inputs())
            for number in range(4)
        )
    )
    assert len({standing.bank_namespace for standing, _ in begun}) == 1


async def test_another_run_is_refused_and_the_change_named() -> None:
    ledger = await complete_run(memory())
    with pytest.raises(ManifestMismatch, match="trials was 2 and is 3"):
        await ledger.begin(manifest(trials=3), inputs())
    changed = inputs()
    next(iter(changed.tasks.values())).user_scenario.reason_for_call = "Something else."
    with pytest.raises(ManifestMismatch, match="changed: tasks airline 1"):
        await ledger.begin(manifest(), changed)


async def test_a_fault_of_the_infrastructure_never_becomes_a_record() -> None:
    ledger = StreamLedger(memory())
    stream, tasks = planned(manifest())[0]
    broken = record(stream, tasks[0])
    broken.episode.end.fault = ep.FAULT_PARTY_INFRASTRUCTURE
    with pytest.raises(StoreError, match="fault of the infrastructure"):
        await ledger.write_record(broken)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("bank_revision_after", 7, "its revision is 2, from 1 to 7"),
        ("missing_feedback", stream_pb2.MissingFeedback(reason="x"), "says why it has none"),
    ],
)
async def test_a_record_whose_bank_contradicts_it_is_refused(field: str, value: object, said: str) -> None:
    stream, tasks = planned(manifest())[1]
    broken = record(stream, tasks[0])
    if isinstance(value, int):
        setattr(broken, field, value)
    else:
        broken.missing_feedback.reason = "x"
    with pytest.raises(StoreError, match=said):
        await StreamLedger(memory()).write_record(broken)


async def test_a_damaged_record_ends_the_reading() -> None:
    store = memory()
    ledger = await complete_run(store)
    unit = planned(manifest())[0][1][2].unit_id
    await store.replace(f"tasks/{unit}.binpb", b"\xff\xff")
    with pytest.raises(StoreError, match=f"{unit}.binpb: damaged record"):
        _ = [each async for each in ledger.read_records()]


async def test_failures_are_kept_until_there_is_a_record_and_grow() -> None:
    ledger = StreamLedger(memory())
    await ledger.begin(manifest(), inputs())
    stream, tasks = planned(manifest())[0]
    for message in ("first", "second"):
        await ledger.write_failure(
            stream_pb2.StreamFailure(task=tasks[0], attempts=[run_pb2.FailedAttempt(message=message)])
        )
    [failure] = [each async for each in ledger.read_failures()]
    assert [attempt.message for attempt in failure.attempts] == ["first", "second"]
    await ledger.write_record(record(stream, tasks[0]))
    assert [each async for each in ledger.read_failures()] == []


async def test_the_first_initial_bank_stands() -> None:
    ledger = StreamLedger(memory())
    none, learning = (stream for stream, _ in planned(manifest())[:2])
    first = initial_bank(learning, manifest())
    await ledger.keep_initial_bank(learning, first)
    await ledger.keep_initial_bank(learning, type(first)(number=1, rationale="another"))
    assert await ledger.read_initial_bank(learning) == first
    assert await ledger.read_initial_bank(none) is None


async def test_an_empty_folder_is_no_run() -> None:
    with pytest.raises(InputError, match=r"there is no stream-manifest\.json"):
        await StreamLedger(memory()).read_manifest()
