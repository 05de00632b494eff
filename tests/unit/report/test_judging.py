from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policysweep.errors import InputError
from policysweep.report.rows import Row, row
from policysweep.report.summary import summarise
from policysweep.report.verdicts import Verdicts
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2, run_pb2

from .records import DENY, FULL, agent_fault, manifest, record, rows_of, sweep
from .verdict_records import (
    AGENT,
    CUSTOMER,
    drawn,
    judges,
    label,
    rubric,
    scenarios,
    score,
    simple,
    taken,
    verdict,
)

AGENTS = ("strict", "fair")
Values = dict[str, float | None]

COMPLETE: Values = {
    "support": 3.0,
    "reasoning": 3.0,
    "verbosity": 3.0,
    "drift": 3.0,
    "tone": 3.0,
    "customer_tone": 3.0,
}


def _judging(
    rows: list[Row], planned: int, verdicts: Verdicts, *agents: str, **options: Any
) -> dict[str, Any]:
    names = agents or ("fair",)
    summary = summarise(
        rows, dict.fromkeys(names, planned), [], manifest(*names), verdicts=verdicts, **options
    )
    judging: dict[str, Any] = summary["judging"]
    return judging


def _of(judging: dict[str, Any], agent: str = "fair", judge: str = "j") -> dict[str, Any]:
    found: dict[str, Any] = judging["judges"][judge]["agents"][agent]
    return found


def _units(scores: Sequence[Values]) -> tuple[list[Row], list[run_pb2.VerdictRecord]]:
    """One unit of one task for each set of scores."""
    rows = rows_of({"fair": [FULL] * len(scores)})
    return rows, [
        made for found, values in zip(rows, scores, strict=True) for made in simple(found.unit_id, values)
    ]


def test_it_is_json_and_does_not_depend_on_the_order_of_anything() -> None:
    records = list(sweep(AGENTS, tasks=12, per_task=2))
    rows, verdicts = [row(made) for made in records], list(drawn(records))
    shuffled_rows, shuffled = list(rows), list(verdicts)
    random.Random(1).shuffle(shuffled_rows)
    random.Random(2).shuffle(shuffled)
    first, second = (
        summarise(
            units,
            dict.fromkeys(AGENTS, 24),
            [],
            manifest(*AGENTS),
            verdicts=taken(found),
            scenarios=scenarios(12, 2),
            min_coverage=0.5,
        )
        for units, found in ((rows, verdicts), (shuffled_rows, shuffled))
    )
    assert json.dumps(first, allow_nan=False) == json.dumps(second, allow_nan=False)


def test_without_verdicts_the_section_is_none() -> None:
    assert summarise([], {"a": 1}, [], manifest("a"))["judging"] is None


def test_labels_of_a_run_that_was_not_judged_are_not_passed_over() -> None:
    summary = summarise([], {"a": 1}, [], manifest("a"), labels=[label("u", "support", 3.0)])
    assert summary["notes"][-1] == {
        "about": "1 human label",
        "reason": "the run was not judged, so there is nothing to calibrate",
    }


def test_a_judge_is_described_by_all_that_changes_its_behaviour() -> None:
    info = judge_pb2.JudgeInfo(model="gpt-4o", logprobs=True, top_logprobs=20)
    info.sampling.temperature = 0.5
    found = _judging([], 0, Verdicts(rubric(), {"j": info}))["judges"]["j"]["info"]
    assert (found["model"], found["families"], found["top_logprobs"]) == ("gpt-4o", ["openai"], 20)
    assert found["sampling"]["temperature"] == 0.5


def test_a_run_that_was_not_judged_yet_has_no_scores_and_says_so() -> None:
    rows = rows_of({"fair": [FULL] * 4})
    judging = _judging(rows, 4, taken([]))
    level = _of(judging)["dimensions"]["policy"]
    assert level["mean"] is None
    assert level["reason"] == "partial: 2 of 2 metrics are missing"
    assert level["missing"][0] == {"metric": "support", "reason": "0 of 4 planned units have this score"}
    assert _of(judging)["metrics"]["support"]["not_judged"] == 4


