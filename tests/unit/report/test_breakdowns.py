from __future__ import annotations

from typing import Any

import pytest

from policysweep.errors import InputError
from policysweep.report.rows import Row, row
from policysweep.report.summary import summarise
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import scenario_pb2

from .records import DENY, FULL, agent_fault, failure, manifest, record, rows_of
from .verdict_records import scenarios, simple, taken


def _summary(rows: list[Row], planned: int, *agents: str, **options: Any) -> dict[str, Any]:
    options.setdefault("scenarios", scenarios(6, 2))
    failures = options.pop("failures", [])
    return summarise(rows, dict.fromkeys(agents, planned), failures, manifest(*agents), **options)


def _groups(summary: dict[str, Any], facet: str) -> dict[str, Any]:
    return {group["key"]: group for group in summary["breakdowns"][facet]}


def test_without_scenarios_there_is_no_breakdown() -> None:
    assert summarise([], {"a": 1}, [], manifest("a"))["breakdowns"] is None


def test_groups_of_every_facet() -> None:
    rows = rows_of({"a": [FULL] * 6 + [DENY] * 6}, per_task=2)
    summary = _summary(rows, 12, "a")
    assert list(summary["breakdowns"]) == [
        "ambiguity_type",
        "complexity",
        "customer_persona",
        "agent_persona",
    ]
    types = _groups(summary, "ambiguity_type")
    # Odd tasks have a second type: groups overlap.
    assert {key: group["tasks"] for key, group in types.items()} == {"Incompleteness": 3, "Vagueness": 6}
    assert types["Vagueness"]["agents"]["a"]["units"] == 12
    # The most complex first.
    assert [group["key"] for group in summary["breakdowns"]["complexity"]] == ["Very High", "High"]
    customers = _groups(summary, "customer_persona")
    assert [customers[key]["title"] for key in sorted(customers)] == ["Person 0", "Person 1"]
    assert customers["persona_0"]["agents"]["a"]["counts"]["DENY_REFUND"] == 3
    assert [group["title"] for group in summary["breakdowns"]["agent_persona"]] == ["Fair"]


def test_shares_by_hand() -> None:
    outcomes = [FULL, FULL, DENY, DENY, FULL, 0]
    summary = _summary(rows_of({"a": outcomes}), 6, "a", scenarios=scenarios(6))
    high = _groups(summary, "complexity")["High"]["agents"]["a"]
    # Tasks 1, 2, 4 and 5.
    assert high["units"] == 4
    assert high["shares"]["RETURN_REFUND_FULL_BANK"]["share"] == 0.5
    assert high["shares"]["NO_OUTCOME_AGENT_FAULT"]["share"] == 0.25
    assert set(high["shares"]["DENY_REFUND"]) == {"share", "interval"}
    low, upper = high["shares"]["DENY_REFUND"]["interval"]
    assert low < 0.25 < upper


def test_dimension_scores_of_a_group_rest_on_its_units_alone() -> None:
    rows = rows_of({"a": [FULL] * 6})
    keys = ("support", "reasoning")
    verdicts = [
        made
        for number, unit in enumerate(rows)
        for made in simple(unit.unit_id, dict.fromkeys(keys, 4.0 if number % 3 else 2.0))
    ]
    summary = _summary(rows, 6, "a", scenarios=scenarios(6), verdicts=taken(verdicts))
    groups = _groups(summary, "complexity")
    found = {key: group["agents"]["a"]["dimensions"]["j"]["policy"]["mean"] for key, group in groups.items()}
    assert found == {"Very High": 2.0, "High": 4.0}
    dialogue = groups["High"]["agents"]["a"]["dimensions"]["j"]["dialogue"]
    assert (dialogue["mean"], dialogue["missing"][0]["metric"]) == (None, "verbosity")


def test_a_group_that_lost_too_many_units_is_withheld_alone() -> None:
    """39 of all 40 units are covered, but only 3 of the 4 in a group."""
    rows = [made for made in rows_of({"a": [FULL] * 40}) if made.task_id != "task_003"]
    lost = failure("a", "lost", ep.FAULT_PARTY_INFRASTRUCTURE, "AGENT_TIMEOUT")
    lost.unit.scenario_id, lost.unit.agent_persona = "scenario_003_0", ep.AGENT_PERSONA_FAIR
    history = failure("a", rows[0].unit_id, ep.FAULT_PARTY_INFRASTRUCTURE, "AGENT_TIMEOUT")
    made = scenarios(40)
    for number, scenario in enumerate(made):
        scenario.task.complexity_level = "Rare" if number < 4 else "Common"
    groups = _groups(_summary(rows, 40, "a", scenarios=made, failures=[lost, history]), "complexity")
    rare = groups["Rare"]["agents"]["a"]
    assert (rare["units"], rare["coverage"], rare["shares"]) == (3, 0.75, None)
    assert rare["withheld"].startswith("3 of 4 recorded and failed units are scored")
    assert groups["Common"]["agents"]["a"]["withheld"] is None


