from __future__ import annotations

import io
import random
from math import comb
from statistics import fmean
from typing import Any

import pytest
from rich.console import Console

from policysweep.errors import InputError
from policysweep.report.reading import encode_summary
from policysweep.report.streams import sentences
from policysweep.report.streams.grid import stream_plan
from policysweep.report.streams.html.index import page_index
from policysweep.report.streams.html.page import stream_page
from policysweep.report.streams.rows import stream_row
from policysweep.report.streams.summary import StreamResults, material_of, summarise
from policysweep.report.streams.terminal import render
from policysweep.streams.inputs import inputs_of
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2, run_pb2, stream_pb2, tau2_pb2
from policysweep.v1 import policybank_pb2 as pb

from .samples import SampleRun, play, sample_run


def results(run: SampleRun, **changes: Any) -> StreamResults:
    rows = [stream_row(record) for record in run.records]
    plan = stream_plan(run.manifest, run.inputs)
    return StreamResults(run.manifest, plan, run.inputs.gaps, rows, run.failures, **changes)


def summary_of(run: SampleRun, **changes: Any) -> dict[str, Any]:
    found = results(run, **changes)
    return summarise(found, material_of(found))


@pytest.fixture
def run() -> SampleRun:
    return sample_run()


def arm(summary: dict[str, Any], method: str, regime: str) -> dict[str, Any]:
    return next(each for each in summary["arms"] if (each["method"], each["regime"]) == (method, regime))


def records_of(run: SampleRun, method: int, task_id: str) -> list[stream_pb2.StreamRecord]:
    streams = {stream.stream_id for stream in run.streams() if stream.method == method}
    return [each for each in run.records if each.task.stream_id in streams and each.task.task_id == task_id]


def printed(summary: dict[str, Any], width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width)
    render(summary, console)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text


def test_arms_come_in_the_order_of_the_manifest_and_are_told_apart(run: SampleRun) -> None:
    titles = [each["title"] for each in summary_of(run)["arms"]]
    assert titles == [
        "No memory",
        "ReasoningBank",
        "PolicyBank (explanation)",
        "PolicyBank (reward)",
        "Human oracle",
    ]


def test_the_summary_does_not_depend_on_the_order_of_the_records(run: SampleRun) -> None:
    one = encode_summary(summary_of(run))
    random.Random(3).shuffle(run.records)
    assert encode_summary(summary_of(run)) == one


def test_pass_counts_are_those_of_the_records(run: SampleRun) -> None:
    found = arm(summary_of(run), "policy_bank", "explanation")["groups"]["sisters"]
    streams = {
        stream.stream_id
        for stream in run.streams()
        if (stream.method, stream.regime) == (pb.MEMORY_METHOD_POLICY_BANK, pb.FEEDBACK_REGIME_EXPLANATION)
    }
    sisters = [each for each in run.records if each.task.stream_id in streams and "-" in each.task.task_id]
    passed = sum(each.grade.reward == 1 for each in sisters)
    assert (found["passed"], found["scored"]) == (passed, len(sisters))
    assert found["pass"][0]["value"] == pytest.approx(passed / len(sisters))
    assert found["pass"][1]["value"] <= found["pass"][0]["value"]


def test_pass_k_is_that_of_the_records_with_trials_missing(run: SampleRun) -> None:
    for record in records_of(run, pb.MEMORY_METHOD_HUMAN_ORACLE, "2-2")[:3]:
        record.episode.end.fault = ep.FAULT_PARTY_TOOLS
    streams = {each.stream_id: each for each in run.streams() if each.method == pb.MEMORY_METHOD_HUMAN_ORACLE}
    trials: dict[int, dict[str, list[bool]]] = {seed: {} for seed in run.manifest.seeds}
    for record in run.records:
        stream = streams.get(record.task.stream_id)
        if stream and "-" in record.task.task_id and not record.episode.end.fault:
            trials[stream.seed].setdefault(record.task.task_id, []).append(record.grade.reward == 1)
    found = arm(summary_of(run), "human_oracle", "oracle")["groups"]["sisters"]["pass"]
    for figure in found:
        k = figure["k"]
        by_seed = [
            fmean(comb(sum(each), k) / comb(len(each), k) for each in tasks.values() if len(each) >= k)
            for tasks in trials.values()
        ]
        assert figure["by_seed"] == pytest.approx(by_seed)
        assert figure["value"] == pytest.approx(fmean(by_seed))


