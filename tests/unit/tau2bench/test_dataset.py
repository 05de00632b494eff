"""The tasks of the package and of the project, checked against the real databases and tools."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from policysweep.datasets.tau2 import DOMAINS, added_source, load_tau2, tau2_task
from policysweep.datasets.tau2_check import added_problems, problems
from policysweep.domains.tau2 import load_domain
from policysweep.errors import InputError
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import tau2_pb2

from .support import needs_tau2

pytestmark = needs_tau2

ORIGINAL, SISTER, CONTROL = (
    tau2_pb2.TAU2_TASK_KIND_ORIGINAL,
    tau2_pb2.TAU2_TASK_KIND_SISTER,
    tau2_pb2.TAU2_TASK_KIND_CONTROL,
)


@pytest.mark.parametrize("domain", DOMAINS)
def test_every_precondition_and_every_recorded_state_holds(domain: str) -> None:
    assert problems(domain) == []


def test_counts_and_ids() -> None:
    for domain, counts in (("airline", (50, 21, 3)), ("retail", (114, 9, 1))):
        dataset = load_tau2(domain)
        found = Counter(task.kind for task in dataset.tasks)
        assert (found[ORIGINAL], found[SISTER], found[CONTROL]) == counts
        assert len({task.task_id for task in dataset.tasks}) == sum(counts)
        assert len(dataset.digest) == 64
    assert load_tau2("airline").digest != load_tau2("retail").digest


def test_each_parent_has_three_sisters_with_its_gap() -> None:
    for domain in DOMAINS:
        dataset = load_tau2(domain)
        for gap in dataset.gaps:
            for parent in gap.parent_task_ids:
                assert dataset.task(parent).gap_id == gap.gap_id
                assert dataset.task(parent).developer_explanation
                sisters = [task for task in dataset.tasks if task.parent_task_id == parent]
                assert [task.task_id for task in sisters] == [f"{parent}-{number}" for number in (1, 2, 3)]
                assert {task.gap_id for task in sisters} == {gap.gap_id}
                assert {task.sister_type for task in sisters} == {1, 2, 3}
    assert [gap.gap_id for gap in load_tau2("airline").gaps] == ["A-1", "A-2", "A-3"]
    assert load_tau2("retail").gap("R-1").parent_task_ids == ["18", "91", "107"]


@pytest.mark.parametrize("domain", DOMAINS)
def test_the_policy_says_what_each_gap_quotes(domain: str) -> None:
    policy = load_domain(domain).policy
    for gap in load_tau2(domain).gaps:
        assert gap.policy_sentence in policy
        assert gap.clarification not in policy


def test_a_task_keeps_what_the_package_says() -> None:
    task = load_tau2("retail").task("2")
    assert task.user_scenario.reason_for_call.startswith("You want to know how many tshirt options")
    assert task.user_scenario.persona == ""
    assert list(task.criteria.communicate_info) == ["10"]
    assert not task.criteria.reward_basis  # unspecified: DB and COMMUNICATE
    assert task.criteria.gold.actions[0].requestor == ep.ROLE_AGENT
    assert not task.gap_id


def test_no_gold_actions_is_told_from_an_empty_list() -> None:
    raw: dict[str, Any] = {
        "id": "x",
        "user_scenario": {"persona": None, "instructions": "Just call."},
        "evaluation_criteria": {"actions": None, "communicate_info": None, "nl_assertions": None},
    }
    unspecified = tau2_task(raw, "airline", {})
    assert not unspecified.criteria.HasField("gold")
    assert unspecified.user_scenario.task_instructions == "Just call."
    raw["evaluation_criteria"]["actions"] = []
    assert tau2_task(raw, "airline", {}).criteria.HasField("gold")


@pytest.mark.parametrize("field", ["initial_state", "env_assertions"])
def test_what_airline_and_retail_do_not_have_is_refused(field: str) -> None:
    raw: dict[str, Any] = {
        "id": "x",
        "user_scenario": {"instructions": "Call."},
        "evaluation_criteria": {"actions": [], "env_assertions": [{}] if field == "env_assertions" else None},
        "initial_state": {} if field == "initial_state" else None,
    }
    with pytest.raises(InputError, match=r"airline task 'x' has an initial state or assertions in code"):
        tau2_task(raw, "airline", {})


def _wrong_fact(source: dict[str, Any]) -> None:
    source["preconditions"][0]["value"] = "platinum"


def _wrong_path(source: dict[str, Any]) -> None:
    source["preconditions"][0]["path"] = ["users", "nobody", "membership"]


def _unknown_operation(source: dict[str, Any]) -> None:
    source["preconditions"][0]["op"] = "looks_like"


def _wrong_gold_state(source: dict[str, Any]) -> None:
    source["verification"]["gold_db_hash"] = "0" * 64


def _wrong_literal_state(source: dict[str, Any]) -> None:
    source["verification"]["literal_policy_db_hash"] = "0" * 64


def _another_database(source: dict[str, Any]) -> None:
    source["verification"]["initial_db_hash"] = "0" * 64


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (_wrong_fact, "users/noah_muller_9847/membership: eq 'platinum' does not hold"),
        (_wrong_path, "users/nobody/membership: eq 'gold' does not hold"),
        (_unknown_operation, "there is no precondition 'looks_like'"),
        (_wrong_gold_state, "its gold actions lead to d9e9d254b5cacd1e..., not to the recorded 00000000"),
        (_wrong_literal_state, "a literal reading of the policy leads to 124e39a664b56402..."),
        (_another_database, "was verified on another database, 0000000000000000..."),
    ],
)
def test_the_check_finds_what_is_wrong(damage: Callable[[dict[str, Any]], None], problem: str) -> None:
    domain = load_domain("airline")
    source = copy.deepcopy(dict(added_source("2-1", "airline")))
    damage(source)
    found = list(added_problems(domain, domain.agent_box.data(), load_tau2("airline").task("2-1"), source))
    assert len(found) == 1
    assert problem in found[0]


def test_the_check_finds_gold_actions_that_fail() -> None:
    domain = load_domain("airline")
    task = tau2_pb2.Tau2Task()
    task.CopyFrom(load_tau2("airline").task("2-1"))
    task.criteria.gold.actions[0].arguments_json = '{"user_id": "nobody"}'
    found = list(added_problems(domain, domain.agent_box.data(), task, added_source("2-1", "airline")))
    assert found == ["gold action 2-1_0 (get_user_details) answers Error: User nobody not found"]


def test_unknown_names_are_refused() -> None:
    with pytest.raises(InputError, match=r"no tau2-bench domain 'telecom': use one of airline, retail"):
        load_tau2("telecom")
    with pytest.raises(InputError, match=r"airline has no task '50'"):
        load_tau2("airline").task("50")
    with pytest.raises(InputError, match=r"retail has no policy gap 'A-1'"):
        load_tau2("retail").gap("A-1")
    with pytest.raises(InputError, match=r"retail has no sister or control '2-1'"):
        added_source("2-1", "retail")