def test_pending_units_withhold_every_group() -> None:
    groups = _groups(_summary(rows_of({"a": [FULL] * 6}), 12, "a"), "complexity")
    assert {group["agents"]["a"]["withheld"] for group in groups.values()} == {
        "6 of 12 planned units are scored: a coverage of 50.0% is below the minimum of 95%"
    }
    assert groups["High"]["agents"]["a"]["dimensions"] == {}


def test_units_that_are_not_scored_lower_the_coverage_of_their_group() -> None:
    rows = [row(record("a", task)) for task in range(5)]
    rows.append(row(record("a", 5, fault=ep.FAULT_PARTY_CUSTOMER, outcome=ep.OUTCOME_UNSPECIFIED)))
    groups = _groups(_summary(rows, 6, "a", min_coverage=0.8), "complexity")
    assert groups["High"]["agents"]["a"]["coverage"] == 0.75
    assert groups["Very High"]["agents"]["a"]["coverage"] == 1.0


def test_scenarios_without_design_belong_to_no_group() -> None:
    bare = [scenario_pb2.Scenario(scenario_id="scenario_000_0", task_id="task_000")]
    summary = _summary(rows_of({"a": [FULL]}), 1, "a", scenarios=bare)
    assert summary["breakdowns"]["ambiguity_type"] == []
    assert summary["breakdowns"]["complexity"] == []
    assert len(summary["breakdowns"]["agent_persona"]) == 1


def test_a_record_of_an_unknown_scenario_is_refused() -> None:
    with pytest.raises(InputError, match="scenario 'scenario_000_0', which the run's scenarios do not have"):
        _summary(rows_of({"a": [FULL]}), 1, "a", scenarios=scenarios(2)[1:])


def test_agent_personas_are_groups_in_their_order() -> None:
    rows = [
        row(record("a", task, persona=persona))
        for task in range(2)
        for persona in (ep.AGENT_PERSONA_VERY_HELPFUL, ep.AGENT_PERSONA_DIRECT)
    ]
    summary = _summary(rows, 4, "a")
    assert [group["key"] for group in summary["breakdowns"]["agent_persona"]] == ["DIRECT", "VERY_HELPFUL"]


# ------------------------------------------------------------------ where the agents part


def test_tasks_are_ranked_by_disagreement_with_their_issues() -> None:
    rows = rows_of(
        {"a": [FULL, FULL, FULL, FULL, FULL, 0], "b": [FULL, FULL, DENY, DENY, FULL, 0]}, per_task=2
    )
    issues = {0: ["clear"], 1: ["late", "open"], 2: ["open"]}
    summary = _summary(rows, 6, "a", "b", scenarios=scenarios(3, 2, issues))
    tasks = summary["splits"]["tasks"]
    assert [each["task"] for each in tasks] == ["task_001", "task_002", "task_000"]
    first = tasks[0]
    assert (first["between_agents_bits"], first["conversations"], first["all_agree"]) == (1.0, 2, 0)
    assert (first["issues"], first["summary"]) == (["late", "open"], "Return number 1")
    # Two agents that both failed agree on nothing, though the entropy takes it for one category.
    assert (tasks[1]["all_agree"], tasks[1]["conversations"], tasks[1]["no_outcome"]) == (1, 2, 2)
    assert tasks[2]["all_agree"] == 2


def test_issues_are_ranked_by_the_mean_entropy_of_their_tasks() -> None:
    rows = rows_of({"a": [FULL, FULL, FULL], "b": [FULL, DENY, FULL]})
    issues = {0: ["clear", "clear"], 1: ["late", "open"], 2: ["open"]}
    found = _summary(rows, 3, "a", "b", scenarios=scenarios(3, 1, issues))["splits"]["issues"]
    assert [(each["issue"], each["tasks"], each["between_agents_bits"]) for each in found] == [
        ("late", ["task_001"], 1.0),
        ("open", ["task_001", "task_002"], 0.5),
        ("clear", ["task_000"], 0.0),
    ]


def test_one_agent_splits_from_nobody() -> None:
    summary = _summary(rows_of({"a": [FULL, DENY]}), 2, "a", scenarios=scenarios(2))
    assert summary["splits"]["tasks"][0]["conversations"] == 0
    tasks = summarise([row(agent_fault(agent="a"))], {"a": 1}, [], manifest("a"))["splits"]
    assert tasks["issues"] == []
    assert tasks["tasks"][0]["issues"] == []
