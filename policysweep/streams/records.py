"""What must hold within the record of a stream's task."""

from __future__ import annotations

from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import policybank_pb2 as pb
from policysweep.v1 import stream_pb2

LESSONS = (pb.REVISION_KIND_ADD, pb.REVISION_KIND_REVISE, pb.REVISION_KIND_OMIT)
"""What a feedback can do to a bank."""


def record_problems(record: stream_pb2.StreamRecord) -> list[str]:
    """What contradicts itself in a record, whatever the plan; [] when it is sound.

    An episode that an infrastructure fault ended is no result and must never become a record.
    """
    return [*_episode_problems(record), *_bank_problems(record)]


def _episode_problems(record: stream_pb2.StreamRecord) -> list[str]:
    task, episode = record.task, record.episode
    problems = []
    if episode.episode_id != task.unit_id:
        problems.append(f"its episode is {episode.episode_id or 'missing'}")
    for field in ("task_id", "seed"):
        planned, played = getattr(task, field), getattr(episode, field)
        if planned != played:
            problems.append(f"its episode has {field} {played} instead of {planned}")
    if episode.end.reason == ep.END_REASON_UNSPECIFIED:
        problems.append("its episode did not end")
    if episode.end.fault == ep.FAULT_PARTY_INFRASTRUCTURE:
        problems.append(f"it keeps a fault of the infrastructure as a result: {episode.end.detail}")
    if not record.HasField("grade"):
        problems.append("it has no grade")
    return problems


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
