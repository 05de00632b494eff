"""The filters of a sweep file."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from policysweep.errors import InputError
from policysweep.sweep.selection import select_scenarios
from policysweep.sweep.spec import ScenarioFilter
from policysweep.v1 import scenario_pb2

SCENARIOS = [
    scenario_pb2.Scenario(
        scenario_id=f"{persona}_{task}", task_id=task, persona=scenario_pb2.Persona(persona_id=persona)
    )
    for task in ("task_001", "task_002", "task_E01")
    for persona in ("anna", "bert", "carl", "dora")
]


def ids(wanted: ScenarioFilter) -> list[str]:
    return [each.scenario_id for each in select_scenarios(SCENARIOS, wanted)]


def test_no_filter_keeps_everything_in_order() -> None:
    assert ids(ScenarioFilter()) == [each.scenario_id for each in SCENARIOS]


def test_tasks_and_personas_are_both_required() -> None:
    wanted = ScenarioFilter(tasks=("task_E01", "task_001"), personas=("bert",))
    assert ids(wanted) == ["bert_task_001", "bert_task_E01"]


def test_limit_spreads_over_tasks_and_personas() -> None:
    few = select_scenarios(SCENARIOS, ScenarioFilter(limit=3))
    assert Counter(each.task_id for each in few) == {"task_001": 1, "task_002": 1, "task_E01": 1}
    assert len({each.persona.persona_id for each in few}) == 3
    more = select_scenarios(SCENARIOS, ScenarioFilter(limit=8))
    assert Counter(each.task_id for each in more) == {"task_001": 3, "task_002": 3, "task_E01": 2}


def test_a_larger_limit_keeps_what_a_smaller_one_chose() -> None:
    chosen = [set(ids(ScenarioFilter(limit=limit))) for limit in range(1, 15)]
    assert all(smaller <= larger for smaller, larger in itertools.pairwise(chosen))
    assert [len(each) for each in chosen] == [*range(1, 13), 12, 12]


def test_says_which_name_the_data_set_does_not_have() -> None:
    with pytest.raises(InputError, match=r"^scenarios.tasks: the data set has no task_0001; did you mean"):
        ids(ScenarioFilter(tasks=("task_001", "task_0001")))
    with pytest.raises(InputError, match=r"^scenarios.personas: the data set has no xyz; it has anna, bert"):
        ids(ScenarioFilter(personas=("xyz",)))


def test_says_when_nothing_is_left() -> None:
    with pytest.raises(InputError, match="no scenario of the data set has one of these tasks and one of"):
        select_scenarios(SCENARIOS[:5], ScenarioFilter(tasks=("task_002",), personas=("bert",)))
