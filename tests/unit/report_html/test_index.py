from __future__ import annotations

import re

from policysweep.report.html.index import chunk_name, index_entry, index_head
from policysweep.v1 import episode_pb2 as ep

from .builders import DENY, criteria, judged, record, scenario


def test_an_entry_holds_what_filters_need_and_leaves_out_what_is_empty() -> None:
    assert index_entry(record("strict", 4, DENY), 0) == {
        "id": "strict-4",
        "scenario": 0,
        "agent": "strict",
        "stance": "FAIR",
        "outcome": "DENY_REFUND",
        "end": "RESOLVED",
        "turns": 3,
    }


def test_an_entry_of_a_faulty_judged_unit() -> None:
    made = record(outcome=ep.OUTCOME_UNSPECIFIED, fault=ep.FAULT_PARTY_CUSTOMER)
    made.unit.trial = 2
    made.episode.reconciliation.mismatch = True
    made.episode.end.reason = ep.END_REASON_ERROR_LIMIT
    entry = index_entry(made, 3, [judged("fair-0")], criteria())
    assert "outcome" not in entry
    assert (entry["fault"], entry["end"], entry["mismatch"]) == ("CUSTOMER", "ERROR_LIMIT", True)
    assert (entry["trial"], entry["scenario"]) == (2, 3)
    assert entry["scores"] == {"policy": 2.0, "dialogue": 4.0}


def test_an_entry_is_small() -> None:
    long = record(text="x" * 100_000)
    assert len(str(index_entry(long, 0, [judged("fair-0")], criteria()))) < 300


def test_the_head_describes_tasks_personas_scenarios_and_dimensions() -> None:
    head = index_head([scenario(0), scenario(1)], criteria())
    assert head["tasks"]["task_1"]["issues"] == ["Issue 1"]
    assert head["personas"] == {"persona_0": "Person"}
    assert [each["file"] for each in head["scenarios"]] == ["report-data/0000.js", "report-data/0001.js"]
    assert [each["key"] for each in head["dimensions"]] == ["policy", "dialogue", "behaviour"]
    assert head["metrics"]["drift"] == {"title": "Drift", "dimension": "dialogue"}


def test_the_head_of_a_run_that_is_not_judged() -> None:
    head = index_head([scenario(0)], None)
    assert (head["dimensions"], head["metrics"]) == ([], {})


def test_files_are_named_by_position_only() -> None:
    assert chunk_name(7) == "report-data/0007.js"
    assert re.fullmatch(r"report-data/\d+\.js", chunk_name(123_456))
