"""What is compared in a stream run, and the groups of tasks that it is compared on.

An arm is what differs between streams that meet the same tasks: method, feedback regime and agent, in one
domain. Its streams differ in seed and trial.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from policysweep.report.statistics import IntArray, index
from policysweep.v1 import policybank_pb2 as pb
from policysweep.v1 import stream_pb2, tau2_pb2

NONE, ORACLE = pb.MEMORY_METHOD_NONE, pb.MEMORY_METHOD_HUMAN_ORACLE

METHODS: Mapping[int, str] = {
    pb.MEMORY_METHOD_UNSPECIFIED: "(no method)",
    pb.MEMORY_METHOD_NONE: "No memory",
    pb.MEMORY_METHOD_SYNAPSE: "Synapse",
    pb.MEMORY_METHOD_AWM: "AWM",
    pb.MEMORY_METHOD_REASONING_BANK: "ReasoningBank",
    pb.MEMORY_METHOD_POLICY_BANK: "PolicyBank",
    pb.MEMORY_METHOD_FULL_CONTEXT: "Full context",
    pb.MEMORY_METHOD_HUMAN_ORACLE: "Human oracle",
}
REGIMES: Mapping[int, str] = {
    pb.FEEDBACK_REGIME_UNSPECIFIED: "no feedback",
    pb.FEEDBACK_REGIME_REWARD: "reward",
    pb.FEEDBACK_REGIME_EXPLANATION: "explanation",
    pb.FEEDBACK_REGIME_ORACLE: "oracle",
}

GROUPS: Mapping[str, str] = {
    "originals": "Originals",
    "parents": "Parents",
    "other_originals": "Other originals",
    "sisters": "Sisters",
    "controls": "Controls",
}
"""Groups of tasks in reading order. Parents are the originals that a policy gap makes unsolvable."""

CURVE = ("parent", "t-1", "t-2", "t-3")
"""Places in a family, in the order in which a stream meets them."""


class Arm(NamedTuple):
    """A method under a regime with an agent, in a domain; method and regime are enum numbers."""

    domain: str
    agent: str
    method: int
    regime: int

    def like(self, method: int) -> Arm:
        """The arm of another method that knows one regime alone, with the same domain and agent."""
        regime = pb.FEEDBACK_REGIME_ORACLE if method == ORACLE else pb.FEEDBACK_REGIME_UNSPECIFIED
        return self._replace(method=method, regime=regime)


def arm_of(stream: stream_pb2.Stream) -> Arm:
    """The arm that a stream belongs to."""
    return Arm(stream.domain, stream.agent, stream.method, stream.regime)


def titles(arms: Iterable[Arm]) -> dict[Arm, str]:
    """Names of the arms of one table: with regime and agent where the method does not tell them apart."""
    arms = list(arms)
    regimes: dict[int, set[int]] = {}
    for arm in arms:
        regimes.setdefault(arm.method, set()).add(arm.regime)
    several = len({arm.agent for arm in arms}) > 1
    return {arm: _title(arm, len(regimes[arm.method]) > 1, several) for arm in arms}


def _title(arm: Arm, regime: bool, agent: bool) -> str:
    apart = [REGIMES[arm.regime]] if regime else []
    apart += [arm.agent] if agent else []
    return f"{METHODS[arm.method]} ({', '.join(apart)})" if apart else METHODS[arm.method]


@dataclass(frozen=True)
class DomainTasks:
    """The tasks of a domain that a run plays, sorted by id, with their families.

    A family is an original with its sisters; a task without sisters, and each control, is its own.
    """

    tasks: Sequence[tau2_pb2.Tau2Task]

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """Ids in the order of the columns of all tables."""
        return tuple(task.task_id for task in self.tasks)

    @cached_property
    def column(self) -> Mapping[str, int]:
        """The column of each task."""
        return {task_id: position for position, task_id in enumerate(self.ids)}

    @cached_property
    def by_family(self) -> Mapping[str, Sequence[str]]:
        """Ids of the families of several tasks, parent first, in the order in which a stream meets them."""
        sisters: dict[str, list[str]] = {}
        for task in self.tasks:
            if task.kind == tau2_pb2.TAU2_TASK_KIND_SISTER:
                sisters.setdefault(task.parent_task_id, []).append(task.task_id)
        return {parent: (parent, *found) for parent, found in sisters.items()}

    def families(self, columns: Sequence[int]) -> IntArray:
        """Indices, from 0, of the families of some columns."""
        return index([family_of(self.tasks[column]) for column in columns])[1]

    def group(self, name: str) -> list[int]:
        """Columns of a group of `GROUPS`."""
        return [column for column, task in enumerate(self.tasks) if name in groups_of(task)]

    def place(self, place: int) -> list[int]:
        """Columns of the tasks at a place of `CURVE`."""
        return [self.column[found[place]] for found in self.by_family.values() if place < len(found)]


def domain_tasks(tasks: Iterable[tau2_pb2.Tau2Task]) -> DomainTasks:
    """The tasks of a domain, in any order."""
    return DomainTasks(sorted(tasks, key=lambda task: task.task_id))


def family_of(task: tau2_pb2.Tau2Task) -> str:
    """Names the family of a task within its domain."""
    return task.parent_task_id or task.task_id


def groups_of(task: tau2_pb2.Tau2Task) -> tuple[str, ...]:
    """The groups that a task belongs to."""
    if task.kind == tau2_pb2.TAU2_TASK_KIND_SISTER:
        return ("sisters",)
    if task.kind == tau2_pb2.TAU2_TASK_KIND_CONTROL:
        return ("controls",)
    return ("originals", "parents" if task.gap_id else "other_originals")
