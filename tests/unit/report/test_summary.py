from __future__ import annotations

import json
import random
from typing import Any

import pytest

from policysweep.errors import InputError
from policysweep.report.outcomes import KEYS
from policysweep.report.rows import Row, row
from policysweep.report.summary import summarise
from policysweep.v1 import agent_pb2, run_pb2
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import policybank_pb2 as pb

from .records import DENY, FULL, agent_fault, failure, manifest, record, rows_of, sweep

AGENTS = ("strict", "fair", "lenient")


def _summary(rows: list[Row], planned: int, *agents: str, **options: Any) -> dict[str, Any]:
    return summarise(rows, dict.fromkeys(agents, planned), [], manifest(*agents), **options)


def _drawn(trials: int = 1) -> list[Row]:
    return [row(made) for made in sweep(AGENTS, tasks=12, per_task=3, trials=trials)]


def test_it_is_json_and_does_not_depend_on_the_order_of_rows_or_plan() -> None:
    rows, failed = _drawn(), [failure("fair", "x", ep.FAULT_PARTY_INFRASTRUCTURE, "AGENT_TIMEOUT")]
    shuffled = list(rows)
    random.Random(3).shuffle(shuffled)
    made = manifest(*AGENTS)
    first = summarise(rows, dict.fromkeys(AGENTS, 40), failed, made)
    second = summarise(iter(shuffled), dict.fromkeys(reversed(AGENTS), 40), iter(failed), made)
    assert json.dumps(first, allow_nan=False) == json.dumps(second, allow_nan=False)
    assert json.loads(json.dumps(first)) == first


def test_the_seed_changes_the_bootstrap_only() -> None:
    first, second = (_summary(_drawn(), 36, *AGENTS, seed=seed) for seed in (0, 1))
    assert first["agreement"]["fleiss_kappa"]["interval"] != second["agreement"]["fleiss_kappa"]["interval"]
    assert first["agreement"]["all_agree"]["interval"] == second["agreement"]["all_agree"]["interval"]
    assert second["methods"]["seed"] == 1


def test_one_success_and_three_failures_are_not_a_hundred_percent() -> None:
    failed = [
        failure("fair", f"unit-{number}", ep.FAULT_PARTY_INFRASTRUCTURE, "MODEL_SERVER_UNAVAILABLE")
        for number in range(3)
    ]
    found = summarise([row(record())], {"fair": 4}, failed, manifest("fair"))
    section = found["agents"]["fair"]
    assert section["coverage"] == {
        "planned": 4,
        "recorded": 1,
        "scored": 1,
        "failed": 3,
        "pending": 0,
        "coverage": 0.25,
    }
    assert section["outcomes"]["shares"] is None
    assert section["outcomes"]["coarse"]["shares"] is None
    assert section["outcomes"]["counts"]["RETURN_REFUND_FULL_BANK"] == 1
    assert section["failures"] == {"INFRASTRUCTURE": {"MODEL_SERVER_UNAVAILABLE": 3}}
    assert found["notes"][0] == {
        "about": "outcome shares of fair",
        "reason": "1 of 4 planned units are scored: a coverage of 25.0% is below the minimum of 95%",
    }


def test_units_that_were_not_run_yet_lower_the_coverage() -> None:
    found = _summary(rows_of({"fair": [FULL] * 9}), 10, "fair")
    assert found["units"]["pending"] == 1
    assert found["agents"]["fair"]["outcomes"]["withheld"].startswith("9 of 10 planned units are scored")


def test_the_threshold_is_inclusive_and_can_be_set() -> None:
    rows = rows_of({"fair": [FULL] * 19})
    assert _summary(rows, 20, "fair")["agents"]["fair"]["outcomes"]["withheld"] is None
    assert _summary(rows, 20, "fair", min_coverage=0.96)["agents"]["fair"]["outcomes"]["shares"] is None
    assert _summary(rows, 200, "fair", min_coverage=0.0)["agents"]["fair"]["outcomes"]["withheld"] is None


def test_coverage_just_below_the_threshold_does_not_read_like_it() -> None:
    rows = rows_of({"fair": [FULL] * 9_496}, per_task=100)
    reason = _summary(rows, 10_000, "fair")["agents"]["fair"]["outcomes"]["withheld"]
    assert "a coverage of 94.9% is below the minimum of 95%" in reason


@pytest.mark.parametrize("share", [-0.1, 1.5, float("nan")])
def test_a_threshold_outside_0_to_1_is_refused(share: float) -> None:
    with pytest.raises(InputError, match="share between 0 and 1"):
        _summary([], 1, "fair", min_coverage=share)


