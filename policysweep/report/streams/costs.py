"""What an arm took, what went wrong in it, and what its feedback came to."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from policysweep.report.figures import Json
from policysweep.report.per_agent import tokens_json
from policysweep.report.rows import Tokens
from policysweep.report.streams.rows import StreamRow
from policysweep.report.tally import UNSTATED, party_name
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2, stream_pb2
from policysweep.v1 import policybank_pb2 as pb

ROLES = ("agent", "user", "judge", "curator")


def name_of(enum: Any, number: int, prefix: str) -> str:
    """An enum number as a key: its name without the prefix, or the number if it is not known."""
    known: str = enum.Name(number) if number in enum.values() else str(number)
    return known.removeprefix(prefix)


def counts(counter: Mapping[str, int]) -> dict[str, int]:
    """Counts, sorted by name."""
    return dict(sorted(counter.items()))


def nested(counter: Mapping[tuple[str, str], int]) -> dict[str, dict[str, int]]:
    """Counts by the first and then by the second part of their names, sorted."""
    found: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for (first, second), number in sorted(counter.items()):
        found[first][second] = number
    return dict(found)


def costs_json(rows: Sequence[StreamRow]) -> Json:
    """Tokens by role, wall time of the episodes, attempts, and answers that could not be used."""
    seconds = [row.duration_seconds for row in rows]
    total = {role: Tokens() for role in ROLES}
    for row in rows:
        for role in ROLES:
            total[role] = total[role].plus(getattr(row, f"{role}_tokens"))
    return {
        "tokens": {role: tokens_json(found) for role, found in total.items()},
        "seconds": {
            "total": float(np.sum(seconds)),
            "median": float(np.median(seconds)) if seconds else None,
            "p95": float(np.quantile(seconds, 0.95)) if seconds else None,
        },
        "attempts": sum(row.attempts for row in rows),
        "unusable_curator_answers": sum(row.lesson.unusable_answers for row in rows if row.lesson),
        "unusable_judge_answers": sum(row.unusable_grades for row in rows),
    }


def feedback_json(rows: Iterable[StreamRow]) -> Json:
    """Revisions by kind, the failures and gaps that the curator saw, and feedback that is missing."""
    kinds: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    gaps: Counter[str] = Counter()
    missing: Counter[tuple[str, str]] = Counter()
    for row in rows:
        if row.missing:
            missing[party_name(row.missing[0]), row.missing[1] or UNSTATED] += 1
        if row.lesson:
            kinds[name_of(pb.RevisionKind, row.lesson.kind, "REVISION_KIND_")] += 1
            if row.lesson.failure_type:
                failures[name_of(pb.FailureType, row.lesson.failure_type, "FAILURE_TYPE_")] += 1
            if row.lesson.gap_class:
                gaps[name_of(pb.GapClass, row.lesson.gap_class, "GAP_CLASS_")] += 1
    return {
        "revisions": counts(kinds),
        "failure_types": counts(failures),
        "gap_classes": counts(gaps),
        "missing": nested(missing),
    }


def ends_json(rows: Iterable[StreamRow], failures: Iterable[stream_pb2.StreamFailure]) -> Json:
    """Ends that are not clean by party, rewards that could not be given, and tasks that failed for good."""
    faults: Counter[tuple[str, str]] = Counter()
    absent: Counter[str] = Counter()
    for row in rows:
        if row.fault:
            faults[party_name(row.fault), name_of(ep.EndReason, row.end_reason, "END_REASON_")] += 1
        elif row.passed is None:
            reason = name_of(judge_pb2.AbsentReason, row.absent_reason, "ABSENT_REASON_")
            absent[reason if row.absent_reason else UNSTATED] += 1
    failed: Counter[tuple[str, str]] = Counter()
    for failure in failures:
        last = failure.attempts[-1] if failure.attempts else None
        failed[party_name(last.party if last else 0), (last.reason if last else "") or UNSTATED] += 1
    return {"faults": nested(faults), "absent_rewards": counts(absent), "failures": nested(failed)}
