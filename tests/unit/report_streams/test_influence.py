from __future__ import annotations

from collections.abc import Sequence

from policysweep.report.rows import Tokens
from policysweep.report.streams.arms import domain_tasks
from policysweep.report.streams.influence import (
    LessonKey,
    consultations,
    families_json,
    lessons,
    lessons_json,
)
from policysweep.report.streams.rows import Lesson, StreamRow
from policysweep.v1 import policybank_pb2 as pb

from .samples import made_inputs

ADD, REVISE, OMIT = pb.REVISION_KIND_ADD, pb.REVISION_KIND_REVISE, pb.REVISION_KIND_OMIT


def row(
    position: int,
    task_id: str,
    *,
    passed: bool | None,
    consulted: Sequence[str] = (),
    learns: tuple[int, str] | None = None,
) -> StreamRow:
    lesson = Lesson(position + 2, learns[0], learns[1], 0, 0, 0) if learns else None
    none = Tokens()
    return StreamRow(
        unit_id=f"u{position}",
        stream_id="s",
        position=position,
        task_id=task_id,
        passed=passed,
        strict=passed,
        fault=0,
        end_reason=10,
        absent_reason=0,
        lesson=lesson,
        missing=None,
        consulted=tuple(consulted),
        database_hash="",
        agent_tokens=none,
        user_tokens=none,
        judge_tokens=none,
        curator_tokens=none,
        unusable_grades=0,
        duration_seconds=1.0,
        attempts=1,
        rehearsal=True,
    )


STREAM = [
    row(0, "1", passed=False, consulted=["refunds"], learns=(ADD, "parts")),
    row(1, "1-1", passed=True, consulted=["parts", "refunds"], learns=(OMIT, "")),
    row(2, "1-2", passed=False, consulted=["parts"], learns=(REVISE, "parts")),
    row(3, "1-3", passed=True, consulted=["parts"], learns=(OMIT, "")),
    row(4, "9", passed=False, consulted=["parts"]),
    row(5, "10", passed=None, consulted=["parts"]),
]
NONE = {"1": False, "1-1": False, "1-2": False, "1-3": False, "9": True, "10": True}


def baseline(found: StreamRow) -> bool | None:
    return NONE.get(found.task_id)


def test_a_consulted_entry_stands_for_the_task_that_last_changed_it() -> None:
    assert [(found.task_id, key) for found, key in consultations(STREAM)] == [
        ("1", LessonKey("refunds", "")),
        ("1-1", LessonKey("parts", "1")),
        ("1-1", LessonKey("refunds", "")),
        ("1-2", LessonKey("parts", "1")),
        ("1-3", LessonKey("parts", "1-2")),
        ("9", LessonKey("parts", "1-2")),
        ("10", LessonKey("parts", "1-2")),
    ]


def test_won_and_lost_against_no_memory_by_hand() -> None:
    found = lessons([STREAM], baseline)
    first = found[LessonKey("parts", "1")]
    assert dict(first.kinds) == {ADD: 1}
    assert (first.effect.consulted, first.effect.passed, first.effect.failed) == (2, 1, 1)
    assert (first.effect.won, first.effect.lost) == (1, 0)
    revised = found[LessonKey("parts", "1-2")].effect
    # Task 10 was not scored: consulted, and no outcome.
    assert (revised.consulted, revised.passed, revised.failed) == (3, 1, 1)
    assert (revised.won, revised.lost) == (1, 1)
    assert found[LessonKey("refunds", "")].kinds.total() == 0


def test_lessons_with_most_changed_outcomes_come_first() -> None:
    told = lessons_json([STREAM, STREAM], baseline)
    assert [(each["capability_id"], each["taught_by"]) for each in told] == [
        ("parts", "1-2"),
        ("parts", "1"),
        ("refunds", None),
    ]
    assert told[0]["tasks"] == {"1-3": 2, "10": 2, "9": 2}
    assert told[1]["learnt"] == {"ADD": 2}


def test_nothing_is_won_without_a_baseline() -> None:
    told = lessons_json([STREAM], lambda found: None)
    assert all(each["won"] == each["lost"] == 0 for each in told)


def test_a_family_tells_what_its_parent_taught_and_where_it_was_used() -> None:
    tasks = domain_tasks(made_inputs().tasks.values())
    family = families_json(tasks, [STREAM], baseline)[0]
    assert family["parent"] == "1"
    assert family["learnt"] == {"ADD": 1}
    assert [(each["task"], each["passed"], each["failed"]) for each in family["places"]] == [
        ("1", 0, 1),
        ("1-1", 1, 0),
        ("1-2", 0, 1),
        ("1-3", 1, 0),
    ]
    # The lesson of the family was used in its three sisters, each counted once, and not in task 9.
    assert family["under_own_lesson"] == {"tasks": 3, "passed": 2, "failed": 1, "won": 2, "lost": 0}
