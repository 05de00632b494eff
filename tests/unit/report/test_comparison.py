from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from policysweep.errors import InputError
from policysweep.report.comparison import Run, compare_runs
from policysweep.report.rows import Row, row
from policysweep.report.verdicts import Verdicts
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2, run_pb2

from .records import DENY, FULL, PARTIAL, manifest, record, rows_of, sweep
from .verdict_records import drawn, rubric, simple, taken

KEYS = ("support", "reasoning", "verbosity", "drift", "tone")


def _run(rows: Sequence[Row], *agents: str, verdicts: Verdicts | None = None, **options: Any) -> Run:
    made = manifest(*agents, **options)
    planned = {name: sum(each.agent == name for each in rows) for name in agents}
    return Run(made, rows, planned, verdicts)


def _outcomes(outcomes: Mapping[str, Sequence[int]], per_task: int = 1) -> Run:
    return _run(rows_of(outcomes, per_task), *outcomes)


def _judged(level: float, *agents: str, seed: int = 0, tasks: int = 20) -> Run:
    rows = rows_of(dict.fromkeys(agents, [FULL] * tasks))
    generator = random.Random(seed)
    records: list[run_pb2.VerdictRecord] = []
    for unit in rows:
        scores = {key: level + generator.choice([-1.0, 0.0, 1.0]) for key in KEYS}
        records += simple(unit.unit_id, scores)
    return _run(rows, *agents, verdicts=taken(records))


def _pair(comparison: dict[str, Any]) -> dict[str, Any]:
    (pair,) = comparison["pairs"]
    found: dict[str, Any] = pair
    return found


def test_outcomes_by_hand() -> None:
    first = _outcomes({"a": [FULL, FULL, DENY, FULL]})
    second = _outcomes({"a": [FULL, DENY, DENY, PARTIAL]})
    pair = _pair(compare_runs(first, second))
    assert pair["matched"] == {
        "conversations": 4,
        "planned": 4,
        "coverage": 1.0,
        "scenarios": 4,
        "tasks": 4,
    }
    outcomes = pair["outcomes"]
    assert (outcomes["changed"]["changed"], outcomes["changed"]["share"], outcomes["scenarios_changed"]) == (
        2,
        0.5,
        2,
    )
    # A partial refund is a grant like the full one.
    assert outcomes["coarse_changed"]["changed"] == 1
    assert outcomes["from_to"] == [
        {"from": "RETURN_REFUND_FULL_BANK", "to": "RETURN_REFUND_FULL_BANK", "conversations": 1},
        {"from": "RETURN_REFUND_FULL_BANK", "to": "RETURN_REFUND_PARTIAL_BANK", "conversations": 1},
        {"from": "RETURN_REFUND_FULL_BANK", "to": "DENY_REFUND", "conversations": 1},
        {"from": "DENY_REFUND", "to": "DENY_REFUND", "conversations": 1},
    ]
    full = outcomes["shares"]["RETURN_REFUND_FULL_BANK"]
    assert full["runs"] == [0.75, 0.25]
    assert full["difference"]["mean"] == -0.5
    assert outcomes["coarse_shares"]["GRANT"]["runs"] == [0.75, 0.5]
    assert outcomes["noise"] == [None, None]
    assert 0.05 < outcomes["p_value"] <= 1.0


def test_a_run_against_itself_shows_no_difference() -> None:
    records = list(sweep(("a", "b"), tasks=12, per_task=2))
    run = _run([row(made) for made in records], "a", "b", verdicts=taken(drawn(records)))
    found = compare_runs(run, run)
    assert [pair["agents"] for pair in found["pairs"]] == [["a", "a"], ["b", "b"]]
    for pair in found["pairs"]:
        assert pair["outcomes"]["changed"]["changed"] == 0
        assert pair["outcomes"]["p_value"] is None
        levels = pair["scores"]["j"]["dimensions"].values()
        assert {level["verdict"] for level in levels} <= {"no difference shown", "withheld"}
        assert {level["mean"] for level in levels} <= {0.0, None}
    json.dumps(found, allow_nan=False)