def test_means_by_hand() -> None:
    rows, verdicts = _units([{"support": 2.0, "reasoning": 5.0}, {"support": 3.0, "reasoning": 4.0}])
    found = _of(_judging(rows, 2, taken(verdicts)))
    support = found["metrics"]["support"]
    assert (support["mean"], support["n"], support["tasks"]) == (2.5, 2, 2)
    # Two tasks, each 0.5 from the mean: sqrt(2 / 1 * 2 * (0.5 / 2)^2) = 0.5.
    assert support["standard_error"] == pytest.approx(0.5)
    # t(1 degree of freedom) is 12.7: the interval ends where the scale does.
    assert support["interval"] == [1, 5]
    policy = found["dimensions"]["policy"]
    assert policy["mean"] == pytest.approx((2.5 + 4.5) / 2)
    assert policy["metrics"] == ["support", "reasoning"]
    assert policy["missing"] == []


def test_turns_are_averaged_within_the_unit_first() -> None:
    rows = rows_of({"fair": [FULL, FULL]})
    long, short = (verdict(each.unit_id, "turns") for each in rows)
    for turn in range(9):
        score(long, "drift", 1.0, turn=2 * turn + 1)
    score(short, "drift", 5.0, turn=1)
    assert _of(_judging(rows, 2, taken([long, short])))["metrics"]["drift"]["mean"] == 3.0


def test_the_customer_counts_in_the_pooled_definition_alone() -> None:
    (unit,) = rows_of({"fair": [FULL]})
    talk, turns = verdict(unit.unit_id, "talk"), verdict(unit.unit_id, "turns")
    score(talk, "tone", 5.0)
    score(talk, "customer_tone", 1.0, subject=CUSTOMER)
    score(talk, "verbosity", 4.0)
    score(turns, "drift", 4.0, turn=1, subject=AGENT)
    score(turns, "drift", 1.0, turn=2, subject=CUSTOMER)
    score(turns, "drift", 1.0, turn=4, subject=CUSTOMER)
    judging = _judging([unit], 1, taken([talk, turns]))
    found = _of(judging)
    assert "customer_tone" not in found["metrics"]
    assert found["dimensions"]["behaviour"]["mean"] == 5.0
    assert found["dimensions"]["dialogue"]["mean"] == 4.0
    assert found["pooled_dimensions"]["behaviour"]["mean"] == 3.0
    assert found["pooled_dimensions"]["behaviour"]["metrics"] == ["tone", "customer_tone"]
    # The turns of both sides, one by one: (4 + 1 + 1) / 3.
    assert found["pooled_dimensions"]["dialogue"]["mean"] == pytest.approx((4.0 + 2.0) / 2)
    customer = judging["judges"]["j"]["customer"]["all"]
    assert set(customer["metrics"]) == {"drift", "customer_tone"}
    assert customer["metrics"]["drift"]["mean"] == 1.0
    assert customer["overall"]["mean"] == 1.0


def test_a_dimension_is_not_given_when_a_metric_is_missing() -> None:
    rows, verdicts = _units([COMPLETE] * 3 + [{**COMPLETE, "reasoning": None}])
    found = _of(_judging(rows, 4, taken(verdicts)))
    assert found["dimensions"]["policy"]["mean"] is None
    assert found["dimensions"]["policy"]["reason"] == "partial: 1 of 2 metrics are missing"
    assert found["dimensions"]["policy"]["missing"] == [
        {
            "metric": "reasoning",
            "reason": "3 of 4 planned units have this score: a coverage of 75.0% is below the minimum of 95%",
        }
    ]
    assert found["metrics"]["reasoning"]["absent"] == {"UNPARSEABLE": 1}
    assert found["metrics"]["reasoning"]["mean"] is None
    assert found["dimensions"]["dialogue"]["mean"] == 3.0


def test_absent_scores_are_not_zeros_and_coverage_stands_beside_the_mean() -> None:
    rows, verdicts = _units(
        [{"support": 4.0}, {"support": None}, {"support": float("nan")}, {"support": 7.0}]
    )
    found = _of(_judging(rows, 4, taken(verdicts), min_coverage=0.0))["metrics"]["support"]
    assert (found["mean"], found["n"], found["coverage"]) == (4.0, 1, 0.25)
    assert found["absent"] == {"UNPARSEABLE": 1, "OUT_OF_SCALE": 2}
    assert (found["without_score"], found["not_judged"]) == (3, 0)


