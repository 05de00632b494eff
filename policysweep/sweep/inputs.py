"""The inputs of a run: the scenarios and order worlds that it plays, kept with the results.

With them a run's folder is complete: a report, a judge or a proof needs no data set. Both files are JSON
Lines, one scenario or task a line, in protobuf JSON with the field names of the contract. The same inputs
always give the same bytes, so two writers can be told apart by comparing files.

A run that was played elsewhere and imported follows no rule of ours and has no order worlds. There the line
of a scenario also lists the units that were played of it, under `units`; see `plan.planned_units`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import orjson
from google.protobuf import json_format
from google.protobuf.message import Message

from policysweep.errors import InputError
from policysweep.v1 import run_pb2, scenario_pb2, world_pb2

SCENARIOS = "inputs/scenarios.jsonl"
WORLDS = "inputs/worlds.jsonl"

_UNITS = "units"
"""Key of a scenario's line that lists the units of an imported run."""

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class RunInputs:
    """Scenarios in the order of the data set, and the order world of each of their tasks, by task id."""

    scenarios: Sequence[scenario_pb2.Scenario]
    worlds: Mapping[str, world_pb2.OrderWorld]
    imported: Mapping[str, Sequence[run_pb2.Unit]] = field(default_factory=dict)
    """Units of an imported run by scenario id: agent, agent persona and trial, the rest follows. Empty for a
    run that was played here."""


def encode_scenarios(inputs: RunInputs) -> bytes:
    """The scenarios as JSON Lines, with their units when the run was imported."""
    return b"".join(encode_line(_scenario_line(scenario, inputs)) for scenario in inputs.scenarios)


def _scenario_line(scenario: scenario_pb2.Scenario, inputs: RunInputs) -> dict[str, Any]:
    units = inputs.imported.get(scenario.scenario_id, ())
    return as_json(scenario) | ({_UNITS: [as_json(unit) for unit in units]} if units else {})


def encode_worlds(inputs: RunInputs) -> bytes:
    """The worlds of the tasks that the scenarios play, by task id; InputError when one has none.

    An imported run has no worlds.
    """
    if inputs.imported:
        return b""
    tasks = sorted({scenario.task_id for scenario in inputs.scenarios})
    if missing := [task for task in tasks if task not in inputs.worlds]:
        raise InputError(f"no order world for {', '.join(missing[:5])}: {len(missing)} tasks have none")
    return b"".join(encode_line({"task_id": task, "world": as_json(inputs.worlds[task])}) for task in tasks)


def decode_inputs(scenarios: bytes, worlds: bytes, where: str) -> RunInputs:
    """Read both files; InputError that names the file under `where` and the line when one is damaged."""

    imported: dict[str, Sequence[run_pb2.Unit]] = {}

    def scenario(data: Any) -> scenario_pb2.Scenario:
        units = [json_format.ParseDict(unit, run_pb2.Unit()) for unit in data.pop(_UNITS, ())]
        found = json_format.ParseDict(data, scenario_pb2.Scenario())
        if units:
            imported[found.scenario_id] = units
        return found

    def world(data: Any) -> tuple[str, world_pb2.OrderWorld]:
        return data["task_id"], json_format.ParseDict(data["world"], world_pb2.OrderWorld())

    return RunInputs(
        list(parsed_lines(scenarios, f"{where}/{SCENARIOS}", scenario)),
        dict(parsed_lines(worlds, f"{where}/{WORLDS}", world)),
        imported,
    )


def describe_difference(old: RunInputs, new: RunInputs) -> str:
    """Which scenarios or worlds differ, in one phrase."""
    before = {each.scenario_id: each for each in old.scenarios}
    after = {each.scenario_id: each for each in new.scenarios}
    groups = {
        "only in the run: scenarios": [name for name in before if name not in after],
        "only in the sweep: scenarios": [name for name in after if name not in before],
        "changed: scenarios": [name for name in after if name in before and before[name] != after[name]],
        "changed: worlds of tasks": [
            task for task, world in old.worlds.items() if task in new.worlds and new.worlds[task] != world
        ],
        "changed: units of scenarios": [
            name for name in before if name in after and old.imported.get(name) != new.imported.get(name)
        ],
    }
    found = [f"{label} {some(names)}" for label, names in groups.items() if names]
    return "; ".join(found) or "the scenarios stand in another order"


def some(names: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def as_json(message: Message) -> dict[str, Any]:
    """A message as protobuf JSON with the field names of the contract."""
    return json_format.MessageToDict(message, preserving_proto_field_name=True)


def encode_line(data: dict[str, Any]) -> bytes:
    """One line of a JSON Lines file; equal data gives equal bytes."""
    # Sorted keys, because the order of a protobuf map's entries is not defined.
    return orjson.dumps(data, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)


def parsed_lines(data: bytes, name: str, parse: Callable[[Any], Item]) -> Iterator[Item]:
    """What `parse` makes of each line of a JSON Lines file; InputError that names file and line."""
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            yield parse(orjson.loads(line))
        except (orjson.JSONDecodeError, json_format.ParseError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{name}:{number}: is damaged: {error}") from error