@pytest.mark.parametrize("fault", [ep.FAULT_PARTY_CUSTOMER, ep.FAULT_PARTY_TOOLS, ep.FAULT_PARTY_BUDGET])
def test_a_fault_that_is_not_the_agents_is_a_missing_trial(
    run: SampleRun, fault: ep.FaultParty.ValueType
) -> None:
    before = arm(summary_of(run), "none", "none")["coverage"]
    records_of(run, pb.MEMORY_METHOD_NONE, "9")[0].episode.end.fault = fault
    after = arm(summary_of(run), "none", "none")
    assert after["coverage"]["scored"] == before["scored"] - 1
    name = ep.FaultParty.Name(fault).removeprefix("FAULT_PARTY_")
    assert after["ends"]["faults"] == {name: {"USER_STOP": 1}}
    second = after["groups"]["other_originals"]["pass"][1]
    assert second["left_out"] == 1


def test_a_fault_of_the_agent_is_a_failure(run: SampleRun) -> None:
    record = records_of(run, pb.MEMORY_METHOD_NONE, "9")[0]
    record.episode.end.fault = ep.FAULT_PARTY_AGENT
    record.episode.end.reason = ep.END_REASON_STEP_LIMIT
    record.grade.reward = record.grade.strict_reward = 0.0
    found = arm(summary_of(run), "none", "none")
    assert found["coverage"]["scored"] == found["coverage"]["planned"]
    assert found["ends"]["faults"] == {"AGENT": {"STEP_LIMIT": 1}}


def test_a_grade_without_reward_is_a_missing_trial(run: SampleRun) -> None:
    record = records_of(run, pb.MEMORY_METHOD_POLICY_BANK, "9")[0]
    record.grade.ClearField("reward")
    record.grade.absent_reason = judge_pb2.ABSENT_REASON_UNPARSEABLE
    record.ClearField("revision")
    record.bank_revision_after = record.bank_revision_before
    record.missing_feedback.party = ep.FAULT_PARTY_JUDGE
    record.missing_feedback.reason = "UNPARSEABLE"
    found = arm(summary_of(run), "policy_bank", "explanation")
    assert found["ends"]["absent_rewards"] == {"UNPARSEABLE": 1}
    assert found["feedback"]["missing"] == {"JUDGE": {"UNPARSEABLE": 1}}
    assert "lesson missing (judge: unparseable) 1" in " ".join(sentences.went_wrong(summary_of(run)))


def test_headlines_are_withheld_below_the_least_coverage(run: SampleRun) -> None:
    streams = {stream.stream_id for stream in run.streams() if stream.method == pb.MEMORY_METHOD_POLICY_BANK}
    run.records = [
        each for each in run.records if each.task.stream_id not in streams or each.task.position < 30
    ]
    summary = summary_of(run)
    found = arm(summary, "policy_bank", "explanation")
    assert found["groups"]["sisters"]["pass"] == []
    assert "is below the minimum of 95%" in found["groups"]["sisters"]["withheld"]
    assert found["gap_closed"]["pass"] == []
    assert found["streams"] == {"planned": 4, "complete": 0}
    text = printed(summary)
    assert "withheld" in text
    assert "is not given: " in text


def test_a_failure_stops_a_stream_and_is_told(run: SampleRun) -> None:
    last = run.records[-1].task
    cut = [each for each in run.records if each.task.stream_id == last.stream_id and each.task.position >= 20]
    run.records = [each for each in run.records if each not in cut]
    attempt = run_pb2.FailedAttempt(
        party=ep.FAULT_PARTY_INFRASTRUCTURE, reason="MODEL_SERVER_UNAVAILABLE", message="Nobody answers."
    )
    run.failures = [stream_pb2.StreamFailure(task=cut[0].task, attempts=[attempt])]
    summary = summary_of(run)
    stream = next(each for each in summary["streams"] if each["failures"])
    assert stream["failures"][0]["reason"] == "MODEL_SERVER_UNAVAILABLE"
    found = next(each for each in summary["arms"] if each["coverage"]["failed"])
    assert found["coverage"]["failed"] == 1
    assert found["coverage"]["pending"] == len(cut) - 1
    assert "failed task (infrastructure: model server unavailable) 1" in " ".join(
        sentences.went_wrong(summary)
    )


def test_a_failure_whose_task_has_a_record_is_history(run: SampleRun) -> None:
    run.failures = [stream_pb2.StreamFailure(task=run.records[0].task)]
    assert all(each["coverage"]["failed"] == 0 for each in summary_of(run)["arms"])