def test_a_metric_that_does_not_apply_lowers_no_coverage() -> None:
    rows = rows_of({"fair": [FULL] * 4})
    verdicts: list[run_pb2.VerdictRecord] = []
    for number, unit in enumerate(rows):
        made = verdict(unit.unit_id, "main")
        score(made, "support", 4.0)
        if number:
            score(made, "reasoning", 2.0)
        else:
            score(made, "reasoning", None, reason=judge_pb2.ABSENT_REASON_NOT_APPLICABLE)
        verdicts.append(made)
    found = _of(_judging(rows, 4, taken(verdicts)))
    reasoning = found["metrics"]["reasoning"]
    assert (reasoning["mean"], reasoning["n"], reasoning["coverage"], reasoning["not_applicable"]) == (
        2.0,
        3,
        1.0,
        1,
    )
    assert reasoning["absent"] == {}
    assert found["dimensions"]["policy"]["mean"] == 3.0


def test_a_metric_that_applies_to_no_unit_makes_its_dimension_partial() -> None:
    (unit,) = rows_of({"fair": [FULL]})
    made = verdict(unit.unit_id, "main")
    score(made, "support", 4.0)
    score(made, "reasoning", None, reason=judge_pb2.ABSENT_REASON_NOT_APPLICABLE)
    level = _of(_judging([unit], 1, taken([made])))["dimensions"]["policy"]
    assert level["missing"] == [{"metric": "reasoning", "reason": "the metric applies to none of the units"}]


def test_a_turn_without_score_is_counted_and_does_not_pass_for_a_complete_unit() -> None:
    (unit,) = rows_of({"fair": [FULL]})
    made = verdict(unit.unit_id, "turns")
    score(made, "drift", 2.0, turn=1)
    score(made, "drift", 4.0, turn=3)
    score(made, "drift", None, turn=5, reason=judge_pb2.ABSENT_REASON_UNPARSEABLE)
    found = _of(_judging([unit], 1, taken([made])))["metrics"]["drift"]
    assert (found["mean"], found["incomplete"], found["absent"]) == (3.0, 1, {"UNPARSEABLE": 1})


def test_units_without_record_lower_the_coverage_of_scores() -> None:
    """One judged unit and three that failed are not a mean over four."""
    rows, verdicts = _units([COMPLETE])
    found = _of(_judging(rows, 4, taken(verdicts)))
    assert found["metrics"]["support"]["coverage"] == 0.25
    assert {level["mean"] for level in found["dimensions"].values()} == {None}


def test_a_unit_that_the_customer_ended_counts_for_the_customer_alone() -> None:
    made = record(fault=ep.FAULT_PARTY_CUSTOMER, outcome=ep.OUTCOME_UNSPECIFIED)
    rows = [row(made), row(record(task=1))]
    verdicts = [each for unit in rows for each in simple(unit.unit_id, COMPLETE)]
    judging = _judging(rows, 2, taken(verdicts))
    assert _of(judging)["metrics"]["support"]["n"] == 1
    assert judging["judges"]["j"]["customer"]["agents"]["fair"]["metrics"]["customer_tone"]["n"] == 2


def test_low_mass_is_flagged_and_the_score_stands() -> None:
    rows = rows_of({"fair": [FULL] * 2})
    first, second = (verdict(each.unit_id, "main") for each in rows)
    score(first, "support", 4.0, mass=0.49)
    score(second, "support", 2.0, mass=0.5)
    judging = _judging(rows, 2, taken([first, second]))
    assert (_of(judging)["metrics"]["support"]["low_mass"], _of(judging)["metrics"]["support"]["mean"]) == (
        1,
        3.0,
    )
    scores = judging["judges"]["j"]["answers"]["scores"]
    assert (scores["with_mass"], scores["low_mass"]) == (2, 1)
    assert scores["mean_mass"] == pytest.approx(0.495)


def test_answers_and_tokens_of_a_judge() -> None:
    rows = rows_of({"fair": [FULL] * 2})
    made = [next(simple(each.unit_id, {"support": 3.0})) for each in rows]
    for number, each in enumerate(made):
        each.verdict.usage.model_calls, each.verdict.unusable_answers = 1 + number, number
        each.verdict.rehearsal = True
    made[0].verdict.usage.prompt_tokens = 500
    summary = summarise(rows, {"fair": 2}, [], manifest("fair"), verdicts=taken(made))
    judge = summary["judging"]["judges"]["j"]
    assert judge["answers"]["model_calls"] == 3
    assert judge["answers"]["unusable_rate"] == pytest.approx(1 / 3)
    assert (judge["tokens"]["prompt_tokens"], judge["tokens"]["prompt_unreported"]) == (500, 1)
    # Nothing reported is not zero.
    assert judge["tokens"]["completion_tokens"] is None
    assert judge["tokens"]["panels"]["main"]["answers"] == 2
    assert summary["rehearsal"] is True