def test_the_order_of_rows_and_verdicts_does_not_matter() -> None:
    records = [list(sweep(("a",), tasks=12, per_task=2, seed=seed)) for seed in (0, 1)]
    verdicts = [list(drawn(made, seed=seed)) for seed, made in enumerate(records)]
    straight = [
        _run([row(r) for r in made], "a", verdicts=taken(v))
        for made, v in zip(records, verdicts, strict=True)
    ]
    turned = [
        _run([row(r) for r in reversed(made)], "a", verdicts=taken(reversed(v)))
        for made, v in zip(records, verdicts, strict=True)
    ]
    assert json.dumps(compare_runs(straight[0], straight[1])) == json.dumps(
        compare_runs(turned[0], turned[1])
    )


def test_better_and_worse() -> None:
    better = _pair(compare_runs(_judged(2.0, "a"), _judged(4.0, "a", seed=1)))["scores"]["j"]
    worse = _pair(compare_runs(_judged(4.0, "a"), _judged(2.0, "a", seed=1)))["scores"]["j"]
    same = _pair(compare_runs(_judged(3.0, "a"), _judged(3.0, "a", seed=1)))["scores"]["j"]
    for dimension in ("policy", "dialogue", "behaviour"):
        assert better["dimensions"][dimension]["verdict"] == "better"
        assert worse["dimensions"][dimension]["verdict"] == "worse"
        assert same["dimensions"][dimension]["verdict"] == "no difference shown"
    policy = better["dimensions"]["policy"]
    assert policy["mean"] == pytest.approx(policy["runs"][1] - policy["runs"][0])
    assert policy["interval"][0] > 1.0
    assert policy["title"] == "Policy"


def test_the_verdict_allows_for_the_number_of_dimensions() -> None:
    """One dimension of three with p = 0.04 is no finding."""
    rows = rows_of({"a": [FULL] * 16})
    generator = random.Random(0)
    moves = [1.0] * 12 + [-1.0] * 4
    records: list[list[run_pb2.VerdictRecord]] = [[], []]
    for unit, move in zip(rows, moves, strict=True):
        values = {key: generator.choice([2.0, 3.0]) for key in KEYS}
        other = {key: values[key] + generator.choice([-1.0, 1.0]) for key in KEYS}
        records[0] += simple(unit.unit_id, values)
        records[1] += simple(unit.unit_id, {**other, "tone": values["tone"] + move})
    first, second = (_run(rows, "a", verdicts=taken(made)) for made in records)
    behaviour = _pair(compare_runs(first, second))["scores"]["j"]["dimensions"]["behaviour"]
    assert behaviour["p_value"] < 0.05 < behaviour["p_holm"]
    assert behaviour["verdict"] == "no difference shown"


def test_missing_scores_withhold_the_verdict() -> None:
    first, second = _judged(2.0, "a"), _judged(4.0, "a")
    rows = rows_of({"a": [FULL] * 20})
    records: list[run_pb2.VerdictRecord] = []
    for number, unit in enumerate(rows):
        values: dict[str, float | None] = dict.fromkeys(KEYS, 4.0)
        records += simple(unit.unit_id, {**values, "reasoning": None if number % 2 else 4.0})
    second = _run(rows, "a", verdicts=taken(records))
    policy = _pair(compare_runs(first, second))["scores"]["j"]["dimensions"]["policy"]
    assert (policy["mean"], policy["runs"], policy["verdict"]) == (None, [None, None], "withheld")
    assert policy["missing"][0]["metric"] == "reasoning"
    assert policy["missing"][0]["reason"].startswith(
        "10 of 20 planned conversations have this score in both runs"
    )


