"""What the page holds of every stream and task: enough to list, to compare and to find its record.

arms      domain, agent, title, and whether it is the one that tasks are held against
streams   id, arm (its position), seed, trial, file, outcomes and lessons: one letter a task, by position
orders    for each domain the task ids by seed, in the order of the stream
domains   for each domain: file, and by task id kind, family, gap and what the user wants
"""

from __future__ import annotations

from collections.abc import Sequence

from policysweep.report.figures import Json
from policysweep.report.streams.arm_section import Material
from policysweep.report.streams.arms import NONE, arm_of, family_of, groups_of
from policysweep.report.streams.rows import StreamRow
from policysweep.streams.inputs import StreamInputs
from policysweep.streams.plan import task_order
from policysweep.v1 import policybank_pb2 as pb
from policysweep.v1 import stream_pb2, tau2_pb2

PENDING, PASSED, FAILED, UNSCORED = ".", "P", "F", "U"
"""Letters of outcomes."""

_KINDS = {pb.REVISION_KIND_ADD: "A", pb.REVISION_KIND_REVISE: "R", pb.REVISION_KIND_OMIT: "O"}
_NO_LESSON, _MISSING = "-", "M"


def domain_file(position: int) -> str:
    """The file of a domain's tasks; never made from a name, because names come from outside."""
    return f"report-data/d{position}.js"


def stream_file(position: int) -> str:
    """The file of a stream's history; `position` is its place in the plan."""
    return f"report-data/s{position:03}.js"


def record_file(stream: int, position: int) -> str:
    """The file of a record, by the places of its stream and of the task in it."""
    return f"report-data/s{stream:03}-{position:04}.js"


def page_index(manifest: stream_pb2.StreamManifest, inputs: StreamInputs, material: Material) -> Json:
    """The index of a run."""
    plan, rows, titles = material.grid.plan, material.rows, material.titles
    place = {arm: position for position, arm in enumerate(plan.arms)}
    return {
        "arms": [
            {"domain": arm.domain, "agent": arm.agent, "title": titles[arm], "baseline": arm.method == NONE}
            for arm in plan.arms
        ],
        "streams": [
            {
                "id": stream.stream_id,
                "arm": place[arm_of(stream)],
                "seed": stream.seed,
                "trial": stream.trial,
                "file": stream_file(position),
                **_letters(rows[stream.stream_id], len(plan.domains[stream.domain].ids)),
            }
            for position, stream in enumerate(plan.streams.values())
        ],
        "orders": {domain: _orders(manifest, inputs, domain) for domain in plan.domains},
        "domains": {
            domain: {
                "file": domain_file(position),
                "tasks": {task.task_id: _task(task) for task in tasks.tasks},
            }
            for position, (domain, tasks) in enumerate(plan.domains.items())
        },
    }


def _letters(rows: Sequence[StreamRow], planned: int) -> Json:
    outcomes, lessons = [PENDING] * planned, [_NO_LESSON] * planned
    for row in rows:
        outcomes[row.position] = UNSCORED if row.passed is None else PASSED if row.passed else FAILED
        if row.missing:
            lessons[row.position] = _MISSING
        elif row.lesson:
            lessons[row.position] = _KINDS.get(row.lesson.kind, _NO_LESSON)  # type: ignore[call-overload]  # the number of an enum
    return {"outcomes": "".join(outcomes), "lessons": "".join(lessons)}


def _orders(manifest: stream_pb2.StreamManifest, inputs: StreamInputs, domain: str) -> Json:
    tasks = inputs.of_domain(domain)
    return {
        str(seed): [task.task_id for task in task_order(tasks, domain, seed, manifest.controls)]
        for seed in manifest.seeds
    }


def _task(task: tau2_pb2.Tau2Task) -> Json:
    found = {
        "kind": groups_of(task)[-1],
        "family": family_of(task),
        "gap": task.gap_id,
        "about": task.user_scenario.reason_for_call or task.user_scenario.task_instructions,
    }
    return {key: value for key, value in found.items() if value}