def test_agent_faults_count_against_the_agent_and_others_lower_the_coverage() -> None:
    others = (
        (ep.FAULT_PARTY_CUSTOMER, ep.END_REASON_ERROR_LIMIT),
        (ep.FAULT_PARTY_TOOLS, ep.END_REASON_TOOL_FAULT),
        (ep.FAULT_PARTY_BUDGET, ep.END_REASON_TOKEN_BUDGET),
    )
    rows = [
        row(record(task=1)),
        row(agent_fault(task=2)),
        *(row(record(task=5 + n, fault=fault, reason=reason)) for n, (fault, reason) in enumerate(others)),
        row(record(task=9, outcome=ep.OUTCOME_UNSPECIFIED)),
    ]
    section = _summary(rows, 6, "fair", min_coverage=0.3)["agents"]["fair"]
    assert section["coverage"]["scored"] == 2
    assert section["outcomes"]["shares"]["NO_OUTCOME_AGENT_FAULT"]["share"] == 0.5
    assert section["outcomes"]["shares"]["RETURN_REFUND_FULL_BANK"]["share"] == 0.5
    assert section["faults"] == {
        "AGENT": {"units": 1, "end_reasons": {"TURN_LIMIT": 1}},
        "CUSTOMER": {"units": 1, "end_reasons": {"ERROR_LIMIT": 1}},
        "TOOLS": {"units": 1, "end_reasons": {"TOOL_FAULT": 1}},
        "BUDGET": {"units": 1, "end_reasons": {"TOKEN_BUDGET": 1}},
        "UNSTATED": {"units": 1, "end_reasons": None},
    }
    assert sum(section["end_reasons"].values()) == 6


def test_shares_sum_to_one_and_lie_in_their_intervals() -> None:
    section = _summary(_drawn(), 36, *AGENTS)["agents"]["strict"]["outcomes"]
    for distribution in (section, section["coarse"]):
        shares = distribution["shares"].values()
        assert sum(share["share"] for share in shares) == pytest.approx(1.0)
        for share in shares:
            for name in ("interval", "wilson", "bootstrap"):
                low, high = share[name] or (share["share"],) * 2
                assert low <= share["share"] <= high
    assert 12 <= section["effective_units"] <= 36
    assert section["coarse"]["counts"]["DENY"] == section["counts"]["DENY_REFUND"]


def test_all_agree_by_hand() -> None:
    rows = rows_of({"a": [1, 2, 4, 0], "b": [1, 3, 4, 0], "c": [1, 2, 6, 0]})
    found = _summary(rows, 4, "a", "b", "c")["agreement"]
    assert found["matched"] == {"conversations": 4, "planned": 4, "coverage": 1.0}
    assert (found["all_agree"]["agreed"], found["all_agree"]["n"], found["all_agree"]["rate"]) == (1, 4, 0.25)
    assert found["all_agree"]["without_outcome"] == 1
    # FULL 1/4 each; PARTIAL 1/4, 0, 1/4; DENY 1/4, 1/4, 0: only FULL can be agreed on by chance.
    assert found["all_agree"]["chance"] == pytest.approx(1 / 64)
    # Coarse: grant in the first two scenarios by all.
    assert (found["coarse_all_agree"]["agreed"], found["coarse_all_agree"]["rate"]) == (2, 0.5)
    pairs = {tuple(pair["agents"]): pair for pair in found["pairwise"]}
    assert list(pairs) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert pairs["a", "b"]["all_agree"]["rate"] == 0.5
    assert pairs["a", "b"]["cohen_kappa"]["value"] is not None
    assert pairs["a", "b"]["cohen_kappa"]["reason"] == "a bootstrap needs at least 10 tasks, there are 4"


def test_agreement_is_withheld_when_too_few_conversations_match() -> None:
    """Each agent is covered well enough, but their gaps lie apart."""
    outcomes: dict[str, list[int]] = {"a": [FULL] * 100, "b": [FULL, DENY] * 50, "c": [DENY] * 100}
    rows = [
        made
        for made in rows_of(outcomes, per_task=5)
        if int(made.task_id[-3:]) != {"a": 0, "b": 1, "c": 2}[made.agent]
    ]
    found = _summary(rows, 100, "a", "b", "c")
    assert all(section["outcomes"]["withheld"] is None for section in found["agents"].values())
    agreement = found["agreement"]
    assert agreement["withheld"] == (
        "85 of 100 planned conversations have a scored unit of each agent: "
        "a coverage of 85.0% is below the minimum of 95%"
    )
    assert set(agreement["all_agree"].values()) == {None}
    assert agreement["fleiss_kappa"]["value"] is None
    assert agreement["pairwise"][0]["cohen_kappa"]["value"] is None
    assert [note["about"] for note in found["notes"]] == [
        "agreement between all agents",
        "pairwise agreement of a and b, a and c, b and c",
    ]


