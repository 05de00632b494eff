from __future__ import annotations

import pytest

from policysweep.domains.returns.reconcile import reconcile
from policysweep.domains.returns.resolution import outcome_from_name, outcome_name
from policysweep.v1 import episode_pb2

from .support import Conversation

FULL, PARTIAL, GIFT = "RETURN_REFUND_FULL_BANK", "RETURN_REFUND_PARTIAL_BANK", "RETURN_REFUND_GIFT_CARD"
DENY, SWAP, ESCALATE, ABORT = "DENY_REFUND", "REPLACEMENT_EXCHANGE", "ESCALATE_HUMAN_AGENT", "USER_ABORT"
NONE = "UNSPECIFIED"


def outcome(name: str) -> episode_pb2.Outcome.ValueType:
    return episode_pb2.OUTCOME_UNSPECIFIED if name == NONE else outcome_from_name(name)


@pytest.mark.parametrize(
    ("declared", "implied", "executed", "mismatch"),
    [
        (FULL, [FULL], FULL, False),
        (FULL, [PARTIAL, FULL], FULL, False),
        (PARTIAL, [PARTIAL, NONE], PARTIAL, False),
        (FULL, [PARTIAL], PARTIAL, True),
        (FULL, [GIFT], GIFT, True),
        (SWAP, [FULL], FULL, True),
        (SWAP, [SWAP, SWAP], SWAP, False),
        (FULL, [], NONE, True),
        (GIFT, [NONE], NONE, True),
        (FULL, [DENY], DENY, True),
        (DENY, [], NONE, False),
        (DENY, [DENY], DENY, False),
        (DENY, [FULL, DENY], FULL, True),
        (DENY, [ESCALATE], ESCALATE, True),
        (ESCALATE, [PARTIAL], PARTIAL, True),
        (ESCALATE, [NONE], NONE, False),
        (ABORT, [], NONE, False),
        (ABORT, [DENY], DENY, False),
        (ABORT, [FULL], FULL, True),
        (NONE, [FULL], FULL, False),
        (NONE, [], NONE, False),
    ],
)
def test_rules(declared: str, implied: list[str], executed: str, mismatch: bool) -> None:
    writes = [
        episode_pb2.ExecutedWrite(tool_name="w", tool_call_id=str(i), implied_outcome=outcome(name))
        for i, name in enumerate(implied)
    ]
    found = reconcile(outcome(declared), writes)
    assert outcome_name(found.declared) == declared
    assert outcome_name(found.executed) == executed
    assert found.mismatch == mismatch
    assert list(found.writes) == writes
    assert bool(found.explanation) == mismatch
    if mismatch:
        assert declared in found.explanation


def test_a_replacement_with_an_extra_payment_is_still_a_replacement() -> None:
    talk = Conversation()
    line = {
        "original_item_id": "I-2",
        "original_quantity": 1,
        "condition": "defective",
        "new_product_id": "P-6",
        "new_quantity": 1,
    }
    talk.own(
        "process_exchange",
        items_to_exchange=[line],
        exchange_reason="defective",
        price_difference="waive_difference",
    )
    talk.own("issue_refund", refund_type="shipping_only", refund_method="gift_card", refund_reason="late")
    assert talk.implied() == [SWAP, SWAP]
    assert not reconcile(outcome(SWAP), talk.environment.writes()).mismatch


def test_the_larger_part_decides_a_mixed_case() -> None:
    talk = Conversation()
    talk.give_back(("I-2", 1, "defective"), kind=SWAP)
    talk.give_back(("I-1", 3, "opened_used"))
    assert talk.implied() == [SWAP, FULL]


def test_shipping_does_not_make_a_partial_refund_full() -> None:
    talk = Conversation()
    talk.give_back(("I-2", 1, "defective"), kind=PARTIAL)
    pay = {"refund_method": "original_payment", "refund_reason": "agreed"}
    talk.own("issue_refund", refund_type="partial", amount=12, **pay)
    talk.own("issue_refund", refund_type="shipping_only", **pay)
    assert talk.implied()[-1] == PARTIAL
    talk.own("issue_refund", refund_type="goodwill", amount=7, **pay)
    assert talk.implied()[-1] == FULL
