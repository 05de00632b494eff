"""Each reader sees its own side of a scenario, and no more."""

from __future__ import annotations

import pytest

from policysweep.datasets.load import Dataset
from policysweep.datasets.rules.text import normal
from policysweep.datasets.show import list_scenarios, show_scenario
from policysweep.datasets.sources import RawDataset
from policysweep.datasets.views import agent_view, customer_view
from policysweep.errors import InputError
from policysweep.v1 import scenario_pb2


def agent_sees(scenario: scenario_pb2.Scenario) -> str:
    return agent_view(scenario.policy, scenario.case_brief, scenario.first_customer_message)


def test_no_private_marker_is_in_what_the_agent_is_told(builtin: Dataset, raw_builtin: RawDataset) -> None:
    for scenario in builtin.scenarios:
        told = normal(agent_view(scenario_pb2.Policy(), scenario.case_brief, scenario.first_customer_message))
        for marker in raw_builtin.designs[scenario.task_id]["private_markers"]:
            assert normal(marker) in normal(scenario.customer_brief.private_info)
            assert normal(marker) not in told


def test_the_agent_sees_policy_brief_and_opening(builtin: Dataset) -> None:
    scenario = builtin.scenarios[0]
    seen = agent_sees(scenario)
    for part in ("# Merrowick Return Policy", "# Third-Party Seller Return Policy", scenario.case_brief):
        assert part in seen
    assert seen.endswith(scenario.first_customer_message + "\n")
    for hidden in (
        scenario.task.detail,
        scenario.customer_brief.basic_info,
        scenario.customer_brief.behavior,
        scenario.task.related_policy_issues[0],
    ):
        assert hidden not in seen


def test_the_customer_sees_itself_and_not_the_design(builtin: Dataset) -> None:
    scenario = builtin.scenarios[4]
    seen = customer_view(scenario.persona, scenario.customer_brief, scenario.first_customer_message)
    brief = scenario.customer_brief
    for part in (brief.basic_info, brief.private_info, brief.behavior, scenario.persona.description):
        assert part in seen
    assert "Agreeableness 2, Conscientiousness 4, Extraversion 2" in seen
    for hidden in (scenario.task.detail, scenario.task.related_policy_issues[0], scenario.case_brief, "C43"):
        assert hidden not in seen


def test_the_designer_sees_everything(builtin: Dataset, raw_builtin: RawDataset) -> None:
    scenario = builtin.scenarios[0]
    seen = show_scenario("builtin", scenario.scenario_id, "designer")
    design = raw_builtin.designs["task_000"]
    for clause in design["clauses"]:
        assert raw_builtin.clauses[clause]["quote"] in seen
        assert all(reading in seen for reading in raw_builtin.clauses[clause]["readings"])
    assert all(f"{each['outcome']}: {each['reason']}" in seen for each in design["plausible_outcomes"])
    assert "I-000-1 Tarnholt Dual-Motor Desk Frame: opened_used." in seen
    assert "Missing: hex key." in seen
    assert design["world"]["gold_facts"]["reason_truth"] in seen
    assert scenario.task.detail in seen
    assert agent_sees(scenario) in seen


def test_show_gives_each_reader_its_view(builtin: Dataset) -> None:
    scenario = builtin.scenarios[0]
    assert show_scenario("builtin", scenario.scenario_id, "agent") == agent_sees(scenario)
    customer = show_scenario("builtin", scenario.scenario_id, "customer")
    assert customer.startswith("== Persona ==\nHollis Brandt")


def test_an_unknown_scenario_is_refused_with_those_that_come_close() -> None:
    with pytest.raises(InputError, match=r"'Hollis_t000_9a6'; did you mean Hollis_t000_9a62"):
        show_scenario("builtin", "Hollis_t000_9a6", "agent")
    with pytest.raises(InputError, match="run without an id to list all"):
        show_scenario("builtin", "?", "agent")


def test_the_list_has_every_scenario(builtin: Dataset) -> None:
    lines = list_scenarios("builtin").split("\n")
    assert [line.split(": ")[0] for line in lines] == list(builtin.task_ids)
    listed = [name for line in lines for name in line.split(": ")[1].split()]
    assert listed == [scenario.scenario_id for scenario in builtin.scenarios]