def test_one_agent_has_nobody_to_agree_with() -> None:
    found = _summary(rows_of({"a": [1, 2]}), 2, "a")
    assert found["agreement"]["withheld"] == "it needs at least two agents"
    assert found["agreement"]["pairwise"] == []
    assert found["agents"]["a"]["outcomes"]["shares"]["RETURN_REFUND_FULL_BANK"]["share"] == 0.5


def test_a_run_without_records() -> None:
    found = _summary([], 5, "a", "b")
    assert found["units"] == {
        "planned": 10,
        "recorded": 0,
        "scored": 0,
        "failed": 0,
        "pending": 10,
        "coverage": 0.0,
    }
    assert found["agents"]["a"]["outcomes"]["withheld"] == "0 of 5 planned units are scored"
    assert found["agents"]["a"]["turns_mean"] is None
    assert found["agents"]["a"]["duration_seconds"] == {"median": None, "p95": None}
    assert found["agreement"]["tasks"] == {}


def test_a_run_without_agents_or_units() -> None:
    assert summarise([], {}, [], manifest())["units"]["coverage"] is None
    assert _summary([], 0, "a")["agents"]["a"]["coverage"]["coverage"] is None


def test_a_constant_outcome_has_no_kappa_and_says_so() -> None:
    found = _summary(rows_of({"a": [1] * 12, "b": [1] * 12}), 12, "a", "b")
    assert found["agreement"]["all_agree"]["rate"] == 1.0
    assert found["agreement"]["all_agree"]["chance"] == 1.0
    assert found["agreement"]["fleiss_kappa"]["value"] is None
    assert {note["about"] for note in found["notes"]} == {"Fleiss' kappa", "pairwise agreement of a and b"}


def test_trials_are_matched_and_give_the_noise_ceiling() -> None:
    trials = {"a": [(1, 1, 1), (1, 4, 1)], "b": [(1, 1, 4), (4, 4, 4)]}
    rows = [
        row(record(agent, task, trial=trial, outcome=ep.Outcome.ValueType(outcome)))
        for agent, tasks in trials.items()
        for task, outcomes in enumerate(tasks)
        for trial, outcome in enumerate(outcomes)
    ]
    found = summarise(rows, {"a": 6, "b": 6}, [], manifest("a", "b", trials=3))["agreement"]
    # Task 0: trials 0 and 1; task 1: trial 1.
    assert (found["all_agree"]["agreed"], found["all_agree"]["n"]) == (3, 6)
    assert [(rate["trials"], rate["value"]) for rate in found["self"]["a"]] == [
        (2, pytest.approx((1 + 1 / 3) / 2)),
        (3, 0.5),
    ]
    assert [(rate["trials"], rate["cases"]) for rate in found["self"]["b"]] == [(2, 2), (3, 2)]


def test_a_missing_trial_leaves_its_case_out_of_the_rates_that_need_it() -> None:
    rows = _drawn(trials=4)
    gone = [
        made for made in rows if (made.agent, made.trial, made.scenario_id) != ("fair", 3, "scenario_000_0")
    ]
    planned = dict.fromkeys(AGENTS, 144)
    rates = summarise(gone, planned, [], manifest(*AGENTS, trials=4), min_coverage=0.5)["agreement"]["self"]
    assert [rate["trials"] for rate in rates["fair"]] == [2, 3, 4]
    full = summarise(rows, planned, [], manifest(*AGENTS, trials=4), min_coverage=0.5)["agreement"]["self"]
    assert rates["fair"][2]["left_out"] == full["fair"][2]["left_out"] + 1
    assert rates["fair"][0]["left_out"] == full["fair"][0]["left_out"]
    assert rates["strict"] == full["strict"]


def test_swept_personas_are_matched_by_persona() -> None:
    rows = [
        row(record(agent, task, persona=persona, outcome=FULL if persona == 1 or agent == "a" else DENY))
        for agent in ("a", "b")
        for task in range(3)
        for persona in (ep.AGENT_PERSONA_DIRECT, ep.AGENT_PERSONA_FAIR)
    ]
    made = manifest("a", "b", assignment=run_pb2.PERSONA_ASSIGNMENT_SWEPT)
    found = summarise(rows, {"a": 6, "b": 6}, [], made)
    assert (found["agreement"]["all_agree"]["agreed"], found["agreement"]["all_agree"]["n"]) == (3, 6)
    assert found["run"]["persona_assignment"] == "PERSONA_ASSIGNMENT_SWEPT"


def test_tasks_are_described_by_their_entropy() -> None:
    rows = rows_of({"a": [1, 1, 1, 0], "b": [1, 1, 4, 4]}, per_task=2)
    tasks = _summary(rows, 4, "a", "b")["agreement"]["tasks"]
    assert tasks["task_000"] == {
        "units": 4,
        "no_outcome": 0,
        "entropy_bits": 0.0,
        "between_agents_bits": 0.0,
    }
    assert tasks["task_001"]["no_outcome"] == 1
    assert tasks["task_001"]["entropy_bits"] == pytest.approx(1.5)
    assert tasks["task_001"]["between_agents_bits"] == pytest.approx(1.0)