def test_records_outside_the_plan_and_twice_are_refused(run: SampleRun) -> None:
    run.records[3].task.task_id = "no such task"
    with pytest.raises(InputError, match="belongs to no planned task"):
        summary_of(run)
    run.records[3].CopyFrom(run.records[4])
    run.records[3].task.unit_id = "another"
    with pytest.raises(InputError, match="have the same place in stream"):
        summary_of(run)


def test_the_strict_reading_is_shown_where_it_differs(run: SampleRun) -> None:
    assert not any("strict" in each for each in sentences.conventions(summary_of(run)))
    for record in records_of(run, pb.MEMORY_METHOD_HUMAN_ORACLE, "3-1"):
        record.grade.reward, record.grade.strict_reward = 1.0, 0.0
    told = [each for each in sentences.conventions(summary_of(run)) if "strict" in each]
    assert len(told) == 1
    assert told[0].startswith("airline, Human oracle, sisters, by the strict reading of COMMUNICATE: pass^1 ")


def test_both_conventions_for_missing_trials_are_shown_where_they_differ(run: SampleRun) -> None:
    records_of(run, pb.MEMORY_METHOD_HUMAN_ORACLE, "3-1")[0].episode.end.fault = ep.FAULT_PARTY_CUSTOMER
    told = [each for each in sentences.conventions(summary_of(run)) if "missing trials as failures" in each]
    assert len(told) == 1
    assert "airline, Human oracle, sisters" in told[0]


def test_regimes_are_compared_with_the_default_one(run: SampleRun) -> None:
    (found,) = summary_of(run)["regimes"]
    assert (found["method"], found["regime"], found["baseline"]) == ("policy_bank", "reward", "explanation")
    assert found["pass"][0]["value"] < -0.2
    assert found["pass"][0]["interval"][1] < 0
    assert found["pairs"]["lost"] > found["pairs"]["won"]


def test_regimes_are_named_with_the_title_of_their_method(run: SampleRun) -> None:
    (found,) = summary_of(run)["regimes"]
    assert found["title"] == "PolicyBank"
    assert "PolicyBank, airline" in printed(summary_of(run))


def test_a_lost_control_is_told_as_what_it_shows_and_none_lost_as_none(run: SampleRun) -> None:
    summary = summary_of(run)
    controls = arm(summary, "policy_bank", "explanation")["controls"]
    trials, places = controls["pairs"]["n"], "On the controls of airline it fails where no memory passes in "

    def told() -> str:
        return next(text for each in sentences.lead(summary) if (text := "".join(each)).startswith(places))

    controls["pairs"]["lost"] = 0
    assert told() == f"{places}0 of {trials} trials: no lesson is seen to be carried too far."
    controls["pairs"]["lost"] = 3
    assert told() == f"{places}3 of {trials} trials: lessons carried too far, or other harm."
    controls["rate"] = {"value": None, "interval": None, "reason": "why"}
    lead = ["".join(each) for each in sentences.lead(summary)]
    assert "How often it carries lessons too far in airline is not given: why." in lead


def test_without_no_memory_it_is_said_that_nothing_can_be_won(run: SampleRun) -> None:
    said = "No method without a memory was played, so no outcome counts as won or lost."
    summary = summary_of(run)
    assert said not in sentences.conventions(summary)
    summary["arms"] = [each for each in summary["arms"] if each["method"] != "none"]
    assert said in sentences.conventions(summary)


def test_no_name_of_a_method_is_broken_at_80_columns(run: SampleRun) -> None:
    words = printed(summary_of(run), width=80).split()
    assert words.count("ReasoningBank") > 5
    assert not [word for word in words if word.startswith("Reasoning") and "ReasoningBank" not in word]


def test_failures_of_controls_by_overreach_are_counted_where_the_state_is_known(run: SampleRun) -> None:
    assert arm(summary_of(run), "policy_bank", "explanation")["controls"]["overreach"] is None
    failed = [
        each
        for task_id in ("c1", "c2")
        for each in records_of(run, pb.MEMORY_METHOD_REASONING_BANK, task_id)
        if each.grade.reward == 0
    ]
    assert failed
    failed[0].grade.database_hash = "over"
    known = {("airline", "c1"): "over", ("airline", "c2"): "over"}
    found = arm(summary_of(run, overreach=known), "reasoning_bank", "explanation")["controls"]
    assert found["overreach"] == {"failed": len(failed), "overreached": 1}


