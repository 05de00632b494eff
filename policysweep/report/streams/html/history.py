"""What one stream learnt, for a reader: task by task, and entry by entry; pure.

The history of a stream's bank is the first revision of the bank that it was forked from and the revisions in
the stream's records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from policysweep.bank_history import EvolutionStep, entry_evolution
from policysweep.bank_text import entry_text, word
from policysweep.report.figures import Json
from policysweep.report.streams.rows import StreamRow
from policysweep.v1 import policybank_pb2 as pb


def stream_history(
    first: pb.Revision | None, rows: Sequence[StreamRow], revisions: Sequence[pb.Revision]
) -> Json:
    """`first` is the bank's first revision, None without a bank; rows and revisions are in their order.

    tasks    by position: unit, position, task, consulted entries, and lesson (see `lesson_json`)
    entries  those that changed, in the order in which they first did, then the untouched ones: id, header,
             text as it reads at the end, steps (see `_step`)
    """
    history = [*([first] if first else []), *revisions]
    changed = dict.fromkeys(each.capability_id for each in revisions if each.HasField("after"))
    untouched = [entry.capability_id for entry in first.entries] if first else []
    position = {row.unit_id: row.position for row in rows}
    lessons = {each.request_id: each for each in revisions}
    return {
        "tasks": [_task(row, lessons.get(row.unit_id)) for row in rows],
        "entries": [
            _entry(capability_id, entry_evolution(history, capability_id), position)
            for capability_id in dict.fromkeys([*changed, *untouched])
        ],
    }


def _task(row: StreamRow, lesson: pb.Revision | None) -> Json:
    found: Json = {"unit": row.unit_id, "position": row.position, "task": row.task_id}
    if row.consulted:
        found["consulted"] = list(row.consulted)
    if lesson:
        found["lesson"] = lesson_json(lesson)
    return found


def lesson_json(lesson: pb.Revision) -> Json:
    """What a revision did and why, without texts of the entry; what is not stated is left out."""
    found = {
        "kind": word(lesson, "kind"),
        "entry": lesson.capability_id,
        "rationale": lesson.rationale,
        "failure": word(lesson, "failure_type"),
        "gap": word(lesson, "gap_class"),
    }
    return {key: value for key, value in found.items() if value}


def _entry(capability_id: str, steps: Sequence[EvolutionStep], position: dict[str, int]) -> Json:
    last = steps[-1].after if steps else pb.Entry()
    return {
        "id": capability_id,
        "header": last.header,
        "text": entry_text(last),
        "steps": list(_steps(steps, position)),
    }


def _steps(steps: Sequence[EvolutionStep], position: dict[str, int]) -> Iterator[Json]:
    """How an entry came to read as it does; the first step of an initial entry is its text."""
    for step in steps:
        revision = step.revision
        found = {**lesson_json(revision), "revision": revision.number}
        if revision.kind == pb.REVISION_KIND_CREATE:
            yield {**found, "text": entry_text(step.after)}
            continue
        found["position"] = position.get(revision.request_id)
        if revision.HasField("reward"):
            found["reward"] = revision.reward
        yield {**found, "diff": step.diff}
