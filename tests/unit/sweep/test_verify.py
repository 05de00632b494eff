"""The proof: exactly one record for every planned unit, and none besides."""

from __future__ import annotations

import pytest

from policysweep.errors import InputError
from policysweep.sweep.ledger import RunLedger
from policysweep.sweep.store import ResultStore
from policysweep.sweep.verify import VerifyResult, verify_run
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import run_pb2

from .samples import complete_run, failure_of, inputs, manifest, memory, record_of, units


async def verdict_with(store: ResultStore, record: run_pb2.UnitRecord) -> str:
    """The one problem that a record of the first unit, put there by force, leads to."""
    ledger = await complete_run(store)
    name = f"episodes/{units()[0].unit_id}.binpb"
    await store.replace(name, record.SerializeToString())
    result = await verify_run(ledger)
    assert not result.ok
    assert (result.planned, result.recorded, result.missing) == (16, 15, ())
    [problem] = result.problems
    assert problem.startswith(f"{name}: ")
    return problem.removeprefix(f"{name}: ")


async def test_a_complete_run_is_proven() -> None:
    result = await verify_run(await complete_run(memory()))
    assert result == VerifyResult(planned=16, recorded=16, missing=(), failed=(), problems=())
    assert result.ok


async def test_names_missing_units_in_the_order_of_the_plan_and_which_failed() -> None:
    ledger = RunLedger(memory())
    await ledger.begin(manifest(), inputs())
    planned = units()
    for unit in planned[2:]:
        await ledger.write_record(record_of(unit))
    await ledger.write_failure(failure_of(planned[1], "down"))
    await ledger.write_failure(failure_of(planned[2], "down, then up"))
    result = await verify_run(ledger)
    assert not result.ok
    assert result.missing == (planned[0].unit_id, planned[1].unit_id)
    assert result.failed == (planned[1].unit_id,)
    assert (result.recorded, result.problems) == (14, ())


async def test_finds_a_record_that_the_plan_does_not_have() -> None:
    store = memory()
    ledger = await complete_run(store)
    stray = units()[0]
    stray.unit_id = "f" * 32
    await ledger.write_record(record_of(stray))
    result = await verify_run(ledger)
    assert result.problems == (f"episodes/{'f' * 32}.binpb: no unit of the plan",)
    assert result.recorded == 16
    assert not result.ok


async def test_finds_a_unit_that_is_not_the_planned_one() -> None:
    unit = units()[0]
    expected = f"seed is 1, planned is {unit.seed}; trial is 5, planned is 0"
    unit.seed, unit.trial = 1, 5
    assert await verdict_with(memory(), record_of(unit)) == expected.replace(
        f"seed is 1, planned is {units()[0].seed}; trial is 5, planned is 0",
        f"trial is 5, planned is 0; seed is 1, planned is {units()[0].seed}",
    )


async def test_finds_an_episode_that_is_not_the_units() -> None:
    record = record_of(units()[0])
    record.episode.episode_id = "x"
    record.episode.agent_persona = ep.AGENT_PERSONA_UNSPECIFIED
    assert await verdict_with(memory(), record) == (
        "its episode is x; its episode has agent_persona 0 instead of 1"
    )


async def test_finds_a_fault_of_the_infrastructure_kept_as_a_result() -> None:
    record = record_of(units()[0])
    record.episode.end.fault = ep.FAULT_PARTY_INFRASTRUCTURE
    assert "it keeps a fault of the infrastructure as a result" in await verdict_with(memory(), record)


async def test_a_fault_of_the_agent_is_a_result() -> None:
    ledger = RunLedger(memory())
    await ledger.begin(manifest(), inputs())
    for unit in units():
        record = record_of(unit)
        record.episode.end.reason = ep.END_REASON_ERROR_LIMIT
        record.episode.end.fault = ep.FAULT_PARTY_AGENT
        await ledger.write_record(record)
    assert (await verify_run(ledger)).ok


@pytest.mark.parametrize("data", [b"", b"garbage", b"\x00" * 100])
async def test_finds_damaged_records(data: bytes) -> None:
    store = memory()
    ledger = await complete_run(store)
    unit_id = units()[3].unit_id
    await store.replace(f"episodes/{unit_id}.binpb", data)
    result = await verify_run(ledger)
    assert not result.ok
    assert result.recorded == 15
    [problem] = result.problems
    assert problem.startswith(f"episodes/{unit_id}.binpb: damaged: {len(data)} bytes")
    assert problem.endswith("delete the file and run the sweep again")


async def test_a_copy_of_a_record_under_another_name_is_found() -> None:
    store = memory()
    ledger = await complete_run(store)
    first, second = (unit.unit_id for unit in units()[:2])
    await store.replace(f"episodes/{second}.binpb", await store.read(f"episodes/{first}.binpb") or b"")
    [problem] = (await verify_run(ledger)).problems
    assert f"of unit {first}" in problem


async def test_files_of_others_are_noted_and_harmless() -> None:
    store = memory()
    ledger = await complete_run(store)
    await store.create("episodes/README.txt", b"hello")
    result = await verify_run(ledger)
    assert result.ok
    assert result.notes == ("episodes/README.txt: not a file of ours",)


async def test_finds_inputs_that_contradict_the_manifest() -> None:
    store = memory()
    ledger = await complete_run(store)
    scenarios = await store.read("inputs/scenarios.jsonl") or b""
    await store.replace("inputs/scenarios.jsonl", b"".join(scenarios.splitlines(keepends=True)[:3]))
    await store.replace("inputs/worlds.jsonl", b"")
    result = await verify_run(ledger)
    assert "the inputs hold 3 scenarios, the manifest says 4" in result.problems
    assert "the inputs hold no order world for t0, t1" in result.problems
    assert sum("no unit of the plan" in problem for problem in result.problems) == 4


async def test_needs_a_run() -> None:
    with pytest.raises(InputError, match=r"there is no manifest\.json"):
        await verify_run(RunLedger(memory()))
