"""The part of stream-report.json about one arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from policysweep.report.figures import Json
from policysweep.report.streams.arms import GROUPS, NONE, ORACLE, Arm, DomainTasks, titles
from policysweep.report.streams.comparisons import (
    difference_json,
    gap_closed_json,
    over_generalisation_json,
)
from policysweep.report.streams.costs import costs_json, ends_json, feedback_json
from policysweep.report.streams.grid import FAILED, MISSING, PASSED, Cube, Grid
from policysweep.report.streams.influence import families_json, lessons_json
from policysweep.report.streams.passes import curve_json, group_json
from policysweep.report.streams.rows import StreamRow
from policysweep.streams.plan import method_name, regime_name
from policysweep.v1 import stream_pb2


@dataclass(frozen=True)
class Material:
    """What the sections of all arms are made of."""

    grid: Grid
    rows: Mapping[str, Sequence[StreamRow]]
    """By stream, in order."""
    failures: Mapping[str, Sequence[stream_pb2.StreamFailure]]
    """By stream; those that stand."""
    overreach: Mapping[tuple[str, str], str]
    minimum: float

    @cached_property
    def titles(self) -> Mapping[Arm, str]:
        """How the arms are called."""
        return titles(self.grid.plan.arms)

    def complete(self, stream: stream_pb2.Stream) -> bool:
        """Whether all tasks of a stream have a record."""
        return len(self.rows[stream.stream_id]) == len(self.grid.plan.domains[stream.domain].ids)

    def none_passed(self, row: StreamRow) -> bool | None:
        """Whether no memory passed the task of a row, with the same seed, trial and agent."""
        arm, place = self.grid.place(row)
        cube = self.grid.rewards.get(arm.like(NONE))
        return None if cube is None or cube[place] == MISSING else bool(cube[place] == PASSED)


def arm_key(arm: Arm) -> Json:
    """What tells an arm from the others."""
    return {
        "domain": arm.domain,
        "agent": arm.agent,
        "method": method_name(arm.method),  # type: ignore[arg-type]  # the number of an enum
        "regime": regime_name(arm.regime),  # type: ignore[arg-type]  # the number of an enum
    }


def arm_section(material: Material, arm: Arm) -> Json:
    """Everything about one arm."""
    grid, minimum = material.grid, material.minimum
    tasks = grid.plan.domains[arm.domain]
    streams = list(grid.plan.of_arm(arm))
    by_stream = [material.rows[stream.stream_id] for stream in streams]
    rows = [row for found in by_stream for row in found]
    failures = [failure for stream in streams for failure in material.failures.get(stream.stream_id, ())]
    rewards, strict = grid.rewards[arm], grid.strict[arm]
    return {
        **arm_key(arm),
        "title": material.titles[arm],
        "streams": {"planned": len(streams), "complete": sum(map(material.complete, streams))},
        "coverage": _coverage(rewards, rows, failures),
        "groups": {name: group_json(rewards, strict, tasks, tasks.group(name), minimum) for name in GROUPS},
        "strict_differs": int(np.count_nonzero(rewards != strict)),
        "curve": curve_json(rewards, tasks, minimum),
        "gap_closed": _gap_closed(grid, arm, tasks, minimum),
        "retention": _retention(grid, arm, tasks, minimum),
        "controls": _controls(material, arm, tasks, rows),
        "families": families_json(tasks, by_stream, material.none_passed),
        "lessons": lessons_json(by_stream, material.none_passed),
        "feedback": feedback_json(rows),
        "ends": ends_json(rows, failures),
        "costs": costs_json(rows),
    }


def _coverage(rewards: Cube, rows: Sequence[StreamRow], failures: Sequence[stream_pb2.StreamFailure]) -> Json:
    scored = int(np.count_nonzero(rewards != MISSING))
    return {
        "planned": rewards.size,
        "recorded": len(rows),
        "scored": scored,
        "failed": len(failures),
        "pending": rewards.size - len(rows) - len(failures),
        "coverage": scored / rewards.size if rewards.size else None,
    }


def _gap_closed(grid: Grid, arm: Arm, tasks: DomainTasks, minimum: float) -> Json | None:
    """On sisters; None for no memory and the oracle, and for a run that lacks either."""
    none, oracle = grid.rewards.get(arm.like(NONE)), grid.rewards.get(arm.like(ORACLE))
    columns = tasks.group("sisters")
    if none is None or oracle is None or arm.method in (NONE, ORACLE) or not columns:
        return None
    cubes = [cube[:, :, columns] for cube in (grid.rewards[arm], none, oracle)]
    return gap_closed_json(cubes, tasks.families(columns), minimum)


def _retention(grid: Grid, arm: Arm, tasks: DomainTasks, minimum: float) -> Json | None:
    """Against no memory, on the originals that no gap concerns; None without no memory."""
    none = grid.rewards.get(arm.like(NONE))
    columns = tasks.group("other_originals")
    if none is None or arm.method == NONE or not columns:
        return None
    own = grid.rewards[arm][:, :, columns]
    return difference_json(own, none[:, :, columns], tasks.families(columns), minimum)


def _controls(material: Material, arm: Arm, tasks: DomainTasks, rows: Sequence[StreamRow]) -> Json | None:
    """None for a run without controls or without no memory."""
    grid = material.grid
    none = grid.rewards.get(arm.like(NONE))
    columns = tasks.group("controls")
    if not columns or none is None or arm.method == NONE:
        return None
    found = over_generalisation_json(grid.rewards[arm], none, tasks, columns, material.minimum)
    return {**found, "overreach": _overreach(material, arm, columns, tasks, rows)}


def _overreach(
    material: Material, arm: Arm, columns: Sequence[int], tasks: DomainTasks, rows: Sequence[StreamRow]
) -> Json | None:
    """Failed trials of controls whose database is what applying the lesson leads to; None when not known."""
    known = {
        task_id: found for (domain, task_id), found in material.overreach.items() if domain == arm.domain
    }
    if any(tasks.ids[column] not in known for column in columns):
        return None
    failed = int(np.count_nonzero(material.grid.rewards[arm][:, :, columns] == FAILED))
    reached = sum(row.passed is False and row.database_hash == known.get(row.task_id) for row in rows)
    return {"failed": failed, "overreached": reached}
