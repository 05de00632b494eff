"""What must be true of a whole data set in the public layout, whoever made it.

`structure` is what `load` insists on: fields, types and unique ids, so that every scenario can be played.
`relations` is the rest: records that contradict each other, private facts that show through, gaps in the
crossing of tasks and personas. It runs on the records whose structure is right.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from policysweep.datasets.files import Record
from policysweep.datasets.problems import Finding, Problem, Rule, Severity, under
from policysweep.datasets.rules.scenario import (
    BIG_FIVE,
    PERSONA_FIELDS,
    SCENARIO,
    TASK_FIELDS,
    json_list,
    traits,
)
from policysweep.datasets.rules.shape import boolean, filled, record, string
from policysweep.datasets.rules.text import leak
from policysweep.datasets.rules.world import check_world
from policysweep.datasets.rules.world_shape import ANY_WORDS, world_shape

Json = Mapping[str, Any]

KINDS = ("Vagueness", "Coordination Ambiguity", "Incompleteness", "Missing Condition", "Semantic Ambiguity")
"""The five types of ambiguity (DRIP-R)."""
LEVELS = {"Very High Complexity": 4, "High Complexity": 3, "Medium Complexity": 2}
"""Complexity level to its ordinal."""

WORLD_LINE = record(
    {
        "task_id": filled,
        "world": world_shape(ANY_WORDS),
        "made_by": record({"model": string, "rehearsal": boolean}),
    },
    optional=["made_by"],
)
"""A line of a worlds file; `made_by` says which model made the world."""

_SCENARIO_ID = re.compile(r"(?P<token>[^_]+)_t(?P<code>[^_]+)_[0-9a-f]{4}")


def shaped(records: Iterable[Record], rule: Rule) -> tuple[list[Record], list[Problem]]:
    """The records whose shape has no error, and all problems of shape."""
    right: list[Record] = []
    problems: list[Problem] = []
    for each in records:
        found = [each.problem(finding) for finding in rule(each.value)]
        problems += found
        if not any(problem.severity == "error" for problem in found):
            right.append(each)
    return right, problems


def scenarios(records: Iterable[Record]) -> tuple[list[Record], list[Problem]]:
    """Scenario records of the right structure, and the problems of structure."""
    right, problems = shaped(records, SCENARIO)
    return right, problems + repeated(right, "scenario_id")


def worlds(records: Iterable[Record]) -> tuple[list[Record], list[Problem]]:
    """World lines of the right structure, and the problems of structure."""
    right, problems = shaped(records, WORLD_LINE)
    return right, problems + repeated(right, "task_id")


def repeated(records: Iterable[Record], key: str) -> list[Problem]:
    """The records whose id was used before."""
    first: dict[str, Record] = {}
    problems = []
    for each in records:
        name = each.value[key]
        if name in first:
            before = first[name].problem(Finding((key,), ""))
            problems.append(each.problem(Finding((key,), f"{name!r} was used before, in line {before.line}")))
        first.setdefault(name, each)
    return problems


def relations(records: list[Record]) -> Iterator[Problem]:
    """The rules that relate scenarios, and the fields of a scenario, to each other."""
    for each in records:
        yield from map(each.problem, _scenario(each.value))
    for each in {each.value["task_id"]: each for each in reversed(records)}.values():
        yield from map(each.problem, under(("task",), design(each.value["task"])))
    for each in {each.value["persona"]["Persona_id"]: each for each in reversed(records)}.values():
        yield from map(each.problem, under(("persona",), _persona(each.value["persona"])))
    yield from _agreement(records, "task", lambda value: value["task_id"])
    yield from _agreement(records, "persona", lambda value: value["persona"]["Persona_id"])
    yield from _crossing(records)


def world_relations(records: list[Record], task_ids: set[str]) -> Iterator[Problem]:
    """The rules for world lines and their tasks."""
    for each in records:
        yield from map(each.problem, under(("world",), check_world(each.value["world"])))
        if each.value["task_id"] not in task_ids:
            yield each.problem(
                Finding(("task_id",), "no scenario plays this task; the world is not used", "warning")
            )


def _scenario(value: Json) -> Iterator[Finding]:
    yield from _id_parts(value)
    yield from _leaks(value, "detail_agent", "error")
    yield from _leaks(value, "first_customer_message", "warning")  # the customer may choose to say it


def _leaks(value: Json, key: str, severity: Severity) -> Iterator[Finding]:
    customer = value["customer_task_detail"]
    told = leak(customer["private_info"], customer["basic_info"], value[key])
    if told:
        yield Finding((key,), f"gives away private_info: {told!r}", severity)


def _id_parts(value: Json) -> Iterator[Finding]:
    parts = _SCENARIO_ID.fullmatch(value["scenario_id"])
    if not parts:
        return
    if value["task_id"] != f"task_{parts['code']}":
        yield Finding(
            ("scenario_id",), f"names task_{parts['code']}, but task_id is {value['task_id']!r}", "warning"
        )
    if parts["token"] not in value["persona"]["Name"].split():
        yield Finding(
            ("scenario_id",),
            f"names {parts['token']}, but the persona is {value['persona']['Name']!r}",
            "warning",
        )


def design(task: Json) -> Iterator[Finding]:
    """The rules for the designer's side of a task, as embedded in scenarios and as listed in a tasks file."""
    level, ordinal, primary = (
        task["complexity_level"],
        task["complexity_ordinal"],
        task["primary_ambiguity_type"],
    )
    if level not in LEVELS:
        yield Finding(("complexity_level",), f"{level!r} is none of {list(LEVELS)}", "warning")
    elif ordinal != LEVELS[level]:
        yield Finding(("complexity_ordinal",), f"is {ordinal}, must be {LEVELS[level]} for {level!r}")
    kinds = json_list(task["all_ambiguity_types"])
    if kinds[:1] != [primary]:
        yield Finding(("all_ambiguity_types",), f"must begin with the primary type, {primary!r}")
    if len(set(kinds)) != len(kinds):
        yield Finding(("all_ambiguity_types",), "names a type twice")
    for kind in sorted(set(kinds) - set(KINDS)):
        yield Finding(("all_ambiguity_types",), f"{kind!r} is none of {list(KINDS)}", "warning")
    if not json_list(task["related_policy_issues"]):
        yield Finding(("related_policy_issues",), "names no issue", "warning")
    if task["stratum_label"].rpartition("__")[0] != primary:
        yield Finding(("stratum_label",), f"is {task['stratum_label']!r}, must be '{primary}__<tier>'")


