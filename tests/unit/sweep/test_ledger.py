"""The ledger: one record a unit, failures as history, a changed sweep refused."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from structlog.testing import capture_logs

from policysweep.errors import InputError, ManifestMismatch, StoreError
from policysweep.sweep.failures import MAX_KEPT_ATTEMPTS
from policysweep.sweep.inputs import RunInputs
from policysweep.sweep.ledger import RunLedger
from policysweep.sweep.records import DamagedRecord
from policysweep.sweep.store import ResultStore
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import run_pb2

from .samples import complete_run, failure_of, inputs, manifest, memory, record_of, units


async def listing(store: ResultStore) -> list[str]:
    return sorted([name async for name in store.list_names()])


async def test_begins_and_resumes() -> None:
    store = memory()
    ledger = RunLedger(store)
    assert await ledger.begin(manifest(), inputs()) == []
    assert await listing(store) == ["inputs/scenarios.jsonl", "inputs/worlds.jsonl", "manifest.json"]
    later = manifest()
    later.created_at.seconds += 99
    later.version = "0.2.0"
    assert await ledger.begin(later, inputs()) == ["the run was begun by policysweep 0.1.0, this is 0.2.0"]
    assert await ledger.read_manifest() == manifest()
    assert (await ledger.read_inputs()).scenarios == inputs().scenarios


async def test_refuses_a_changed_sweep_and_writes_nothing() -> None:
    store = memory()
    ledger = RunLedger(store)
    await ledger.begin(manifest(), inputs())
    changed = manifest()
    changed.seed = 8
    changed.agents[0].info.model = "other"
    with pytest.raises(ManifestMismatch) as raised:
        await ledger.begin(changed, inputs())
    assert str(raised.value).splitlines() == [
        "memory:// was begun with something else:",
        "  seed was 7 and is 8",
        "  agent strict: model was rehearsal-strict and is other",
        "Undo the change to resume this run, or give the sweep another name to begin a new one.",
    ]
    assert await ledger.read_manifest() == manifest()


async def test_refuses_another_choice_of_as_many_scenarios() -> None:
    ledger = RunLedger(memory())
    await ledger.begin(manifest(), inputs())
    other = inputs()
    other.scenarios[2].scenario_id = "s9"
    with pytest.raises(
        ManifestMismatch, match=r"only in the run: scenarios s2; only in the sweep: scenarios s9"
    ):
        await ledger.begin(manifest(), other)


async def test_completes_a_run_whose_driver_died_between_manifest_and_inputs() -> None:
    whole, store = memory(), memory()
    await RunLedger(whole).begin(manifest(), inputs())
    await store.create("manifest.json", await whole.read("manifest.json") or b"")
    ledger = RunLedger(store)
    with pytest.raises(InputError, match=r"scenarios.jsonl is missing: run the sweep again to complete it"):
        await ledger.read_inputs()
    await ledger.begin(manifest(), inputs())
    assert await listing(store) == await listing(whole)


async def test_many_drivers_begin_one_run() -> None:
    store = memory()
    notes = await asyncio.gather(*(RunLedger(store).begin(manifest(), inputs()) for _ in range(8)))
    assert notes == [[]] * 8


async def test_missing_worlds_are_found_before_anything_is_written() -> None:
    store = memory()
    ledger = RunLedger(store)
    with pytest.raises(InputError, match="no order world for t0, t1"):
        await ledger.begin(manifest(), RunInputs(inputs().scenarios, {}))
    assert await listing(store) == []


async def test_the_first_of_many_writers_wins() -> None:
    store = memory()
    unit = units()[0]
    records = [record_of(unit) for _ in range(16)]
    for number, record in enumerate(records):
        record.attempts = number
    written = await asyncio.gather(*(RunLedger(store).write_record(record) for record in records))
    assert Counter(written) == {True: 1, False: 15}
    [kept] = [record async for record in RunLedger(store).read_records()]
    assert kept == records[written.index(True)]


async def test_records_come_back_in_the_order_of_unit_ids() -> None:
    ledger = await complete_run(memory())
    assert await ledger.done_units() == {unit.unit_id for unit in units()}
    read = [record async for record in ledger.read_records()]
    assert read == [record_of(unit) for unit in sorted(units(), key=lambda unit: unit.unit_id)]


async def test_reading_may_stop_at_any_time() -> None:
    ledger = await complete_run(memory())
    records = ledger.read_records()
    await anext(records)
    await records.aclose()


async def test_a_fault_of_the_infrastructure_never_becomes_a_record() -> None:
    ledger = RunLedger(memory())
    record = record_of(units()[0])
    record.episode.end.fault = ep.FAULT_PARTY_INFRASTRUCTURE
    record.episode.end.detail = "model server down"
    with pytest.raises(StoreError, match="a fault of the infrastructure as a result: model server down"):
        await ledger.write_record(record)
    assert await ledger.done_units() == set()


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("episode_id", "0" * 32, f"its episode is {'0' * 32}"),
        ("seed", 1, "its episode has seed 1 instead of"),
        ("task_id", "t9", "its episode has task_id t9 instead of t0"),
        ("scenario_id", "", "its episode has scenario_id  instead of s0"),
    ],
)
async def test_refuses_the_episode_of_another_unit(field: str, value: object, expected: str) -> None:
    record = record_of(units()[0])
    setattr(record.episode, field, value)
    with pytest.raises(StoreError, match=expected):
        await RunLedger(memory()).write_record(record)


async def test_refuses_an_episode_that_did_not_end() -> None:
    record = record_of(units()[0])
    record.episode.ClearField("end")
    with pytest.raises(StoreError, match="its episode did not end"):
        await RunLedger(memory()).write_record(record)


@pytest.mark.parametrize("unit_id", ["", "../../etc/passwd", "A" * 32, "0" * 31, "0" * 33, "0" * 31 + "\n"])
async def test_only_unit_ids_become_names(unit_id: str) -> None:
    store = memory()
    ledger = RunLedger(store)
    record = record_of(units()[0])
    record.unit.unit_id = record.episode.episode_id = unit_id
    with pytest.raises(ValueError, match="is not a unit id"):
        await ledger.write_record(record)
    with pytest.raises(ValueError, match="is not a unit id"):
        await ledger.write_failure(run_pb2.UnitFailure(unit=record.unit))
    assert await listing(store) == []


async def test_damaged_records_are_reported_by_name() -> None:
    store = memory()
    ledger = await complete_run(store)
    garbage, empty, moved, good = sorted(unit.unit_id for unit in units())[:4]
    await store.replace(f"episodes/{garbage}.binpb", b"\xff\xff garbage")
    await store.replace(f"episodes/{empty}.binpb", b"")
    await store.replace(f"episodes/{moved}.binpb", await store.read(f"episodes/{good}.binpb") or b"")
    found = [each async for each in ledger.scan_records([garbage, empty, moved, good])]
    assert found[0] == DamagedRecord(garbage, "10 bytes that are no record")
    assert found[1] == DamagedRecord(empty, "0 bytes, of unit none")
    assert isinstance(found[2], DamagedRecord)
    assert found[2].problem.endswith(f"of unit {good}")
    assert isinstance(found[3], run_pb2.UnitRecord)
    expected = (
        f"memory:///episodes/{garbage}.binpb: damaged record: .*; "
        "delete the file and run the sweep or stream again"
    )
    with pytest.raises(StoreError, match=expected):
        [record async for record in ledger.read_records()]


async def test_foreign_files_are_no_records() -> None:
    store = memory()
    ledger = RunLedger(store)
    unit = units()[0]
    await ledger.write_record(record_of(unit))
    own = f"{unit.unit_id}.binpb"
    for name in ("notes.txt", f"{unit.unit_id}.json", own.upper(), f"x{own}", f"deeper/{own}"):
        await store.create(f"episodes/{name}", b"x")
    names = await ledger.record_names()
    assert names.unit_ids == [unit.unit_id]
    assert len(names.foreign) == 5
    assert await ledger.done_units() == {unit.unit_id}


async def test_failures_are_appended_over_invocations_and_capped() -> None:
    ledger = RunLedger(memory())
    unit = units()[0]
    await ledger.write_failure(failure_of(unit, "first", "second"))
    await ledger.write_failure(failure_of(unit, "third"))
    [failure] = [each async for each in ledger.read_failures()]
    assert failure == failure_of(unit, "first", "second", "third")
    await ledger.write_failure(failure_of(unit, *map(str, range(MAX_KEPT_ATTEMPTS + 5))))
    [failure] = [each async for each in ledger.read_failures()]
    assert [attempt.message for attempt in failure.attempts] == [str(n) for n in range(5, 25)]


async def test_a_unit_with_a_record_did_not_fail() -> None:
    store = memory()
    ledger = RunLedger(store)
    first, second = units()[:2]
    for unit in (first, second):
        await ledger.write_failure(failure_of(unit, "down"))
    await ledger.write_record(record_of(first))
    assert [each.unit.unit_id async for each in ledger.read_failures()] == [second.unit_id]
    assert f"failures/{first.unit_id}.json" in await listing(store)


async def test_failures_are_files_for_people() -> None:
    store = memory()
    ledger = RunLedger(store)
    unit = units()[0]
    await ledger.write_failure(failure_of(unit, "agent h:1 did not answer"))
    text = (await store.read(f"failures/{unit.unit_id}.json") or b"").decode()
    assert '"party": "FAULT_PARTY_INFRASTRUCTURE"' in text
    assert '      "message": "agent h:1 did not answer"' in text


async def test_a_damaged_history_is_reported_and_does_not_stop_a_sweep() -> None:
    store = memory()
    ledger = RunLedger(store)
    unit = units()[0]
    name = f"failures/{unit.unit_id}.json"
    for damage in (b"{", b"[]", b"{}", b'{"unit": 3}'):
        await store.replace(name, damage)
        with pytest.raises(StoreError, match=f"{name}: is damaged: .*; delete the file"):
            [each async for each in ledger.read_failures()]
        with capture_logs() as logs:
            await ledger.write_failure(failure_of(unit, "new"))
        assert [entry["event"] for entry in logs] == ["failure_history_damaged"]
        assert [each async for each in ledger.read_failures()] == [failure_of(unit, "new")]


async def test_says_when_there_is_no_run() -> None:
    with pytest.raises(InputError, match=r"memory://: no run here: there is no manifest.json"):
        await RunLedger(memory()).read_manifest()
