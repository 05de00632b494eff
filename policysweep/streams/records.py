"""What must hold within the record of a stream's task."""

from __future__ import annotations

from policysweep.sweep.records import episode_problems
from policysweep.v1 import policybank_pb2 as pb
from policysweep.v1 import stream_pb2

LESSONS = (pb.REVISION_KIND_ADD, pb.REVISION_KIND_REVISE, pb.REVISION_KIND_OMIT)
"""What a feedback can do to a bank."""


def record_problems(record: stream_pb2.StreamRecord) -> list[str]:
    """What contradicts itself in a record, whatever the plan; [] when it is sound."""
    problems = episode_problems(record.task, record.episode, ("task_id", "seed"))
    if not record.HasField("grade"):
        problems.append("it has no grade")
    return [*problems, *_bank_problems(record)]


def _bank_problems(record: stream_pb2.StreamRecord) -> list[str]:
    before, after, revision = record.bank_revision_before, record.bank_revision_after, record.revision
    problems = []
    if not record.HasField("revision"):
        if before != after:
            problems.append(f"it has no revision, but moves the bank from {before} to {after}")
        return problems
    if record.HasField("missing_feedback"):
        problems.append("it has a revision and says why it has none")
    if revision.number != after or after != before + 1:
        problems.append(f"its revision is {revision.number}, from {before} to {after}")
    if revision.kind not in LESSONS:
        problems.append(f"its revision is no lesson but {pb.RevisionKind.Name(revision.kind)}")
    if revision.request_id != record.task.unit_id:
        problems.append(f"its revision rests on request {revision.request_id or 'none'}")
    return problems
