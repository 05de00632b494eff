from __future__ import annotations

import pytest

from policysweep.report.html import write
from policysweep.report.html.chunks import chunk
from policysweep.v1 import judge_pb2

from .builders import AGENTS, Files, data_of, inputs, judged, record, scenario


def test_every_scenario_has_its_file_and_every_unit_its_entry() -> None:
    records = [record(agent, number) for number in range(5) for agent in AGENTS]
    files = Files(records, [judged(made.unit.unit_id) for made in records])
    scenarios = [scenario(number) for number in range(5)]
    verdicts = [judged(made.unit.unit_id) for made in records]
    page = files.report(inputs(records, scenarios, verdicts))
    assert sorted(files.files) == [*(f"report-data/{number:04}.js" for number in range(5)), "report.html"]
    index = data_of(page)["index"]
    # In the order of the plan, though records are read in the order of their names.
    assert [unit["id"] for unit in index["units"]] == [made.unit.unit_id for made in records]
    assert all(unit["scores"] for unit in index["units"])
    assert b'"unit_id":"fair-3"' in files.files["report-data/0003.js"]
    assert b'"verdicts":[{' in files.files["report-data/0003.js"]


def test_the_page_is_written_last() -> None:
    records = [record("fair", 0)]
    files = Files(records)
    files.report(inputs(records, [scenario(0)]))
    assert list(files.files)[-1] == "report.html"


def test_few_units_are_held_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "UNITS_AT_ONCE", 5)
    records = [record(agent, number) for number in range(7) for agent in AGENTS]
    files = Files(records)
    files.report(inputs(records, [scenario(number) for number in range(7)]))
    assert max(len(ids) for ids in files.reads) <= 5
    assert len(files.reads) == 4
    assert sorted(each for ids in files.reads for each in ids) == sorted(
        made.unit.unit_id for made in records
    )


def test_a_scenario_with_more_units_than_that_is_read_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "UNITS_AT_ONCE", 1)
    records = [record(agent, number) for number in range(2) for agent in AGENTS]
    files = Files(records)
    files.report(inputs(records, [scenario(0), scenario(1)]))
    assert [len(ids) for ids in files.reads] == [2, 2]


def test_units_without_record_have_no_entry_and_scenarios_without_units_no_file() -> None:
    records = [record("fair", 0), record("strict", 0)]
    planned = [made.unit for made in (*records, record("fair", 1), record("strict", 1))]
    files = Files(records)
    page = files.report(inputs(records, [scenario(0), scenario(1)], planned=planned))
    assert sorted(files.files) == ["report-data/0000.js", "report.html"]
    assert len(data_of(page)["index"]["units"]) == 2


def test_a_file_of_transcripts_is_one_call_with_json() -> None:
    hostile = record(text="</script>\u2028<!--")
    text = chunk(3, scenario(0), [(hostile, [])], [judge_pb2.Goal(text="Money back")])
    assert text.startswith("policysweepTranscripts(3, {")
    assert text.endswith("});\n")
    assert "<" not in text
    assert "\u2028" not in text
    assert '"goals":[{"text":"Money back"}]' in text


def test_a_file_of_transcripts_leaves_out_the_policy() -> None:
    assert "which is long" not in chunk(0, scenario(0), [(record(), [])])
