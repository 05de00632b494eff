from __future__ import annotations

from typing import Any

import pytest

from policysweep.errors import InputError
from policysweep.report.rows import Row
from policysweep.report.summary import summarise
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2, run_pb2

from .records import DENY, FULL, manifest, rows_of
from .verdict_records import label, score, simple, taken, verdict


def _rows(number: int) -> list[Row]:
    return rows_of({"fair": [FULL] * number})


def _calibration(
    rows: list[Row], records: list[run_pb2.VerdictRecord], labels: list[run_pb2.HumanLabel]
) -> dict[str, Any]:
    summary = summarise(
        rows, {"fair": len(rows)}, [], manifest("fair"), verdicts=taken(records), labels=labels
    )
    found: dict[str, Any] = summary["judging"]["calibration"]
    return found


def _scored(rows: list[Row], values: list[float | None]) -> list[run_pb2.VerdictRecord]:
    pairs = zip(rows, values, strict=True)
    return [made for unit, value in pairs for made in simple(unit.unit_id, {"support": value})]


def test_without_labels_there_is_no_calibration() -> None:
    assert _calibration(_rows(1), [], []) is None


def test_figures_by_hand() -> None:
    rows = _rows(4)
    labels = [
        label(unit.unit_id, "support", value) for unit, value in zip(rows, (3.0, 2.0, 5.0, 1.0), strict=True)
    ]
    found = _calibration(rows, _scored(rows, [4.0, 2.0, 4.0, 3.0]), labels)
    metric = found["judges"]["j"]["metrics"]["support"]
    assert (metric["n"], metric["items"], metric["no_score"]) == (4, 4, 0)
    assert metric["bias"]["mean"] == pytest.approx((1 + 0 - 1 + 2) / 4)
    assert metric["mean_absolute_error"]["mean"] == pytest.approx(1.0)
    # Squared distances: observed 6 of 4 pairs; by chance those of all 16.
    chance = sum((a - b) ** 2 for a in (3, 2, 5, 1) for b in (4, 2, 4, 3)) / 16
    assert metric["weighted_kappa"]["value"] == pytest.approx(1 - (6 / 4) / chance)
    assert metric["alpha"]["items"] == 4
    assert found["people"]["support"]["annotators"] == 1
    assert found["people"]["support"]["alpha"]["reason"] == "no item has two ratings"


def test_a_label_without_a_score_is_counted_and_changes_no_mean() -> None:
    rows = _rows(3)
    labels = [label(unit.unit_id, "support", 2.0) for unit in rows]
    labels += [label("gone", "support", 1.0), label(rows[0].unit_id, "retired_metric", 1.0)]
    found = _calibration(rows, _scored(rows, [3.0, None, float("nan")]), labels)
    metric = found["judges"]["j"]["metrics"]["support"]
    assert (metric["n"], metric["no_score"], metric["bias"]["mean"]) == (1, 2, 1.0)
    assert found["left_out"] == {"NO_RECORD": 1, "OTHER_METRIC": 1}


def test_turns_are_matched_by_message() -> None:
    (unit,) = _rows(1)
    made = verdict(unit.unit_id, "turns")
    score(made, "drift", 4.0, turn=1)
    score(made, "drift", 2.0, turn=3)
    labels = [label(unit.unit_id, "drift", 3.0, turn=3), label(unit.unit_id, "drift", 3.0, turn=9)]
    metric = _calibration([unit], [made], labels)["judges"]["j"]["metrics"]["drift"]
    assert (metric["n"], metric["no_score"], metric["bias"]["mean"]) == (1, 1, -1.0)


def test_each_annotator_is_a_pair_and_they_are_compared_with_one_another() -> None:
    rows = _rows(2)
    labels = [
        label(rows[0].unit_id, "support", 3.0, "ann"),
        label(rows[0].unit_id, "support", 5.0, "bob"),
        label(rows[1].unit_id, "support", 1.0, "ann"),
        label(rows[1].unit_id, "support", 1.0, "bob"),
    ]
    found = _calibration(rows, _scored(rows, [4.0, 2.0]), labels)
    metric = found["judges"]["j"]["metrics"]["support"]
    assert (metric["n"], metric["items"]) == (4, 2)
    assert metric["bias"]["mean"] == pytest.approx((1 - 1 + 1 + 1) / 4)
    people = found["people"]["support"]
    assert (people["labels"], people["items"], people["annotators"], people["alpha"]["items"]) == (4, 2, 2, 2)
    assert people["alpha"]["value"] is not None


def test_outcomes_of_people() -> None:
    rows = _rows(4)
    records = []
    for unit, outcome in zip(rows, (FULL, FULL, DENY, DENY), strict=True):
        made = verdict(unit.unit_id, "main")
        made.verdict.outcome.outcome = outcome
        records.append(made)
    records[3].verdict.outcome.absent_reason = judge_pb2.ABSENT_REASON_TRUNCATED
    labels = [
        label(unit.unit_id, "outcome", outcome)
        for unit, outcome in zip(rows, (FULL, DENY, DENY, DENY), strict=True)
    ]
    found = _calibration(rows, records, labels)
    outcome = found["judges"]["j"]["outcome"]
    assert (outcome["n"], outcome["no_score"]) == (3, 1)
    assert outcome["rate"] == pytest.approx(2 / 3)
    # Observed 2/3, by chance (2 * 1 + 1 * 2) / 9.
    assert outcome["cohen_kappa"]["value"] == pytest.approx((2 / 3 - 4 / 9) / (1 - 4 / 9))
    assert found["judges"]["j"]["metrics"] == {}


def test_no_outcome_is_an_outcome_to_people_too() -> None:
    (unit,) = _rows(1)
    made = verdict(unit.unit_id, "main")
    made.verdict.outcome.outcome = ep.OUTCOME_UNSPECIFIED
    found = _calibration([unit], [made], [label(unit.unit_id, "outcome", ep.OUTCOME_UNSPECIFIED)])
    assert found["judges"]["j"]["outcome"]["rate"] == 1.0


@pytest.mark.parametrize("value", [0.0, 6.0, float("nan"), float("inf")])
def test_a_label_that_is_not_on_the_scale_is_refused(value: float) -> None:
    (unit,) = _rows(1)
    with pytest.raises(
        InputError, match=rf"unit {unit.unit_id}, metric 'support': the value must be from 1 to 5"
    ):
        _calibration([unit], [], [label(unit.unit_id, "support", value)])


def test_a_label_without_value_is_refused() -> None:
    bare = run_pb2.HumanLabel(unit_id="u", metric="support", message_index=3)
    with pytest.raises(InputError, match=r"unit u, message 3, metric 'support': .* not none"):
        _calibration([], [], [bare])


def test_two_labels_of_one_annotator_are_refused() -> None:
    (unit,) = _rows(1)
    with pytest.raises(InputError, match="annotator 'ann' gave two; keep one"):
        _calibration([unit], [], [label(unit.unit_id, "support", 1.0), label(unit.unit_id, "support", 2.0)])