def test_the_goals_of_tasks_are_part_of_what_a_judge_took() -> None:
    rows = rows_of({"fair": [FULL]})
    made = next(simple(rows[0].unit_id, {"support": 3.0}))
    made.verdict.usage.model_calls, made.verdict.usage.prompt_tokens = 1, 500
    verdicts = taken([made])
    for tokens in (30, 40):
        usage = ep.Usage(model_calls=1, prompt_tokens=tokens, completion_tokens=5)
        verdicts.add_goals(run_pb2.TaskGoals(task_id="t", judge_name="j", usage=usage))
    tokens = _judging(rows, 1, verdicts)["judges"]["j"]["tokens"]
    assert (tokens["model_calls"], tokens["prompt_tokens"]) == (3, 570)
    assert (tokens["goals"]["model_calls"], tokens["goals"]["prompt_tokens"]) == (2, 70)
    assert tokens["panels"]["main"]["prompt_tokens"] == 500
    with pytest.raises(InputError, match=r"task 't': judge 'x' is not one of the run's judges \(j\)"):
        verdicts.add_goals(run_pb2.TaskGoals(task_id="t", judge_name="x"))


def test_two_half_scores_are_not_one_whole() -> None:
    """Equal means of unequal scores are told apart by their errors, and nothing is rounded on the way."""
    split, _ = _units([{"support": 1.0}, {"support": 5.0}])
    _, same = _units([{"support": 3.0}, {"support": 3.0}])
    _, apart = _units([{"support": 1.0}, {"support": 5.0}])
    first, second = (_of(_judging(split, 2, taken(made)))["metrics"]["support"] for made in (apart, same))
    assert first["mean"] == second["mean"] == 3.0
    assert first["standard_error"] == pytest.approx(2.0)
    assert (second["standard_error"], second["reason"]) == (
        None,
        "the same in all tasks, so its standard error is not known",
    )
    _, halves = _units([{"support": 1.5}, {"support": 1.5}])
    assert _of(_judging(split, 2, taken(halves)))["metrics"]["support"]["mean"] == 1.5


def test_differences_are_paired_and_adjusted() -> None:
    rows = rows_of({"strict": [FULL] * 12, "fair": [DENY] * 12})
    generator = random.Random(5)
    verdicts: list[run_pb2.VerdictRecord] = []
    for unit in rows:
        base = 2.0 if unit.agent == "strict" else 4.0
        values: Values = {key: base + generator.choice([-1.0, 0.0, 1.0]) for key in COMPLETE}
        verdicts += simple(unit.unit_id, values)
    (pair,) = _judging(rows, 12, taken(verdicts), "strict", "fair")["judges"]["j"]["differences"]
    assert (pair["agents"], pair["matched"]) == (["strict", "fair"], 12)
    assert "customer_tone" not in pair["metrics"]
    support = pair["metrics"]["support"]
    assert 1.0 < support["mean"] < 3.0
    assert support["p_value"] <= support["p_holm"] <= 5 * support["p_value"]
    found = [pair["dimensions"][key]["p_holm"] for key in ("policy", "dialogue", "behaviour")]
    assert all(p < 0.05 for p in found)
    members = [pair["metrics"][key]["mean"] for key in ("support", "reasoning")]
    assert pair["dimensions"]["policy"]["mean"] == pytest.approx(sum(members) / 2)


def test_differences_over_too_few_pairs_are_withheld_and_are_no_member_of_the_family() -> None:
    rows = rows_of({"strict": [FULL] * 12, "fair": [DENY] * 12})
    generator = random.Random(5)
    verdicts: list[run_pb2.VerdictRecord] = []
    for number, unit in enumerate(rows):
        values: Values = {key: float(generator.randint(1, 5)) for key in ("support", "tone")}
        if unit.agent == "fair" and number % 2:
            values["tone"] = None
        verdicts += simple(unit.unit_id, values)
    (pair,) = _judging(rows, 12, taken(verdicts), "strict", "fair")["judges"]["j"]["differences"]
    tone = pair["metrics"]["tone"]
    assert (tone["mean"], tone["p_value"], tone["n"]) == (None, None, 6)
    assert tone["reason"].startswith("6 of 12 planned conversations have this score of both agents")
    assert pair["metrics"]["support"]["p_holm"] == pair["metrics"]["support"]["p_value"]


