"""A row is what the report needs of one task of a stream, and no more: a thousandth of its record."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from sys import intern

from policysweep.report.rows import Tokens, tokens_of, usages
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2, stream_pb2
from policysweep.v1 import policybank_pb2 as pb

_SCORED_FAULTS = (ep.FAULT_PARTY_UNSPECIFIED, ep.FAULT_PARTY_AGENT)


@dataclass(frozen=True, slots=True)
class Lesson:
    """What a task's feedback did to the bank. Enum numbers of `policybank_pb2`."""

    number: int
    kind: int
    capability_id: str
    failure_type: int
    gap_class: int
    unusable_answers: int

    @property
    def changes(self) -> bool:
        """Whether an entry reads otherwise than before."""
        return self.kind in (pb.REVISION_KIND_ADD, pb.REVISION_KIND_REVISE)


@dataclass(frozen=True, slots=True)
class StreamRow:
    """One recorded task of a stream. Enum numbers of the contract.

    `passed` is None when the task is not scored: a fault that is not the agent's, or a grade without reward.
    `strict` is the same with the strict reading of COMMUNICATE. A reward is 0 or 1.
    """

    unit_id: str
    stream_id: str
    position: int
    task_id: str
    passed: bool | None
    strict: bool | None
    fault: int
    end_reason: int
    absent_reason: int
    lesson: Lesson | None
    missing: tuple[int, str] | None
    """Party and reason, when the method learns and there is no lesson."""
    consulted: tuple[str, ...]
    """Entries that the agent was given, each once, in order."""
    database_hash: str
    agent_tokens: Tokens
    user_tokens: Tokens
    judge_tokens: Tokens
    curator_tokens: Tokens
    unusable_grades: int
    duration_seconds: float
    attempts: int
    rehearsal: bool


def stream_row(record: stream_pb2.StreamRecord) -> StreamRow:
    """What the report needs of a record."""
    task, episode, grade, revision = record.task, record.episode, record.grade, record.revision
    scored = episode.end.fault in _SCORED_FAULTS
    missing = record.missing_feedback
    return StreamRow(
        unit_id=task.unit_id,
        stream_id=intern(task.stream_id),
        position=task.position,
        task_id=intern(task.task_id),
        passed=_passed(grade, "reward") if scored else None,
        strict=_passed(grade, "strict_reward") if scored else None,
        fault=episode.end.fault,
        end_reason=episode.end.reason,
        absent_reason=grade.absent_reason,
        lesson=_lesson(revision) if record.HasField("revision") else None,
        missing=(missing.party, intern(missing.reason)) if record.HasField("missing_feedback") else None,
        consulted=_consulted(episode.model_calls),
        database_hash=grade.database_hash,
        agent_tokens=tokens_of(usages(episode.model_calls, ep.ROLE_AGENT)),
        user_tokens=tokens_of(usages(episode.model_calls, ep.ROLE_CUSTOMER)),
        judge_tokens=tokens_of([grade.usage]) if grade.usage.model_calls else Tokens(),
        curator_tokens=tokens_of([revision.usage]) if revision.usage.model_calls else Tokens(),
        unusable_grades=grade.unusable_answers,
        duration_seconds=episode.duration_seconds,
        attempts=record.attempts,
        rehearsal=episode.rehearsal or grade.rehearsal or revision.rehearsal,
    )


def _passed(grade: judge_pb2.Tau2Grade, field: str) -> bool | None:
    # A reward is a product of factors that are 0 or 1, so it is one of them, whatever a float makes of it.
    return bool(getattr(grade, field) > 0.5) if grade.HasField(field) else None  # type: ignore[arg-type]  # a field name


def _lesson(revision: pb.Revision) -> Lesson:
    return Lesson(
        number=revision.number,
        kind=revision.kind,
        capability_id=intern(revision.capability_id),
        failure_type=revision.failure_type,
        gap_class=revision.gap_class,
        unusable_answers=revision.unusable_answers,
    )


def _consulted(calls: Iterable[ep.ModelCall]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(intern(each) for call in calls for each in call.consulted_spec_ids))
