"""Finds what `policysweep dataset show` prints."""

from __future__ import annotations

import difflib
from typing import Literal

from policysweep.datasets.load import Dataset, load
from policysweep.datasets.sources import read
from policysweep.datasets.views import agent_view, customer_view, designer_view
from policysweep.errors import InputError
from policysweep.v1 import scenario_pb2

Reader = Literal["agent", "customer", "designer"]


def list_scenarios(source: str) -> str:
    """The scenario ids of a data set, a task on a line."""
    dataset = load(source)
    of_task: dict[str, list[str]] = {}
    for scenario in dataset.scenarios:
        of_task.setdefault(scenario.task_id, []).append(scenario.scenario_id)
    return "\n".join(f"{task_id}: {' '.join(scenario_ids)}" for task_id, scenario_ids in of_task.items())


def show_scenario(source: str, scenario_id: str, reader: Reader) -> str:
    """A scenario as its reader sees it. Raises InputError for an unknown id, naming those that come close."""
    dataset = load(source)
    scenario = _find(dataset, scenario_id)
    if reader == "agent":
        return agent_view(scenario.policy, scenario.case_brief, scenario.first_customer_message)
    if reader == "customer":
        return customer_view(scenario.persona, scenario.customer_brief, scenario.first_customer_message)
    raw = read(source)
    world = dataset.worlds.get(scenario.task_id)
    return designer_view(scenario, world, raw.designs.get(scenario.task_id), raw.clauses)


def _find(dataset: Dataset, scenario_id: str) -> scenario_pb2.Scenario:
    known = {scenario.scenario_id: scenario for scenario in dataset.scenarios}
    if scenario_id in known:
        return known[scenario_id]
    near = difflib.get_close_matches(scenario_id, known, n=5)
    hint = f"did you mean {', '.join(near)}?" if near else "run without an id to list all."
    raise InputError(f"data set {dataset.source!r} has no scenario {scenario_id!r}; {hint}")