def test_judged_and_recorded_outcome() -> None:
    rows = [*rows_of({"fair": [FULL, FULL, DENY]}), row(agent_fault(task=3)), row(record(task=4))]
    seen = [FULL, DENY, DENY, ep.OUTCOME_UNSPECIFIED]
    verdicts: list[run_pb2.VerdictRecord] = []
    for unit, outcome in zip(rows, seen, strict=False):
        made = verdict(unit.unit_id, "main")
        made.verdict.outcome.outcome = outcome
        verdicts.append(made)
    garbled = verdict(rows[4].unit_id, "main")
    garbled.verdict.outcome.absent_reason = judge_pb2.ABSENT_REASON_UNPARSEABLE
    found = _of(_judging(rows, 5, taken([*verdicts, garbled]), min_coverage=0.8))["outcome"]
    # That nothing was settled is an outcome that judge and record can agree on.
    assert (found["n"], found["agreed"], found["rate"], found["coverage"]) == (4, 3, 0.75, 0.8)
    assert found["absent"] == {"UNPARSEABLE": 1}
    assert found["confusion"] == [
        {"recorded": None, "judged": None, "units": 1},
        {"recorded": "RETURN_REFUND_FULL_BANK", "judged": "RETURN_REFUND_FULL_BANK", "units": 1},
        {"recorded": "RETURN_REFUND_FULL_BANK", "judged": "DENY_REFUND", "units": 1},
        {"recorded": "DENY_REFUND", "judged": "DENY_REFUND", "units": 1},
    ]
    withheld = _of(_judging(rows, 5, taken([*verdicts, garbled])))["outcome"]
    assert (withheld["rate"], withheld["n"]) == (None, 4)
    assert withheld["reason"].startswith("4 of 5 planned units have a judged outcome")


def test_verdicts_that_no_figure_rests_on_are_counted() -> None:
    rows = rows_of({"fair": [FULL]})
    stale = verdict(rows[0].unit_id, "main")
    stale.verdict.panel_digest = "old"
    summary = summarise(
        rows, {"fair": 1}, [], manifest("fair"), verdicts=taken([stale, *simple("gone", {"support": 1.0})])
    )
    assert summary["judging"]["left_out"] == {"NO_RECORD": 1, "OTHER_EDITION_OF_PANEL": 1}
    assert {
        "about": "1 verdict left out",
        "reason": "their panel has been edited since, or is not in the rubric",
    } in summary["notes"]
    assert _of(summary["judging"])["metrics"]["support"]["n"] == 0


def test_the_rubric_is_described() -> None:
    found = _judging([], 0, taken([]))["rubric"]
    assert (found["name"], found["version"], found["digest"]) == ("small", 1, "cd" * 32)
    drift = next(metric for metric in found["metrics"] if metric["key"] == "drift")
    assert (drift["level"], drift["sides"], drift["dimension"]) == ("TURN", ["AGENT", "CUSTOMER"], "dialogue")


cells = st.one_of(st.none(), st.just(float("nan")), st.integers(1, 5).map(float), st.floats(1, 5))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.fixed_dictionaries({"support": cells, "reasoning": cells}), min_size=1, max_size=12))
def test_every_planned_unit_is_accounted_for_and_means_are_those_of_what_is_there(
    scores: list[Values],
) -> None:
    rows, verdicts = _units(scores)
    planned = len(scores) + 3
    found = _of(_judging(rows, planned, taken(verdicts), min_coverage=0.0))
    for metric in ("support", "reasoning"):
        figure = found["metrics"][metric]
        there = [each[metric] for each in scores if each[metric] is not None and each[metric] == each[metric]]
        assert figure["n"] == len(there)
        assert figure["mean"] == (pytest.approx(sum(map(float, there)) / len(there)) if there else None)  # type: ignore[arg-type]  # None is filtered out
        assert (
            planned == figure["n"] + figure["not_applicable"] + figure["without_score"] + figure["not_judged"]
        )
        assert sum(figure["absent"].values()) == len(scores) - len(there)
    means = [found["metrics"][metric]["mean"] for metric in ("support", "reasoning")]
    policy = found["dimensions"]["policy"]
    assert (policy["mean"] is None) == (None in means) == bool(policy["missing"])


def test_no_units_and_judges_without_verdicts_do_not_break_anything() -> None:
    two = Verdicts(rubric(), judges("a", "b"))
    summary = summarise([], {"x": 2, "y": 2}, [], manifest("x", "y"), verdicts=two, scenarios=scenarios(2))
    assert summary["judging"]["between_judges"]["outcome_alpha"]["reason"] == "no item has two ratings"
    json.dumps(summary, allow_nan=False)