def _persona(persona: Json) -> Iterator[Finding]:
    other = sorted(traits(persona["Personality Style"]).keys() - set(BIG_FIVE))
    if other:
        yield Finding(("Personality Style",), f"{other} are not Big Five traits", "warning")


def _agreement(records: list[Record], part: str, key: Callable[[Json], str]) -> Iterator[Problem]:
    """Scenarios with the same task or persona must embed the same one."""
    first: dict[str, Record] = {}
    for each in records:
        name = key(each.value)
        before = first.setdefault(name, each).value
        for field in differences(part, before[part], each.value[part]):
            told = f"differs from the {part} {name!r} in scenario {before['scenario_id']!r}"
            yield each.problem(Finding((part, field), told))


def differences(part: str, one: Json, other: Json) -> list[str]:
    """The known fields in which two tasks or two personas differ; `part` is "task" or "persona"."""
    fields = TASK_FIELDS if part == "task" else PERSONA_FIELDS
    return [field for field in fields if one[field] != other[field]]


def _crossing(records: list[Record]) -> Iterator[Problem]:
    played: dict[tuple[str, str], str] = {}
    for each in records:
        pair = (each.value["task_id"], each.value["persona"]["Persona_id"])
        if pair in played:
            told = f"{pair[0]} was played by {pair[1]} before, in {played[pair]!r}"
            yield each.problem(Finding(("scenario_id",), told, "warning"))
        played.setdefault(pair, each.value["scenario_id"])
    players: dict[str, set[str]] = defaultdict(set)
    for task_id, persona_id in played:
        players[task_id].add(persona_id)
    everybody = set().union(*players.values()) if players else set()
    for task_id, seen in players.items():
        if seen != everybody:
            lacking = ", ".join(sorted(everybody - seen))
            told = f"{task_id} is played by {len(seen)} of {len(everybody)} personas, not by {lacking}"
            yield Problem(records[0].file, 0, "task_id", told, "warning")
