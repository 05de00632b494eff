from __future__ import annotations

from policysweep.report.streams.html.history import stream_history
from policysweep.report.streams.rows import stream_row
from policysweep.v1 import policybank_pb2 as pb
from policysweep.v1 import stream_pb2

from .samples import entry, initial_bank, sample_run

FIRST = initial_bank(stream_pb2.Stream(method=pb.MEMORY_METHOD_POLICY_BANK))


def stream_records() -> list[stream_pb2.StreamRecord]:
    """The records of a PolicyBank stream, in order."""
    run = sample_run()
    stream = next(each for each in run.streams() if each.method == pb.MEMORY_METHOD_POLICY_BANK)
    return [each for each in run.records if each.task.stream_id == stream.stream_id]


def test_an_entry_evolves_over_the_tasks_that_changed_it() -> None:
    records = stream_records()
    revisions = [each.revision for each in records]
    history = stream_history(FIRST, [stream_row(each) for each in records], revisions)
    changes = [each for each in records if each.revision.capability_id == "lesson G-4"]
    assert len(changes) > 1
    steps = next(each for each in history["entries"] if each["id"] == "lesson G-4")["steps"]
    assert [each["position"] for each in steps] == [each.task.position for each in changes]
    assert [each["kind"] for each in steps] == ["add", *["revise"] * (len(changes) - 1)]
    assert steps[0]["failure"] == "policy gap"
    assert steps[0]["gap"] == "ambiguous scope"
    assert steps[0]["reward"] == 0.0
    before, after = changes[0].task.task_id, changes[1].task.task_id
    assert f"-ACTION: As task {before} shows, parts count too." in steps[1]["diff"]
    assert f"+ACTION: As task {after} shows, parts count too." in steps[1]["diff"]


def test_changed_entries_come_first_and_untouched_ones_keep_their_text() -> None:
    records = stream_records()
    history = stream_history(
        FIRST, [stream_row(each) for each in records], [each.revision for each in records]
    )
    *changed, last = history["entries"]
    assert all(any("position" in step for step in each["steps"]) for each in changed)
    assert last["id"] == "refunds"
    assert last["steps"] == [{"kind": "create", "revision": 1, "text": last["text"]}]


def test_an_initial_entry_that_changes_starts_with_its_text() -> None:
    (record, *_) = stream_records()
    revision = pb.Revision(
        number=2,
        kind=pb.REVISION_KIND_REVISE,
        capability_id="refunds",
        before=FIRST.entries[0],
        after=entry("refunds", 2, "Refund parts too."),
        request_id=record.task.unit_id,
    )
    record.revision.CopyFrom(revision)
    history = stream_history(FIRST, [stream_row(record)], [revision])
    (only,) = history["entries"]
    assert "Refund whole orders." in only["steps"][0]["text"]
    assert "+ACTION: Refund parts too." in only["steps"][1]["diff"]
    assert "Refund parts too." in only["text"]
    assert history["tasks"][0]["lesson"] == {"kind": "revise", "entry": "refunds"}


def test_a_stream_without_a_bank_has_tasks_alone() -> None:
    run = sample_run()
    record = next(each for each in run.records if not each.HasField("revision"))
    history = stream_history(None, [stream_row(record)], [])
    assert history["entries"] == []
    assert history["tasks"] == [{"unit": record.task.unit_id, "position": 0, "task": record.task.task_id}]
