"""Which lesson changed which outcome.

A task's feedback changes one entry of the bank. Later tasks of the stream in which the agent consulted that
entry were played under that lesson, until another task changes the entry again. Their outcomes are held
against no memory on the same task, seed and trial: *won* is a pass where no memory failed, *lost* a failure
where it passed. That an entry was consulted does not prove that it decided the task; that it was not
consulted proves that it did not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from policysweep.report.figures import Json
from policysweep.report.streams.arms import CURVE, DomainTasks
from policysweep.report.streams.rows import Lesson, StreamRow
from policysweep.v1 import policybank_pb2 as pb

Baseline = Callable[[StreamRow], bool | None]
"""Whether no memory passed the same task with the same seed and trial; None when it is not known."""

INITIAL = ""
"""Stands for the task that taught an entry which nothing has changed since the bank was made."""


class LessonKey(NamedTuple):
    """An entry as the feedback of a task left it."""

    capability_id: str
    taught_by: str


@dataclass(slots=True)
class Effect:
    """What became of the tasks in which a lesson was consulted."""

    consulted: int = 0
    passed: int = 0
    failed: int = 0
    won: int = 0
    lost: int = 0
    by_task: Counter[str] = field(default_factory=Counter)

    def add(self, row: StreamRow, none: bool | None) -> None:
        """Count a task in which the lesson was consulted."""
        self.consulted += 1
        self.by_task[row.task_id] += 1
        self.passed += row.passed is True
        self.failed += row.passed is False
        self.won += row.passed is True and none is False
        self.lost += row.passed is False and none is True


@dataclass(slots=True)
class LessonTally:
    """A lesson over all streams of an arm."""

    kinds: Counter[int] = field(default_factory=Counter)
    """How often it was learnt, by kind of revision; empty for an initial entry."""
    effect: Effect = field(default_factory=Effect)


def consultations(rows: Iterable[StreamRow]) -> Iterator[tuple[StreamRow, LessonKey]]:
    """Each task of one stream, in order, with each lesson that was consulted in it."""
    taught: dict[str, LessonKey] = {}
    for row in rows:
        for capability_id in row.consulted:
            yield row, taught.get(capability_id, LessonKey(capability_id, INITIAL))
        if row.lesson and row.lesson.changes:
            taught[row.lesson.capability_id] = _taught(row, row.lesson)


def _taught(row: StreamRow, lesson: Lesson) -> LessonKey:
    """The lesson of a task. A memory of one task is named after its unit, which no two streams share."""
    return LessonKey(lesson.capability_id.replace(row.unit_id, "").strip(":") or "memory", row.task_id)


def lessons(streams: Iterable[Sequence[StreamRow]], baseline: Baseline) -> dict[LessonKey, LessonTally]:
    """All lessons of an arm: those learnt, and the initial entries that were consulted.

    Each stream is its rows in order.
    """
    found: dict[LessonKey, LessonTally] = {}
    for rows in streams:
        for row in rows:
            if row.lesson and row.lesson.changes:
                found.setdefault(_taught(row, row.lesson), LessonTally()).kinds[row.lesson.kind] += 1
        for row, key in consultations(rows):
            found.setdefault(key, LessonTally()).effect.add(row, baseline(row))
    return found


def lessons_json(streams: Iterable[Sequence[StreamRow]], baseline: Baseline) -> list[Json]:
    """The lessons of an arm, those with most outcomes changed first."""
    found = lessons(streams, baseline)

    def order(key: LessonKey) -> tuple[int, int, LessonKey]:
        effect = found[key].effect
        return -(effect.won + effect.lost), -effect.consulted, key

    return [
        {
            "capability_id": key.capability_id,
            "taught_by": key.taught_by or None,
            "learnt": {_kind(kind): number for kind, number in sorted(found[key].kinds.items())},
            "consulted": found[key].effect.consulted,
            "passed": found[key].effect.passed,
            "failed": found[key].effect.failed,
            "won": found[key].effect.won,
            "lost": found[key].effect.lost,
            "tasks": dict(sorted(found[key].effect.by_task.items())),
        }
        for key in sorted(found, key=order)
    ]


def families_json(
    tasks: DomainTasks, streams: Sequence[Sequence[StreamRow]], baseline: Baseline
) -> list[Json]:
    """Each family of an arm: what its parent taught, how its tasks went, and whether the lesson was used."""
    return [_family_json(members, streams, baseline) for members in tasks.by_family.values()]


def _family_json(members: Sequence[str], streams: Sequence[Sequence[StreamRow]], baseline: Baseline) -> Json:
    places: Mapping[str, Effect] = {task_id: Effect() for task_id in members}
    learnt: Counter[str] = Counter()
    used = Effect()
    for rows in streams:
        for row in rows:
            if row.task_id in places:
                places[row.task_id].add(row, baseline(row))
            if row.task_id == members[0]:
                learnt[_learnt(row)] += 1
        for row in _under_own_lessons(rows, members):
            used.add(row, baseline(row))
    return {
        "parent": members[0],
        "learnt": dict(sorted(learnt.items())),
        "places": [
            {"place": place, "task": task_id, **_outcomes(places[task_id])}
            for place, task_id in zip(CURVE, members, strict=False)
        ],
        "under_own_lesson": {"tasks": used.consulted, **_outcomes(used)},
    }


def _under_own_lessons(rows: Sequence[StreamRow], members: Sequence[str]) -> Iterator[StreamRow]:
    """The sisters of one stream in which a lesson of their own family was consulted, each once."""
    found = {
        row.position: row
        for row, key in consultations(rows)
        if row.task_id in members and key.taught_by in members
    }
    yield from found.values()


def _outcomes(effect: Effect) -> Json:
    return {"passed": effect.passed, "failed": effect.failed, "won": effect.won, "lost": effect.lost}


def _learnt(row: StreamRow) -> str:
    """What the feedback of a task led to: a kind of revision, NOTHING, or a party that failed."""
    return _kind(row.lesson.kind) if row.lesson else "MISSING" if row.missing else "NOTHING"


def _kind(kind: int) -> str:
    return pb.RevisionKind.Name(pb.RevisionKind.ValueType(kind)).removeprefix("REVISION_KIND_")