def test_conversations_that_one_run_lacks_are_left_out_and_lower_the_coverage() -> None:
    first, second = _outcomes({"a": [FULL] * 10}), _outcomes({"a": [DENY] * 10})
    short = Run(second.manifest, second.rows[:9], second.planned, None)
    pair = _pair(compare_runs(first, short))
    assert pair["matched"]["conversations"] == 9
    assert pair["withheld"].startswith("9 of 10 planned conversations have a scored unit in both runs")
    assert (pair["outcomes"]["changed"]["changed"], pair["outcomes"]["changed"]["share"]) == (9, None)
    assert (pair["outcomes"]["shares"], pair["outcomes"]["p_value"]) == (None, None)
    assert _pair(compare_runs(first, short, min_coverage=0.9))["withheld"] is None


def test_units_that_are_not_scored_are_not_matched() -> None:
    first = _run([row(record("a", task)) for task in range(2)], "a")
    spoilt = record("a", 1, fault=ep.FAULT_PARTY_CUSTOMER, outcome=ep.OUTCOME_UNSPECIFIED)
    second = _run([row(record("a", 0)), row(spoilt)], "a")
    assert _pair(compare_runs(first, second))["matched"]["conversations"] == 1


def test_persona_and_trial_make_the_match() -> None:
    first = _run(
        [row(record("a", persona=ep.AGENT_PERSONA_FAIR, trial=trial)) for trial in (0, 1)], "a", trials=2
    )
    second = _run(
        [row(record("a", persona=persona)) for persona in (ep.AGENT_PERSONA_FAIR, ep.AGENT_PERSONA_DIRECT)],
        "a",
    )
    matched = _pair(compare_runs(first, second))["matched"]
    assert (matched["conversations"], matched["scenarios"]) == (1, 1)


def test_trials_show_how_much_changes_by_chance() -> None:
    def run(outcomes: Sequence[Sequence[int]]) -> Run:
        rows = [
            row(record("a", task, trial=trial, outcome=ep.Outcome.ValueType(outcome)))
            for task, trials in enumerate(outcomes)
            for trial, outcome in enumerate(trials)
        ]
        return _run(rows, "a", trials=2)

    pair = _pair(compare_runs(run([(FULL, DENY), (FULL, FULL)]), run([(FULL, FULL), (FULL, FULL)])))
    assert pair["outcomes"]["noise"] == [0.5, 0.0]
    assert (pair["outcomes"]["changed"]["changed"], pair["outcomes"]["scenarios_changed"]) == (1, 1)


def test_agents_of_other_names_can_be_paired() -> None:
    first, second = _outcomes({"old": [FULL, DENY], "x": [FULL, FULL]}), _outcomes({"new": [FULL, FULL]})
    pair = _pair(compare_runs(first, second, [("old", "new")]))
    assert (pair["agents"], pair["outcomes"]["changed"]["changed"]) == (["old", "new"], 1)


def test_agents_that_a_run_does_not_have_are_refused() -> None:
    first, second = _outcomes({"old": [FULL]}), _outcomes({"new": [FULL]})
    with pytest.raises(
        InputError, match=r"No agent is in both runs: 'demo' has old, 'demo' has new; .*--agent-a"
    ):
        compare_runs(first, second)
    with pytest.raises(InputError, match="Run 'demo' has no agent 'older'; it has old"):
        compare_runs(first, second, [("older", "new")])
    with pytest.raises(InputError, match="Run 'demo' has no agent 'old'; it has new"):
        compare_runs(first, second, [("old", "old")])


def test_runs_of_different_data_sets_are_refused() -> None:
    first, second = _outcomes({"a": [FULL]}), _outcomes({"a": [FULL]})
    second.manifest.dataset.digest = "ff" * 32
    with pytest.raises(
        InputError, match="digest abababababab, run 'demo' played 'builtin' with digest ffffffffffff"
    ):
        compare_runs(first, second)


