"""The proof: exactly one record for every planned unit, and none besides."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from click.testing import CliRunner

from policysweep.commands.verify import verify
from policysweep.errors import InputError
from policysweep.sweep.ledger import RunLedger
from policysweep.sweep.store import ResultStore
from policysweep.sweep.verdicts import DAMAGED, PanelKey
from policysweep.sweep.verify import VerifyResult, verify_run
from policysweep.sweep.verify_verdicts import VerdictsResult
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import run_pb2

from .judge_samples import PANELS, digest, info, rubric, verdict
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


# ------------------------------------------------------------------ verdicts


async def judged_run(store: ResultStore) -> RunLedger:
    """A run whose 16 units have all verdicts of two judges on three panels."""
    ledger = await complete_run(store)
    verdicts = ledger.verdicts
    await verdicts.begin(await verdicts.proposed(rubric(), {"ada": info(), "eve": info()}))
    for unit in units():
        for panel in PANELS:
            for judge in ("ada", "eve"):
                assert await verdicts.write(verdict(unit.unit_id, panel, judge))
    return ledger


def verdict_file(unit_id: str, panel: str = "talk", judge: str = "ada") -> str:
    return f"{PanelKey(judge, panel, digest(panel)).folder}/{unit_id}.binpb"


async def test_a_run_that_was_not_judged_has_no_verdicts_to_prove() -> None:
    result = await verify_run(await complete_run(memory()))
    assert result.ok
    assert result.verdicts is None
    assert not result.judged


async def test_a_judged_run_is_proven() -> None:
    result = await verify_run(await judged_run(memory()))
    assert result.verdicts == VerdictsResult(expected=96, found=96, missing={}, problems=())
    assert result.ok
    assert result.judged


async def test_missing_verdicts_are_named_and_leave_the_records_proven() -> None:
    ledger = await judged_run(memory())
    edited = rubric(talk="other words")
    await ledger.verdicts.begin(await ledger.verdicts.proposed(edited, {}))
    done, *left = sorted(unit.unit_id for unit in units())
    await ledger.verdicts.write(verdict(done, "talk", "ada", text="other words"))
    result = await verify_run(ledger)
    assert result.ok
    assert not result.judged
    assert result.verdicts == VerdictsResult(
        expected=96,
        found=65,
        missing={("ada", "talk"): tuple(left), ("eve", "talk"): (done, *left)},
        problems=(),
    )


async def test_only_conversations_that_judges_score_need_verdicts() -> None:
    ledger = RunLedger(memory())
    await ledger.begin(manifest(), inputs())
    faults = (ep.FAULT_PARTY_CUSTOMER, ep.FAULT_PARTY_TOOLS, ep.FAULT_PARTY_BUDGET, ep.FAULT_PARTY_AGENT)
    for unit, fault in zip(units(), faults, strict=False):
        record = record_of(unit)
        record.episode.end.reason, record.episode.end.fault = ep.END_REASON_ERROR_LIMIT, fault
        await ledger.write_record(record)
    await ledger.verdicts.begin(await ledger.verdicts.proposed(rubric(), {"ada": info()}))
    result = (await verify_run(ledger)).verdicts
    assert result is not None
    assert (result.expected, result.found) == (3, 0)
    assert set(result.missing.values()) == {(units()[3].unit_id,)}


@pytest.mark.parametrize("data", [b"", b"garbage", verdict(panel="policy").SerializeToString()])
async def test_finds_damaged_verdicts(data: bytes) -> None:
    store = memory()
    ledger = await judged_run(store)
    name = verdict_file(units()[5].unit_id)
    await store.replace(name, data)
    result = await verify_run(ledger)
    assert not result.ok
    assert result.verdicts is not None
    assert result.verdicts.found == 95
    assert result.verdicts.problems == (f"{name}: {DAMAGED}",)
    assert result.verdicts.missing == {}


async def test_finds_verdicts_on_nothing() -> None:
    store = memory()
    ledger = await judged_run(store)
    await ledger.verdicts.write(verdict("f" * 32, "talk"))
    [problem] = (await verify_run(ledger)).verdicts.problems  # type: ignore[union-attr]  # judged above
    assert problem == f"{verdict_file('f' * 32)}: there is no conversation for it to judge; delete the file"


async def test_finds_verdicts_on_an_earlier_conversation() -> None:
    """Who deletes a record and runs the unit again must judge it again."""
    store = memory()
    ledger = await judged_run(store)
    record = record_of(units()[0])
    record.recorded_at.seconds = verdict().recorded_at.seconds + 1
    await store.replace(f"episodes/{record.unit.unit_id}.binpb", record.SerializeToString())
    result = await verify_run(ledger)
    assert not result.ok
    assert result.verdicts is not None
    assert len(result.verdicts.problems) == 6
    assert all("older than the conversation that it judges" in each for each in result.verdicts.problems)


def _verify(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(verify, list(arguments))
    return result.exit_code, result.output


def test_the_command_counts_verdicts_and_fails_for_missing_ones_when_asked(tmp_path: Path) -> None:
    async def prepare() -> None:
        await judged_run(ResultStore.from_url(str(tmp_path)))

    asyncio.run(prepare())
    code, output = _verify(str(tmp_path), "--verdicts")
    assert (code, output) == (
        0,
        "96 of 96 verdicts that count are there.\n16 of 16 planned units have exactly one record.\n",
    )
    first, second = sorted(unit.unit_id for unit in units())[:2]
    for unit in (first, second):
        (tmp_path / verdict_file(unit)).unlink()
    code, output = _verify(str(tmp_path))
    assert code == 0
    assert f"missing: verdicts of judge ada on panel talk: 2, the first of unit {first}\n" in output
    assert "94 of 96 verdicts that count are there." in output
    assert _verify(str(tmp_path), "--verdicts")[0] == 1
    (tmp_path / verdict_file(first, "policy")).write_bytes(b"garbage")
    code, output = _verify(str(tmp_path))
    assert code == 1
    assert f"problem: {verdict_file(first, 'policy')}: damaged" in output


def test_the_command_says_that_a_run_was_never_judged(tmp_path: Path) -> None:
    async def prepare() -> None:
        await complete_run(ResultStore.from_url(str(tmp_path)))

    asyncio.run(prepare())
    assert _verify(str(tmp_path)) == (0, "16 of 16 planned units have exactly one record.\n")
    code, output = _verify(str(tmp_path), "--verdicts")
    assert code == 1
    assert output.startswith("The run was never judged.")


async def test_needs_a_run() -> None:
    with pytest.raises(InputError, match=r"there is no manifest\.json"):
        await verify_run(RunLedger(memory()))
