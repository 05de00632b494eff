"""The inputs of a stream run: the tasks that it plays and their policy gaps, kept with the results.

With them a run's folder is complete: a judge, a report or a proof needs no tau2-bench package. Tasks are kept
whole, with what they are graded by, so the folder is nothing for an agent to read. Both files are JSON Lines
in protobuf JSON with the field names of the contract; the same inputs always give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf import json_format

from policysweep.sweep.inputs import as_json, encode_line, parsed_lines, some
from policysweep.v1 import tau2_pb2

TASKS = "inputs/tasks.jsonl"
GAPS = "inputs/gaps.jsonl"


@dataclass(frozen=True, slots=True)
class StreamInputs:
    """What the streams of a run play."""

    tasks: Mapping[tuple[str, str], tau2_pb2.Tau2Task]
    """By domain and task id: domain by domain, each in the order of its data set."""
    gaps: Sequence[tau2_pb2.Tau2Gap]
    """The policy gaps that the tasks are about."""

    def of_domain(self, domain: str) -> list[tau2_pb2.Tau2Task]:
        """The tasks of one domain."""
        return [task for task in self.tasks.values() if task.domain == domain]


def inputs_of(tasks: Iterable[tau2_pb2.Tau2Task], gaps: Iterable[tau2_pb2.Tau2Gap]) -> StreamInputs:
    """Inputs from what they consist of."""
    return StreamInputs({(task.domain, task.task_id): task for task in tasks}, list(gaps))


def encode_tasks(inputs: StreamInputs) -> bytes:
    """The tasks as JSON Lines."""
    return b"".join(encode_line(as_json(task)) for task in inputs.tasks.values())


def encode_gaps(inputs: StreamInputs) -> bytes:
    """The gaps as JSON Lines."""
    return b"".join(encode_line(as_json(gap)) for gap in inputs.gaps)


def decode_inputs(tasks: bytes, gaps: bytes, where: str) -> StreamInputs:
    """Read both files; InputError that names the file under `where` and the line when one is damaged."""

    def task(data: Any) -> tau2_pb2.Tau2Task:
        return json_format.ParseDict(data, tau2_pb2.Tau2Task())

    def gap(data: Any) -> tau2_pb2.Tau2Gap:
        return json_format.ParseDict(data, tau2_pb2.Tau2Gap())

    return inputs_of(
        parsed_lines(tasks, f"{where}/{TASKS}", task), parsed_lines(gaps, f"{where}/{GAPS}", gap)
    )


def describe_difference(old: StreamInputs, new: StreamInputs) -> str:
    """Which tasks differ, in one phrase."""
    groups = {
        "only in the run: tasks": [key for key in old.tasks if key not in new.tasks],
        "only in the stream file: tasks": [key for key in new.tasks if key not in old.tasks],
        "changed: tasks": [key for key in new.tasks if key in old.tasks and old.tasks[key] != new.tasks[key]],
    }
    found = [f"{label} {some([' '.join(key) for key in keys])}" for label, keys in groups.items() if keys]
    return "; ".join(found) or "the policy gaps differ"
