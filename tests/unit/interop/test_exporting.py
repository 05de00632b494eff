"""A run -> a folder: there in full or not at all, in three formats."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import orjson
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # publishes no type information
import pytest
from google.protobuf import json_format

from policysweep.errors import InputError, StoreError
from policysweep.interop import tables
from policysweep.interop.exporting import export_run
from policysweep.sweep.ledger import RunLedger
from policysweep.sweep.manifest import decode_manifest
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2, run_pb2

from .samples import conversation, episode, imported, lines, our_run, scenarios, stream, verdict


def score(metric: str, value: float | None = None, **parts: Any) -> judge_pb2.Score:
    found = judge_pb2.Score(metric=metric, subject=ep.ROLE_AGENT, **parts)
    if value is not None:
        found.value = value
    return found


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def left_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def read(path: Path) -> list[Any]:
    return [orjson.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


async def unit_ids(ledger: RunLedger) -> list[str]:
    return (await ledger.record_names()).unit_ids


# -------------------------------------------------------------------------------------------------- formats


async def test_json_lines_lose_nothing(tmp_path: Path) -> None:
    ledger = await our_run()
    verdicts = [verdict(unit_id, "dialogue", score("verbosity", 4)) for unit_id in await unit_ids(ledger)]
    done = await export_run(ledger, stream(reversed(verdicts)), "jsonl", tmp_path / "out")
    assert (done.units, done.verdicts, done.missing, done.orphans) == (16, 16, 0, 0)
    assert done.rehearsal
    assert files(tmp_path / "out") == ["manifest.json", "units.jsonl", "verdicts.jsonl"]
    found = [
        json_format.ParseDict(line, run_pb2.UnitRecord()) for line in read(tmp_path / "out" / "units.jsonl")
    ]
    kept = {record.unit.unit_id: record async for record in ledger.read_records()}
    assert {record.unit.unit_id: record for record in found} == kept
    trials = [record.unit.trial for record in found]
    assert trials == sorted(trials)
    again = [
        json_format.ParseDict(line, run_pb2.VerdictRecord())
        for line in read(tmp_path / "out" / "verdicts.jsonl")
    ]
    assert sorted(each.unit_id for each in again) == sorted(each.unit_id for each in verdicts)
    assert all(each in verdicts for each in again)
    manifest = decode_manifest((tmp_path / "out" / "manifest.json").read_bytes(), "exported")
    assert manifest == await ledger.read_manifest()


async def test_the_public_layout_has_a_folder_for_each_agent(tmp_path: Path) -> None:
    ledger = await our_run()
    some = (await unit_ids(ledger))[:2]
    verdicts = [
        verdict(unit_id, "dialogue", score("verbosity", 4), judge=judge)
        for unit_id in some
        for judge in ("gpt", "claude")
    ]
    await export_run(ledger, stream(verdicts), "dripr", tmp_path / "out")
    for agent in ("strict", "fair"):
        rows = read(tmp_path / "out" / agent / "conversations.jsonl")
        assert [row["user_idx"] for row in rows] == list(range(1, 9))
        assert {row["policysweep"]["agent"] for row in rows} == {agent}
        assert len({row["scenario_id"] for row in rows}) == 8
    found = [name for name in files(tmp_path / "out") if "evaluations" in name]
    assert {name.partition("/")[2] for name in found} == {
        "evaluations/gpt/drip-r-1/evaluations.jsonl",
        "evaluations/claude/drip-r-1/evaluations.jsonl",
    }
    evaluations = [line for name in found for line in read(tmp_path / "out" / name)]
    names = {
        row["policysweep"]["unit_id"]: row["scenario_id"]
        for agent in ("strict", "fair")
        for row in read(tmp_path / "out" / agent / "conversations.jsonl")
    }
    assert len(evaluations) == 4
    for each in evaluations:
        assert each["transcript_id"] == names[each["policysweep"]["unit_id"]]


async def test_duckdb_reads_the_tables(tmp_path: Path) -> None:
    ledger = await our_run()
    unit_id = (await unit_ids(ledger))[0]
    scores = [
        score("verbosity", 3.5, written=4, scale_mass=0.9),
        score("consistency_drift", None, message_index=4, absent_reason=judge_pb2.ABSENT_REASON_TRUNCATED),
    ]
    outcome = judge_pb2.OutcomeVerdict(outcome=ep.OUTCOME_REPLACEMENT_EXCHANGE)
    found = verdict(unit_id, "dialogue", *scores, outcome=outcome)
    await export_run(ledger, stream([found]), "parquet", tmp_path / "out")
    assert files(tmp_path / "out") == sorted(
        ["manifest.json", *(f"{name}.parquet" for name in tables.SCHEMAS)]
    )

    def ask(query: str) -> list[tuple[Any, ...]]:
        answer = duckdb.sql(query.replace("FROM ", f"FROM '{tmp_path}/out/"))
        assert answer is not None
        return answer.fetchall()

    assert ask("SELECT count(*), sum(turns), bool_and(rehearsal) FROM units.parquet'") == [(16, 16, True)]
    assert ask(
        "SELECT DISTINCT outcome, fault, executed, mismatch, model FROM units.parquet' ORDER BY 5"
    ) == [
        ("DENY_REFUND", None, None, False, "m-fair"),
        ("DENY_REFUND", None, None, False, "m-strict"),
    ]
    assert ask("SELECT count(*), max(message_index) FROM messages.parquet'") == [(80, 4)]
    assert ask("SELECT caller, status, count(*) FROM tool_calls.parquet' GROUP BY ALL ORDER BY ALL") == [
        ("AGENT", "ERROR", 16),
        ("AGENT", "OK", 16),
        ("CUSTOMER", "OK", 16),
    ]
    assert ask("SELECT sum(prompt_tokens), sum(cached_prompt_tokens) FROM model_calls.parquet'") == [
        (1600, None)
    ]
    rows = ask("SELECT metric, value, message_index, absent_reason, outcome FROM scores.parquet' ORDER BY 1")
    assert rows == [
        ("consistency_drift", None, 4, "TRUNCATED", None),
        ("outcome", None, None, None, "REPLACEMENT_EXCHANGE"),
        ("verbosity", 3.5, None, None, None),
    ]
    assert ask("SELECT DISTINCT year(recorded_at) FROM units.parquet'") == [(2026,)]


async def test_texts_reach_the_tables_unchanged(tmp_path: Path) -> None:
    await export_run(await our_run(), stream([]), "parquet", tmp_path / "out")
    column = pq.read_table(tmp_path / "out" / "messages.parquet").column("content").to_pylist()
    assert column.count("Hello\u2028there\r\n\U0001f600") == 16


async def test_rows_go_to_disk_in_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "GROUP_ROWS", 30)
    await export_run(await our_run(), stream([]), "parquet", tmp_path / "out")
    file = pq.ParquetFile(tmp_path / "out" / "messages.parquet")
    assert [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)] == [30, 30, 20]
    assert file.schema_arrow.metadata[b"rehearsal"] == b"true"
    monkeypatch.setattr(tables, "GROUP_BYTES", 1)
    await export_run(await our_run(), stream([]), "parquet", tmp_path / "long")
    assert pq.ParquetFile(tmp_path / "long" / "messages.parquet").num_row_groups == 16


def test_without_pyarrow_one_message_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from policysweep.errors import InputError\n"
        "try:\n    import policysweep.interop.tables\n"
        "except InputError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == (
        "--format parquet needs pyarrow, which is not installed: pip install 'policysweep[parquet]'\n"
    )


# ----------------------------------------------------------------------------------------- runs with a fault


async def test_what_is_missing_is_counted(tmp_path: Path) -> None:
    ledger = await our_run(skip=3)
    whole = await unit_ids(await our_run())
    lost = min(set(whole) - set(await unit_ids(ledger)))
    done = await export_run(ledger, stream([verdict(lost)]), "jsonl", tmp_path / "out")
    assert (done.units, done.verdicts, done.missing, done.orphans) == (13, 0, 3, 1)
    assert files(tmp_path / "out") == ["manifest.json", "units.jsonl"]


async def test_a_rehearsed_verdict_marks_the_export(tmp_path: Path) -> None:
    talk = lines(tmp_path / "gpt.jsonl", [conversation()])
    ledger = await imported(talk)
    [unit_id] = await unit_ids(ledger)
    assert not (await export_run(ledger, stream([verdict(unit_id)]), "jsonl", tmp_path / "a")).rehearsal
    rehearsed = verdict(unit_id, rehearsal=True)
    assert (await export_run(ledger, stream([rehearsed]), "jsonl", tmp_path / "b")).rehearsal


async def test_a_unit_keeps_its_row_whatever_is_missing(tmp_path: Path) -> None:
    for skip in (0, 4):
        await export_run(await our_run(skip=skip), stream([]), "dripr", tmp_path / str(skip))
    whole, part = (
        {row["policysweep"]["unit_id"]: row["scenario_id"] for row in read(folder)}
        for folder in (tmp_path / "0/strict/conversations.jsonl", tmp_path / "4/strict/conversations.jsonl")
    )
    assert 0 < len(part) < len(whole)
    assert part.items() <= whole.items()


@pytest.mark.parametrize("kind", ["dripr", "jsonl", "parquet"])
async def test_a_damaged_record_leaves_no_folder(tmp_path: Path, kind: str) -> None:
    ledger = await our_run()
    unit_id = (await unit_ids(ledger))[5]
    await ledger.folder("episodes").replace(f"{unit_id}.binpb", b"\xff")
    with pytest.raises(StoreError, match=rf"the record of unit {unit_id} is damaged: 1 bytes"):
        await export_run(ledger, stream([]), kind, tmp_path / "out")
    assert left_in(tmp_path) == []


async def test_a_record_that_is_not_planned_is_refused(tmp_path: Path) -> None:
    ledger = await our_run()
    unit = run_pb2.Unit(unit_id="ab" * 16, scenario_id=scenarios()[0].scenario_id, agent="strict")
    await ledger.write_record(run_pb2.UnitRecord(unit=unit, episode=episode(unit)))
    with pytest.raises(InputError, match=rf"1 records are not of the run's plan, .*{'ab' * 16}"):
        await export_run(ledger, stream([]), "jsonl", tmp_path / "out")


@pytest.mark.parametrize(("part", "name"), [("judge", "../up"), ("judge", "a/b"), ("judge", "")])
async def test_a_name_never_leads_out_of_the_folder(tmp_path: Path, part: str, name: str) -> None:
    ledger = await our_run()
    found = verdict((await unit_ids(ledger))[0], judge=name)
    with pytest.raises(InputError, match=rf"the run has {part} '{name}', which cannot name a folder"):
        await export_run(ledger, stream([found]), "dripr", tmp_path / "out")
    assert left_in(tmp_path) == []


async def test_a_number_of_a_later_version_is_told(tmp_path: Path) -> None:
    ledger = await our_run(skip=1)
    [missing] = set(await unit_ids(await our_run())) - set(await unit_ids(ledger))
    whole = {record.unit.unit_id: record async for record in (await our_run()).read_records()}
    record = whole[missing]
    record.episode.outcome = 99  # type: ignore[assignment]  # as a later version may write it
    await ledger.write_record(record)
    with pytest.raises(InputError, match=r"the run holds Outcome 99, which this version"):
        await export_run(ledger, stream([]), "parquet", tmp_path / "out")


# ------------------------------------------------------------------------------------------------ the folder


async def test_a_folder_that_is_not_empty_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("mine")
    with pytest.raises(InputError, match=r"out is not empty: name another folder, or give --force"):
        await export_run(await our_run(), stream([]), "jsonl", tmp_path / "out")
    assert files(tmp_path) == ["out/mine"]


async def test_force_replaces_files_of_the_same_names_only(tmp_path: Path) -> None:
    (tmp_path / "out" / "strict").mkdir(parents=True)
    for name in ("mine", "manifest.json", "strict/conversations.jsonl"):
        (tmp_path / "out" / name).write_text("old")
    await export_run(await our_run(), stream([]), "dripr", tmp_path / "out", force=True)
    assert files(tmp_path / "out") == [
        "fair/conversations.jsonl",
        "manifest.json",
        "mine",
        "strict/conversations.jsonl",
    ]
    assert (tmp_path / "out" / "mine").read_text() == "old"
    assert len(read(tmp_path / "out" / "strict" / "conversations.jsonl")) == 8
    assert left_in(tmp_path) == ["out"]


async def test_an_empty_folder_and_missing_parents_are_fine(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for output in (tmp_path / "empty", tmp_path / "a" / "b" / "c"):
        await export_run(await our_run(), stream([]), "jsonl", output)
        assert files(output) == ["manifest.json", "units.jsonl"]


async def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(InputError, match=r"out is a file: name a folder"):
        await export_run(await our_run(), stream([]), "jsonl", tmp_path / "out", force=True)
    with pytest.raises(InputError, match=r"cannot write .*out/below: File exists"):
        await export_run(await our_run(), stream([]), "jsonl", tmp_path / "out" / "below")
