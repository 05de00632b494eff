"""What must be true of the tables of tasks and personas beside the scenarios of a data set."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from policysweep.datasets.files import Record
from policysweep.datasets.problems import Finding, Problem
from policysweep.datasets.rules.dataset import design, differences, repeated, shaped
from policysweep.datasets.rules.scenario import PERSONA, TASK, TASK_FIELDS

Json = Mapping[str, Any]

_NUMBERED_TASK = re.compile(r"task_(E)?[0-9]+")


def tasks_file(records: list[Record], scenarios: list[Record]) -> Iterator[Problem]:
    """The rules for a tasks file beside its scenarios."""
    right, problems = shaped(records, TASK)
    yield from problems
    yield from repeated(right, "task_id")
    for each in right:
        yield from map(each.problem, _stratification(each.value))
        yield from map(each.problem, design(each.value))
    listed = {each.value["task_id"]: {field: each.value[field] for field in TASK_FIELDS} for each in right}
    if len(right) == len(records):
        yield from _listed(scenarios, listed, ("task_id",), "task")


def _stratification(task: Json) -> Iterator[Finding]:
    named = _NUMBERED_TASK.fullmatch(task["task_id"])
    if named and task["is_stratified"] != (named[1] is None):
        yield Finding(
            ("is_stratified",), f"must be {'false for an E task' if named[1] else 'true but for E tasks'}"
        )
    if not task["is_stratified"] and task["stratified_task_idx_aliases"]:
        yield Finding(
            ("stratified_task_idx_aliases",), "is not empty, although the task is not stratified", "warning"
        )
    if task["is_stratified"] and task["task_id"] not in task["stratified_task_idx_aliases"]:
        yield Finding(
            ("stratified_task_idx_aliases",), f"does not hold {task['task_id']!r} itself", "warning"
        )


def personas_file(records: list[Record], scenarios: list[Record]) -> Iterator[Problem]:
    """The rules for a personas file beside its scenarios."""
    right, problems = shaped(records, PERSONA)
    yield from problems
    yield from repeated(right, "Persona_id")
    listed = {each.value["Persona_id"]: each.value for each in right}
    if len(right) == len(records):
        yield from _listed(scenarios, listed, ("persona", "Persona_id"), "persona")


def _listed(
    scenarios: list[Record], listed: Mapping[str, Json], key: tuple[str, ...], part: str
) -> Iterator[Problem]:
    """What a scenario embeds must be listed, and be listed the same."""
    for each in scenarios:
        name = each.value
        for step in key:
            name = name[step]
        if name not in listed:
            yield each.problem(Finding(key, f"{name!r} is not in the {part}s file"))
            continue
        for field in differences(part, listed[name], each.value[part]):
            yield each.problem(Finding((part, field), f"differs from {name!r} in the {part}s file"))