def test_judges_that_are_not_the_same_are_not_compared() -> None:
    def run(**models: str) -> Run:
        infos = {name: judge_pb2.JudgeInfo(model=model, version="1") for name, model in models.items()}
        return _run(rows_of({"a": [FULL]}), "a", verdicts=Verdicts(rubric(), infos))

    found = compare_runs(run(same="m", other="m", gone="m"), run(same="m", other="n", new="m"))
    assert found["judges"] == {
        "same": None,
        "other": "its model or its sampling is not the same in both runs",
        "gone": "it did not judge run 'demo'",
        "new": "it did not judge run 'demo'",
    }
    assert list(_pair(found)["scores"]) == ["same"]
    without = compare_runs(run(same="m"), _outcomes({"a": [FULL]}))
    assert without["judges"] == {"same": "it did not judge run 'demo'"}


def test_a_newer_version_of_a_judge_is_the_same_judge() -> None:
    infos = [judge_pb2.JudgeInfo(model="m", version=version, prompt_digest=version) for version in ("1", "2")]
    first, second = (
        _run(rows_of({"a": [FULL]}), "a", verdicts=Verdicts(rubric(), {"j": info})) for info in infos
    )
    assert compare_runs(first, second)["judges"] == {"j": None}


def test_metrics_of_an_edited_panel_are_not_compared() -> None:
    first, second = _judged(2.0, "a"), _judged(4.0, "a")
    edited = rubric(version=2)
    edited.panels[1].digest = "digest-of-another-talk"
    records = []
    for unit in second.rows:
        for made in simple(unit.unit_id, dict.fromkeys(KEYS, 4.0)):
            made.rubric.version = 2
            if made.verdict.panel == "talk":
                made.verdict.panel_digest = "digest-of-another-talk"
            records.append(made)
    verdicts = Verdicts(edited, {"j": judge_pb2.JudgeInfo(model="j-model", samples=1)}).extend(records)
    scores = _pair(compare_runs(first, _run(second.rows, "a", verdicts=verdicts)))["scores"]["j"]
    assert scores["asked_differently"] == ["verbosity", "tone", "customer_tone"]
    assert scores["dimensions"]["policy"]["verdict"] == "better"
    assert scores["dimensions"]["behaviour"]["verdict"] == "withheld"


def test_metrics_are_found_by_key_when_the_rubric_is_in_another_order() -> None:
    first = _judged(2.0, "a")
    turned = judge_pb2.Rubric()
    turned.CopyFrom(rubric())
    del turned.metrics[:]
    turned.metrics.extend(reversed(rubric().metrics))
    records = [
        made for unit in first.rows for made in simple(unit.unit_id, {"support": 5.0, "reasoning": 1.0})
    ]
    verdicts = Verdicts(turned, {"j": judge_pb2.JudgeInfo(model="j-model", samples=1)}).extend(records)
    metrics = _pair(compare_runs(first, _run(first.rows, "a", verdicts=verdicts)))["scores"]["j"]["metrics"]
    assert metrics["support"]["mean"] > 2.0
    assert metrics["reasoning"]["mean"] < 0.0


def test_tokens_are_those_of_the_matched_conversations() -> None:
    made = [record("a", task) for task in range(3)]
    for each in made:
        usage = ep.Usage(prompt_tokens=100, model_calls=1)
        each.episode.model_calls.add(role=ep.ROLE_AGENT, usage=usage)
    first = _run([row(each) for each in made], "a")
    second = _run([row(each) for each in made[:2]], "a")
    tokens = _pair(compare_runs(first, second))["tokens"]
    assert [run["agent"]["prompt_tokens"] for run in tokens] == [200, 200]
    # Made, but not reported.
    assert tokens[0]["agent"]["completion_tokens"] is None


def test_rehearsal_of_either_run_is_marked() -> None:
    plain, rehearsed = _outcomes({"a": [FULL]}), _run(rows_of({"a": [FULL]}), "a", rehearsal=True)
    assert compare_runs(plain, plain)["rehearsal"] is False
    assert compare_runs(plain, rehearsed)["rehearsal"] is True


def test_changes_are_passed_through() -> None:
    run = _outcomes({"a": [FULL]})
    assert compare_runs(run, run, changes=["agent a: model was m and is n"])["changes"] == [
        "agent a: model was m and is n"
    ]
