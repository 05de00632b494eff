"""A bank is the fold over its revisions."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policysweep.errors import BankConflict, BankNotFound, RevisionConflict
from policysweep.v1 import policybank_pb2 as pb
from services.policybank.bank import (
    Bank,
    InconsistentHistory,
    digest,
    first_revision,
    fold,
    lesson_revision,
    rollback_revision,
)

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def entry(capability_id: str, action: str = "Do it.") -> pb.Entry:
    return pb.Entry(capability_id=capability_id, header=f"about {capability_id}", spec=pb.Spec(action=action))


def bank(*capability_ids: str) -> Bank:
    first = first_revision(pb.BankInfo(), [entry(name) for name in capability_ids], pb.Revision(), NOW)
    return Bank.of("b", [first])


def learnt(held: Bank, after: pb.Entry | None, request_id: str = "") -> Bank:
    draft = pb.Revision(
        request_id=request_id,
        request_digest=f"digest of {request_id}",
        provenance=pb.Provenance(episode_id=f"e-{request_id}"),
        after=after,
    )
    return held.extended([lesson_revision(held.latest, draft, NOW)])


def rolled_back(held: Bank, to: int, request_id: str = "") -> Bank:
    return held.extended([rollback_revision(held, to, pb.Revision(request_id=request_id), NOW)])


def kinds(held: Bank) -> list[str]:
    return [pb.RevisionKind.Name(each.kind).removeprefix("REVISION_KIND_") for each in held.revisions]


def actions(held: Bank) -> dict[str, str]:
    return {name: held.latest.entries[name].spec.action for name in sorted(held.latest.entries)}


def test_what_a_lesson_does_follows_from_the_bank() -> None:
    held = learnt(learnt(learnt(bank("a"), entry("b"), "1"), entry("a", "Better."), "2"), None, "3")
    assert kinds(held) == ["CREATE", "ADD", "REVISE", "OMIT"]
    assert actions(held) == {"a": "Better.", "b": "Do it."}
    assert [each.number for each in held.revisions] == [1, 2, 3, 4]
    assert held.latest.entries["a"].revision == 3


def test_a_revision_tells_what_changed_and_why_it_did() -> None:
    held = learnt(bank("a"), entry("a", "Better."), "7")
    last = held.revisions[-1]
    assert last.before.spec.action == "Do it."
    assert "-ACTION: Do it.\n+ACTION: Better." in last.diff
    assert last.diff.startswith("--- revision 1\n+++ revision 2\n")
    assert [each.episode_id for each in last.after.provenance] == ["e-7"]


def test_provenance_grows_with_an_entry() -> None:
    held = learnt(learnt(bank(), entry("a"), "1"), entry("a", "Better."), "2")
    assert [each.episode_id for each in held.latest.entries["a"].provenance] == ["e-1", "e-2"]


def test_an_entry_that_the_bank_holds_as_it_is_changes_nothing() -> None:
    held = learnt(bank("a"), entry("a"), "1")
    assert kinds(held) == ["CREATE", "OMIT"]
    assert not held.revisions[-1].HasField("after")


def test_a_rollback_appends_and_can_itself_be_taken_back() -> None:
    held = learnt(bank("a"), entry("a", "Worse."), "1")
    back = rolled_back(held, 1)
    assert kinds(back) == ["CREATE", "REVISE", "ROLLBACK"]
    assert actions(back) == {"a": "Do it."}
    assert "-ACTION: Worse.\n+ACTION: Do it." in back.revisions[-1].diff
    assert actions(rolled_back(back, 2)) == {"a": "Worse."}


def test_every_earlier_state_can_be_read() -> None:
    held = rolled_back(learnt(bank("a"), entry("b"), "1"), 1)
    assert [sorted(held.at(number).entries) for number in (1, 2, 3)] == [["a"], ["a", "b"], ["a"]]
    with pytest.raises(BankNotFound, match="has the revisions 1 to 3, not 4"):
        held.at(4)


def test_a_recorded_request_is_known_until_it_is_rolled_back() -> None:
    held = learnt(bank("a"), entry("b"), "1")
    assert held.recorded("1", "digest of 1") == held.revisions[1]
    assert held.recorded("2", "") is None
    with pytest.raises(BankConflict, match=r"request id '1' led to revision 2 .* with another content"):
        held.recorded("1", "other")
    back = rolled_back(held, 1)
    assert back.recorded("1", "digest of 1") is None
    again = learnt(back, entry("b"), "1")
    assert again.recorded("1", "digest of 1") == again.revisions[3]


def test_another_revision_than_expected_is_a_conflict() -> None:
    bank().expect(1)
    with pytest.raises(RevisionConflict, match="is at revision 1, not at 3"):
        bank().expect(3)


def test_a_digest_is_of_the_content() -> None:
    request = pb.RecordFeedbackRequest(request_id="r", reward=0.5, expected_revision=3)
    other = pb.RecordFeedbackRequest(request_id="r", reward=0.5, expected_revision=4)
    assert digest(request, "expected_revision") == digest(other, "expected_revision")
    assert digest(request) != digest(other)
    assert request.expected_revision == 3


def broken(**changes: object) -> list[pb.Revision]:
    """A history of which the second revision was tampered with."""
    revisions = list(learnt(bank("a"), entry("b"), "1").revisions)
    for name, value in changes.items():
        if value is None:
            revisions[1].ClearField(name)  # type: ignore[arg-type]  # the names are those of its fields
        else:
            setattr(revisions[1], name, value)
    return revisions


@pytest.mark.parametrize(
    ("revisions", "problem"),
    [
        ([], "no revision"),
        (broken(number=3), "revision 3 comes after revision 1"),
        (broken(kind=pb.REVISION_KIND_CREATE), "revision 2: the first one"),
        (broken(kind=pb.REVISION_KIND_REVISE), "revision 2 does not follow"),
        (broken(kind=pb.REVISION_KIND_UNSPECIFIED), "unknown kind 0"),
        (broken(kind=pb.REVISION_KIND_ROLLBACK, restored_revision=2), "revision 2 restores revision 2"),
        (broken(after=None), "revision 2 changes an entry and does not hold it"),
        (broken()[1:], "revision 2 comes after revision 0"),
        (
            [pb.Revision(number=1, kind=pb.REVISION_KIND_CREATE, entries=[entry("a"), entry("a")])],
            "a capability id occurs twice",
        ),
    ],
)
def test_a_history_that_no_bank_can_have_is_refused(revisions: list[pb.Revision], problem: str) -> None:
    with pytest.raises(InconsistentHistory, match=problem):
        fold(revisions)


def test_rollbacks_of_rollbacks_are_not_followed_twice() -> None:
    held = bank("a")
    for number in range(1, 200):
        held = rolled_back(held, number)
    assert fold(held.revisions) == held.latest


@given(st.lists(st.one_of(st.none(), st.text(max_size=4), st.integers(1, 30)), max_size=20))
def test_the_fold_of_the_whole_equals_step_by_step(lessons: list[str | int | None]) -> None:
    held = bank("a", "")
    for number, lesson in enumerate(lessons):
        if isinstance(lesson, int):
            held = rolled_back(held, min(lesson, held.latest.number))
        else:
            held = learnt(held, None if lesson is None else entry(lesson, f"v{number}"), str(number))
    whole = Bank.of("b", held.revisions)
    assert whole == held
    assert [each.number for each in held.revisions] == list(range(1, len(lessons) + 2))