def test_mismatches_and_errors_are_summed() -> None:
    made = [record(task=task) for task in range(3)]
    for one in made[:2]:
        one.episode.reconciliation.mismatch = True
        one.episode.reconciliation.declared = DENY
        one.episode.errors.agent_malformed_calls = 2
    made[1].episode.reconciliation.executed = FULL
    section = _summary([row(one) for one in made], 3, "fair")["agents"]["fair"]
    assert section["mismatches"] == {
        "units": 2,
        "pairs": [
            {"declared": "DENY_REFUND", "executed": None, "units": 1},
            {"declared": "DENY_REFUND", "executed": "RETURN_REFUND_FULL_BANK", "units": 1},
        ],
    }
    assert section["errors"]["agent_malformed_calls"] == 4


def test_tokens_are_summed_and_what_is_missing_is_counted() -> None:
    first, second = record(task=0), record(task=1)
    usage = ep.Usage(prompt_tokens=100, cached_prompt_tokens=80, completion_tokens=10, model_calls=1)
    first.episode.model_calls.add(role=ep.ROLE_AGENT, usage=usage)
    second.episode.model_calls.add(role=ep.ROLE_AGENT, usage=ep.Usage(model_calls=3))
    second.episode.model_calls.add(role=ep.ROLE_CUSTOMER, usage=ep.Usage(model_calls=1))
    tokens = _summary([row(first), row(second)], 2, "fair")["agents"]["fair"]["tokens"]
    assert tokens["agent"] == {
        "answers": 2,
        "model_calls": 4,
        "prompt_tokens": 100,
        "prompt_unreported": 1,
        "cached_tokens": 80,
        "cached_unreported": 1,
        "cached_share": 0.8,
        "completion_tokens": 10,
        "completion_unreported": 1,
    }
    # Nothing reported is not zero.
    assert (tokens["customer"]["prompt_tokens"], tokens["customer"]["cached_share"]) == (None, None)


def test_rehearsal_is_marked_by_the_manifest_or_by_any_record() -> None:
    assert summarise([], {"a": 1}, [], manifest("a", rehearsal=True))["rehearsal"] is True
    assert _summary([], 1, "a")["rehearsal"] is False
    made = record("a")
    made.episode.rehearsal = True
    found = _summary([row(made)], 1, "a")
    assert found["rehearsal"] is True
    assert found["agents"]["a"]["rehearsal_units"] == 1


def test_the_run_names_all_digests() -> None:
    made = manifest("a")
    made.simulator.prompt_digest, made.simulator.tools_digest = "cd" * 32, "ef" * 32
    made.agents[0].info.CopyFrom(agent_pb2.AgentInfo(variant="baseline", prompt_digest="12" * 32))
    made.created_at.GetCurrentTime()
    found = summarise([], {"a": 1}, [], made)
    assert found["run"]["dataset"]["digest"] == "ab" * 32
    assert found["run"]["simulator"]["prompt_digest"] == "cd" * 32
    assert found["run"]["simulator"]["tools_digest"] == "ef" * 32
    assert found["agents"]["a"]["info"]["prompt_digest"] == "12" * 32
    assert set(found["agents"]["a"]["info"]["sampling"]) == {"temperature", "top_p", "max_tokens"}
    assert (found["run"]["trials"], found["run"]["seed"]) == (1, 7)
    assert "created_at" not in found["run"]


def test_an_agent_s_bank_is_named_with_it() -> None:
    made = manifest("a")
    assert summarise([], {"a": 1}, [], made)["agents"]["a"]["bank"] is None
    method = pb.MEMORY_METHOD_POLICY_BANK
    made.agents[0].bank.CopyFrom(run_pb2.AgentBank(bank_id="b", revision=3, digest="aa", method=method))
    assert summarise([], {"a": 1}, [], made)["agents"]["a"]["bank"] == {
        "bank_id": "b",
        "revision": 3,
        "method": "MEMORY_METHOD_POLICY_BANK",
        "digest": "aa",
        "rehearsal": False,
    }


def test_every_category_is_named() -> None:
    found = _summary(rows_of({"a": list(range(8))}), 8, "a")
    assert found["agents"]["a"]["outcomes"]["counts"] == dict.fromkeys(KEYS, 1)
    assert found["schema_version"] == 1


def test_plan_and_manifest_must_fit() -> None:
    with pytest.raises(InputError, match=r"manifest has the agents \['a'\], the plan has \['b'\]"):
        summarise([], {"b": 1}, [], manifest("a"))
    with pytest.raises(InputError, match=r"Agent 'a' has 2 records and 0 failed units, but only 1 planned"):
        _summary(rows_of({"a": [1, 1]}), 1, "a")
