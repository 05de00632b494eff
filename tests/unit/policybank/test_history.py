"""What still stands of a history, and how an entry came to read as it does."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from policysweep.bank_history import entry_evolution, standing
from policysweep.v1 import policybank_pb2 as pb
from services.policybank.bank import Bank, first_revision, lesson_revision, rollback_revision

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def entry(capability_id: str, action: str) -> pb.Entry:
    return pb.Entry(capability_id=capability_id, header="About it.", spec=pb.Spec(action=action))


def begun(*capability_ids: str) -> Bank:
    entries = [entry(each, "Begin.") for each in capability_ids]
    return Bank.of("b", [first_revision(pb.BankInfo(), entries, pb.Revision(), NOW)])


def learnt(bank: Bank, after: pb.Entry | None) -> Bank:
    return bank.extended([lesson_revision(bank.latest, pb.Revision(after=after), NOW)])


def rolled_back(bank: Bank, to: int) -> Bank:
    return bank.extended([rollback_revision(bank, to, pb.Revision(), NOW)])


def test_an_entry_evolves_step_by_step() -> None:
    bank = learnt(
        learnt(learnt(begun("a"), entry("a", "Better.")), entry("b", "Other.")), entry("a", "Best.")
    )
    steps = entry_evolution(bank.revisions, "a")
    assert [step.revision.number for step in steps] == [1, 2, 4]
    assert [step.before is None for step in steps] == [True, False, False]
    assert steps[0].diff.splitlines()[:2] == ["--- (none)", "+++ revision 1"]
    assert steps[2].diff.splitlines()[-2:] == ["-ACTION: Better.", "+ACTION: Best."]
    assert steps[2].after == bank.latest.entries["a"]
    assert entry_evolution(bank.revisions, "c") == []


def test_what_was_rolled_back_is_no_step() -> None:
    bank = learnt(learnt(begun("a"), entry("a", "Wrong.")), entry("new", "Wrong too."))
    bank = learnt(rolled_back(bank, 1), entry("a", "Right."))
    assert [step.revision.number for step in entry_evolution(bank.revisions, "a")] == [1, 5]
    assert entry_evolution(bank.revisions, "new") == []


def test_a_rollback_may_restore_what_another_took_back() -> None:
    bank = rolled_back(learnt(begun("a"), entry("a", "Right.")), 1)
    assert [step.after.spec.action for step in entry_evolution(bank.revisions, "a")] == ["Begin."]
    bank = rolled_back(bank, 2)
    assert [step.after.spec.action for step in entry_evolution(bank.revisions, "a")] == ["Begin.", "Right."]


def test_a_history_without_rollback_stands_as_it_is() -> None:
    bank = learnt(learnt(begun("a"), None), entry("a", "Better."))
    assert standing(bank.revisions) == list(bank.revisions)
    assert standing([]) == []


STEPS = st.lists(
    st.one_of(st.integers(1, 9), st.none(), st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"))),
    max_size=8,
)


@given(STEPS)
def test_the_last_step_is_what_the_bank_holds(steps: list[int | tuple[str, str] | None]) -> None:
    bank = begun("a", "b")
    for step in steps:
        if isinstance(step, int):
            bank = rolled_back(bank, min(step, bank.latest.number))
        else:
            bank = learnt(bank, entry(*step) if step else None)
    for capability_id in "abc":
        evolution = entry_evolution(bank.revisions, capability_id)
        held = bank.latest.entries.get(capability_id)
        assert (evolution[-1].after if evolution else None) == held
        assert [step.before for step in evolution] == [None, *(step.after for step in evolution)][
            : len(evolution)
        ]