def test_one_rehearsed_record_marks_the_whole_report(run: SampleRun) -> None:
    run.manifest.rehearsal = False
    assert summary_of(run)["rehearsal"]
    assert "REHEARSAL" in printed(summary_of(run))
    for record in run.records:
        record.episode.rehearsal = False
    assert not summary_of(run)["rehearsal"]
    assert "REHEARSAL" not in printed(summary_of(run))


def test_tokens_are_told_by_role(run: SampleRun) -> None:
    found = arm(summary_of(run), "policy_bank", "explanation")["costs"]["tokens"]
    tasks = 4 * 36
    assert found["agent"]["prompt_tokens"] == tasks * 3200
    assert found["user"]["model_calls"] == tasks
    assert found["curator"]["completion_tokens"] == tasks * 200
    assert found["judge"]["answers"] == 0


@pytest.mark.parametrize("width", [80, 120])
def test_the_tables_fit_and_hold_the_headlines(run: SampleRun, width: int) -> None:
    text = printed(summary_of(run), width)
    assert max(map(len, text.splitlines())) <= width
    for title in ("Airline: sisters passed in %", "share of the gap", "over the family", "What came out"):
        assert title in text


def test_names_from_outside_are_plain_text(run: SampleRun) -> None:
    for record in run.records:
        for call in record.episode.model_calls:
            call.consulted_spec_ids[:] = ["[red]x\x1b[2J"] if call.consulted_spec_ids else []
        if record.revision.capability_id:
            record.revision.capability_id = "[red]x\x1b[2J"
    text = printed(summary_of(run))
    assert "\x1b[2J" not in text
    assert "[red]x" in text


def test_a_run_of_one_method_needs_nothing_to_compare_with(run: SampleRun) -> None:
    del run.manifest.methods[1:]
    keep = {stream.stream_id for stream in run.streams()}
    run.records = [each for each in run.records if each.task.stream_id in keep]
    summary = summary_of(run)
    (found,) = summary["arms"]
    assert found["gap_closed"] is found["retention"] is found["controls"] is None
    assert "no method learns" in printed(summary)


def test_several_agents_are_told_apart_and_each_has_its_sentences(run: SampleRun) -> None:
    run.manifest.agents.add(name="other")
    for stream in list(run.streams()):
        if stream.agent == "other":
            run.records += play(run.manifest, run.inputs, stream)
    summary = summary_of(run)
    titles = [each["title"] for each in summary["arms"]]
    assert titles[0] == "No memory (solo)"
    assert "PolicyBank (explanation, other)" in titles
    assert len(set(titles)) == 10
    lead = ["".join(each) for each in sentences.lead(summary)]
    assert sum("of the sister tasks" in each for each in lead) == 2
    other = next(each for each in lead if "PolicyBank (explanation, other)" in each)
    assert "No memory (other)" in other
    assert "(solo)" not in other


def test_one_seed_is_told(run: SampleRun) -> None:
    assert not any("one seed" in each for each in sentences.conventions(summary_of(run)))
    assert any("one seed" in each for each in sentences.conventions(summary_of(sample_run(seeds=1))))


def test_a_run_without_records_is_told(run: SampleRun) -> None:
    run.records = []
    summary = summary_of(run)
    assert summary["units"]["coverage"] == 0
    assert "0 of 20 streams are complete" in printed(summary)


@pytest.mark.parametrize("records", [0, 1, 50, 300])
@pytest.mark.parametrize("minimum", [0.0, 0.95])
def test_a_run_in_the_middle_has_a_report(run: SampleRun, records: int, minimum: float) -> None:
    run.records = run.records[:records]
    found = results(run)
    material = material_of(found, minimum)
    summary = summarise(found, material)
    assert printed(summary)
    assert "<h1>sample</h1>" in stream_page(summary, page_index(run.manifest, run.inputs, material))


def test_a_run_of_originals_alone_has_a_report(run: SampleRun) -> None:
    originals = [task for task in run.inputs.tasks.values() if task.kind == tau2_pb2.TAU2_TASK_KIND_ORIGINAL]
    summary = summary_of(sample_run(inputs=inputs_of(originals, [])))
    assert printed(summary)
    assert any("is not given: there are no such tasks" in "".join(each) for each in sentences.lead(summary))
    assert all(each["controls"] is each["gap_closed"] is None for each in summary["arms"])
