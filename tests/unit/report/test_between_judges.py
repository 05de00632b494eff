from __future__ import annotations

import random
from typing import Any

import pytest

from policysweep.report.rows import Row, row
from policysweep.report.summary import summarise
from policysweep.report.verdicts import Verdicts
from policysweep.v1 import judge_pb2, run_pb2

from .records import DENY, FULL, manifest, rows_of, sweep
from .verdict_records import drawn, rubric, score, simple, verdict

AGENTS = ("gpt", "acme")


def _rows() -> list[Row]:
    return rows_of({"gpt": [FULL] * 20, "acme": [FULL] * 20}, per_task=2)


def _between(rows: list[Row], records: list[run_pb2.VerdictRecord], **models: str) -> dict[str, Any]:
    verdicts = Verdicts(rubric(), {name: judge_pb2.JudgeInfo(model=model) for name, model in models.items()})
    made = manifest(*AGENTS)
    made.agents[0].info.model, made.agents[1].info.model = "gpt-5", "acme-7b"
    summary = summarise(rows, dict.fromkeys(AGENTS, 20), [], made, verdicts=verdicts.extend(records))
    found: dict[str, Any] = summary["judging"]["between_judges"]
    return found


def _two_judges(rows: list[Row], gift: float, lean: float = 0.0) -> list[run_pb2.VerdictRecord]:
    """Judge `a` adds `lean` for everybody, and `gift` for the agent gpt."""
    generator = random.Random(1)
    records: list[run_pb2.VerdictRecord] = []
    for unit in rows:
        base = generator.choice([2.0, 3.0])
        more = lean + (gift if unit.agent == "gpt" else 0.0)
        noise = generator.choice([-0.5, 0.5])
        keys = ("support", "reasoning", "verbosity", "drift", "tone")
        records += simple(unit.unit_id, dict.fromkeys(keys, base + more + noise), "a")
        records += simple(unit.unit_id, dict.fromkeys(keys, base), "b")
    return records


def test_one_judge_has_nobody_to_agree_with() -> None:
    found = _between(_rows(), [], a="claude-x")
    assert found["reason"] == "agreement of judges needs at least two of them"
    assert (found["alpha"], found["outcome_alpha"], found["bias"]) == ({}, None, [])
    assert found["self_preference"] == []


def test_judges_that_write_the_same_agree_perfectly() -> None:
    records = list(sweep(AGENTS, tasks=20, per_task=1))
    rows = [row(made) for made in records]
    made = [*drawn(records, "a"), *drawn(records, "b")]
    found = _between(rows, made, a="m", b="n")
    assert [each["value"] for each in found["alpha"].values()] == [pytest.approx(1.0)] * 6
    assert found["outcome_alpha"]["value"] == pytest.approx(1.0)
    (bias,) = found["bias"]
    assert {level["mean"] for level in bias["dimensions"].values()} == {0.0}
    assert {level["p_value"] for level in bias["dimensions"].values()} == {None}


def test_each_turn_is_an_item_of_its_own() -> None:
    rows = _rows()[:2]
    records = []
    for judge, values in (("a", (1.0, 5.0)), ("b", (1.0, 5.0))):
        for unit in rows:
            made = verdict(unit.unit_id, "turns", judge)
            for turn, value in zip((1, 3), values, strict=True):
                score(made, "drift", value, turn=turn)
            records.append(made)
    found = _between(rows, records, a="m", b="n")["alpha"]["drift"]
    assert (found["items"], found["value"]) == (4, pytest.approx(1.0))


def test_items_that_one_judge_did_not_score_do_not_count() -> None:
    rows = _rows()[:3]
    records = [
        *simple(rows[0].unit_id, {"support": 2.0}, "a"),
        *simple(rows[0].unit_id, {"support": 2.0}, "b"),
        *simple(rows[1].unit_id, {"support": 4.0}, "a"),
        *simple(rows[1].unit_id, {"support": None}, "b"),
        *simple(rows[2].unit_id, {"support": 5.0}, "a"),
        *simple(rows[2].unit_id, {"support": 5.0}, "b"),
    ]
    found = _between(rows, records, a="m", b="n")
    assert found["alpha"]["support"]["items"] == 2
    assert found["alpha"]["reasoning"]["reason"] == "no item has two ratings"
    assert found["bias"][0]["metrics"]["support"]["n"] == 2


def test_bias_is_second_minus_first() -> None:
    rows = _rows()
    (bias,) = _between(rows, _two_judges(rows, gift=0.0, lean=1.0), a="m", b="n")["bias"]
    assert bias["judges"] == ["a", "b"]
    assert bias["dimensions"]["policy"]["mean"] == pytest.approx(-1.0, abs=0.2)
    assert bias["dimensions"]["policy"]["p_holm"] < 0.001


def test_a_sample_by_a_second_judge_is_enough_for_the_bias() -> None:
    rows = _rows()
    made = [
        each for each in _two_judges(rows, 0.0, 1.0) if each.judge == "a" or each.unit_id == rows[0].unit_id
    ]
    (bias,) = _between(rows, made, a="m", b="n")["bias"]
    assert bias["metrics"]["support"]["n"] == 1
    assert bias["metrics"]["support"]["mean"] is not None


def test_leaning_alone_is_no_self_preference() -> None:
    rows = _rows()
    (found,) = _between(rows, _two_judges(rows, gift=0.0, lean=1.0), a="gpt-4o", b="claude-x")[
        "self_preference"
    ]
    assert (found["judge"], found["families"], found["agents"], found["against"]) == (
        "a",
        ["openai"],
        ["gpt"],
        ["b"],
    )
    policy = found["dimensions"]["policy"]
    assert policy["own"]["mean"] == pytest.approx(1.0, abs=0.2)
    low, high = policy["excess"]["interval"]
    assert low < 0 < high
    assert policy["excess"]["mean"] == pytest.approx(policy["own"]["mean"] - policy["others"]["mean"])


def test_a_gift_to_its_own_family_is_found() -> None:
    rows = _rows()
    (found,) = _between(rows, _two_judges(rows, gift=1.0, lean=0.5), a="gpt-4o", b="claude-x")[
        "self_preference"
    ]
    assert found["dimensions"]["policy"]["others"]["mean"] == pytest.approx(0.5, abs=0.2)
    low, high = found["dimensions"]["policy"]["excess"]["interval"]
    assert 0.0 < low < 1.0 < high


def test_a_related_judge_is_flagged_even_without_one_to_compare_with() -> None:
    (found,) = _between(_rows(), [], a="gpt-4o")["self_preference"]
    assert found["reason"] == "no judge of another family to compare with"
    assert found["dimensions"] == {}


def test_judges_of_the_same_family_are_not_compared_for_self_preference() -> None:
    found = _between(_rows(), [], a="gpt-4o", b="gpt-4o-mini")["self_preference"]
    assert [(each["judge"], each["against"]) for each in found] == [("a", []), ("b", [])]


def test_outcomes_are_nominal() -> None:
    rows = _rows()[:2]
    records = []
    for judge, seen in (("a", (FULL, DENY)), ("b", (FULL, FULL))):
        for unit, outcome in zip(rows, seen, strict=True):
            made = verdict(unit.unit_id, "main", judge)
            made.verdict.outcome.outcome = outcome
            records.append(made)
    # Two items: observed disagreement 2 of 4 pairs, expected 2 * 3 * 1 / (4 * 3): alpha = 1 - (2/4) / (6/12).
    assert _between(rows, records, a="m", b="n")["outcome_alpha"]["value"] == pytest.approx(0.0)
