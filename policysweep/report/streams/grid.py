"""The outcomes of all streams side by side: for each arm a cube of seeds, trials and tasks.

All arms of a domain meet the same tasks with the same seeds and trials, so cubes are compared place by place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from policysweep.errors import InputError
from policysweep.report.streams.arms import Arm, DomainTasks, arm_of, domain_tasks
from policysweep.report.streams.rows import StreamRow
from policysweep.streams.inputs import StreamInputs
from policysweep.streams.plan import planned_streams
from policysweep.v1 import stream_pb2

MISSING, FAILED, PASSED = -1, 0, 1

Cube = NDArray[np.int8]
"""[seeds, trials, tasks] of MISSING, FAILED and PASSED; tasks in the order of `DomainTasks`."""


@dataclass(frozen=True)
class StreamPlan:
    """What was planned: the streams of a run and the tasks of its domains."""

    streams: Mapping[str, stream_pb2.Stream]
    """By id, in the order in which they are started."""
    seeds: Sequence[int]
    trials: int
    domains: Mapping[str, DomainTasks]

    @cached_property
    def arms(self) -> tuple[Arm, ...]:
        """All arms in the order of the manifest: by domain, agent, method and regime."""
        found = dict.fromkeys(map(arm_of, self.streams.values()))
        domains, agents = list(self.domains), list(dict.fromkeys(arm.agent for arm in found))
        return tuple(sorted(found, key=lambda arm: (domains.index(arm.domain), agents.index(arm.agent))))

    def of_arm(self, arm: Arm) -> Iterator[stream_pb2.Stream]:
        """The streams of an arm."""
        return (stream for stream in self.streams.values() if arm_of(stream) == arm)


def stream_plan(manifest: stream_pb2.StreamManifest, inputs: StreamInputs) -> StreamPlan:
    """The plan of a run."""
    return StreamPlan(
        streams={stream.stream_id: stream for stream in planned_streams(manifest)},
        seeds=list(manifest.seeds),
        trials=manifest.trials,
        domains={each.domain: domain_tasks(inputs.of_domain(each.domain)) for each in manifest.domains},
    )


class Grid:
    """Cubes of rewards and of strict rewards by arm. Nothing depends on the order of the rows."""

    def __init__(self, plan: StreamPlan) -> None:
        self.plan = plan
        self._seed = {seed: position for position, seed in enumerate(plan.seeds)}
        self.rewards = {arm: self._empty(arm) for arm in plan.arms}
        self.strict = {arm: self._empty(arm) for arm in plan.arms}

    def _empty(self, arm: Arm) -> Cube:
        shape = (len(self.plan.seeds), self.plan.trials, len(self.plan.domains[arm.domain].ids))
        return np.full(shape, MISSING, dtype=np.int8)

    def place(self, row: StreamRow) -> tuple[Arm, tuple[int, int, int]]:
        """The arm of a row and its place in the cubes; InputError for a row that was not planned."""
        stream = self.plan.streams.get(row.stream_id)
        column = self.plan.domains[stream.domain].column.get(row.task_id) if stream else None
        if stream is None or column is None:
            raise InputError(
                f"The record of unit {row.unit_id} (stream {row.stream_id}, task {row.task_id}) belongs to "
                "no planned task; run `policysweep verify` on the run."
            )
        return arm_of(stream), (self._seed[stream.seed], stream.trial, column)

    def add(self, row: StreamRow) -> None:
        """Enter the outcome of a row."""
        arm, place = self.place(row)
        for cubes, passed in ((self.rewards, row.passed), (self.strict, row.strict)):
            if passed is not None:
                cubes[arm][place] = PASSED if passed else FAILED


@dataclass(frozen=True, slots=True)
class Pairs:
    """Trials of one arm held against those of another with the same seed, trial and task, both scored."""

    both: int
    won: int
    """Passed where the other failed."""
    lost: int
    """Failed where the other passed."""
    neither: int

    @property
    def n(self) -> int:
        """All pairs."""
        return self.both + self.won + self.lost + self.neither


def pairs(cube: Cube, other: Cube) -> Pairs:
    """The pairs of two cubes of equal shape."""

    def count(own: int, others: int) -> int:
        return int(np.count_nonzero((cube == own) & (other == others)))

    return Pairs(count(PASSED, PASSED), count(PASSED, FAILED), count(FAILED, PASSED), count(FAILED, FAILED))
