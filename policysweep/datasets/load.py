"""Loads a data set as contract messages: all of it, or nothing and one clear message.

Worlds come from, in this order: the file that the caller names; the data set itself; the worlds that were
made for it and kept beside it, under the digest of its scenarios (see `making`). A data set without worlds
loads; who needs them asks `require_worlds`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from policysweep.datasets import dripr
from policysweep.datasets.digest import content_digest, dataset_digest
from policysweep.datasets.files import Record, read_records
from policysweep.datasets.problems import Problem, refuse_errors
from policysweep.datasets.rules import dataset as rules
from policysweep.datasets.sources import RawDataset, read
from policysweep.errors import InputError
from policysweep.v1 import scenario_pb2, world_pb2

NAMED_TASKS = 5
"""How many tasks a message names before it says "and N more"."""


@dataclass(frozen=True)
class Dataset:
    """A data set that is ready to be played.

    `digest` covers scenarios and worlds, `scenarios_digest` the scenarios alone; both are SHA-256 in hex over
    content, see `policysweep.datasets.digest`. `scenarios` keep the order of the file. `worlds` maps a task
    id to its world and may lack tasks; `made_worlds` is the file for worlds that are made for this data set,
    and need not exist. `rehearsal` tells that the rehearsal model made at least one of the worlds.
    """

    name: str
    source: str
    digest: str
    scenarios_digest: str
    scenarios: tuple[scenario_pb2.Scenario, ...]
    worlds: Mapping[str, world_pb2.OrderWorld]
    made_worlds: Path
    rehearsal: bool = False

    @property
    def task_ids(self) -> tuple[str, ...]:
        """The tasks that the scenarios play, in order of first appearance."""
        return tuple(dict.fromkeys(scenario.task_id for scenario in self.scenarios))

    @property
    def missing_worlds(self) -> tuple[str, ...]:
        """The tasks that lack a world."""
        return tuple(task_id for task_id in self.task_ids if task_id not in self.worlds)


def load(source: str, *, worlds: Path | None = None) -> Dataset:
    """Load a data set.

    Args:
        source: `builtin`, a file, a folder, or `hub:OWNER/NAME`; see `policysweep.datasets.sources`.
        worlds: a worlds file to use instead of the worlds that are found beside the data set.

    Raises InputError that lists what is wrong with file, line and field.
    """
    raw = read(source)
    scenarios, problems = rules.scenarios(raw.scenarios)
    refuse_errors(source, [*raw.problems, *problems, *_empty(raw)])
    digest = content_digest(record.value for record in scenarios)
    lines, problems = read_worlds(raw, digest, worlds)
    refuse_errors(source, problems)
    played = {record.value["task_id"] for record in scenarios}
    used = [line.value for line in lines if line.value["task_id"] in played]
    return Dataset(
        name=raw.name,
        source=source,
        digest=dataset_digest(
            digest, [{"task_id": line["task_id"], "world": line["world"]} for line in used]
        ),
        scenarios_digest=digest,
        scenarios=tuple(dripr.scenario(record.value) for record in scenarios),
        worlds={line["task_id"]: dripr.world(line["world"]) for line in used},
        made_worlds=made_worlds_path(raw, digest),
        rehearsal=any(line.get("made_by", {}).get("rehearsal", False) for line in used),
    )


def _empty(raw: RawDataset) -> list[Problem]:
    if raw.scenarios or raw.problems:
        return []
    return [Problem(raw.source, 0, "", "has no scenarios")]


def read_worlds(
    raw: RawDataset, digest: str, named: Path | None = None
) -> tuple[list[Record], list[Problem]]:
    """The world lines of a data set, each of the right structure, and what is wrong with the others.

    `digest` is that of the scenarios. Worlds of the data set itself go before worlds that were made for it.
    """
    if named is not None:
        records, problems = read_records(named)
        lines, faults = rules.worlds(records)
        return lines, problems + faults
    own, problems = rules.worlds(raw.worlds)
    made: list[Record] = []
    path = made_worlds_path(raw, digest)
    if path.is_file():
        records, faults = read_records(path)
        made, shape_faults = rules.worlds(records)
        problems = problems + faults + shape_faults
    known = {line.value["task_id"] for line in own}
    return own + [line for line in made if line.value["task_id"] not in known], problems


def made_worlds_path(raw: RawDataset, digest: str) -> Path:
    """The file that holds the worlds made for a data set with this digest of its scenarios."""
    return raw.made_worlds / f"{digest[:16]}.jsonl"


def require_worlds(dataset: Dataset, task_ids: Iterable[str] | None = None) -> None:
    """Raise InputError when one of these tasks, by default any, lacks a world.

    The message names the tasks and the command that makes their worlds.
    """
    needed = set(dataset.task_ids if task_ids is None else task_ids)
    missing = [task_id for task_id in dataset.missing_worlds if task_id in needed]
    if not missing:
        return
    named = ", ".join(missing[:NAMED_TASKS])
    more = f" and {len(missing) - NAMED_TASKS} more" if len(missing) > NAMED_TASKS else ""
    raise InputError(
        f"data set {dataset.source!r} lacks the order world of {len(missing)} of {len(needed)} tasks:"
        f" {named}{more}. Make them with\n"
        f"  policysweep dataset worlds {dataset.source} --model-url URL --model NAME"
    )
