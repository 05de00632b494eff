from __future__ import annotations

import pytest

from policysweep.v1 import world_pb2

from .support import Conversation, builtin_world, mixed_world, return_of, truthful_lines

PARTIAL = "RETURN_REFUND_PARTIAL_BANK"


def refund(kind: str, **more: object) -> dict[str, object]:
    return {"refund_type": kind, "refund_method": "original_payment", "refund_reason": "agreed", **more}


@pytest.mark.parametrize("kind", ["full", "partial"])
def test_items_are_not_paid_for_without_a_return(kind: str) -> None:
    talk = Conversation(builtin_world("task_000"))
    request = refund(kind, **({"amount": 5} if kind == "partial" else {}))
    assert "Create the return first" in talk.own_error("issue_refund", **request)
    assert "Create the return first" in talk.own_error(
        "issue_refund", **request, items=[{"item_id": "I-000-1"}]
    )


def test_a_partial_refund_follows_its_return() -> None:
    world = builtin_world("task_000")
    talk = Conversation(world)
    talk.give_back(*truthful_lines(world), kind=PARTIAL)
    content = talk.own("issue_refund", **refund("partial", amount=543))
    assert content["refund"]["items"] == {"I-000-1": 350.29, "I-000-2": 192.71}
    assert content["left_of_amount_paid"] == 60.0
    assert talk.implied() == [PARTIAL, PARTIAL]
    assert "At most $60.00" in talk.own_error("issue_refund", **refund("partial", amount=60.01))
    talk.own("issue_refund", **refund("partial", amount="60.00"))
    assert talk.implied()[-1] == "RETURN_REFUND_FULL_BANK"
    assert "nothing left" in talk.own_error("issue_refund", **refund("partial", amount=1))


def test_lines_can_be_paid_by_name() -> None:
    talk = Conversation()
    talk.give_back(("I-1", 3, "opened_used"), ("I-2", 1, "defective"), kind=PARTIAL)
    lines = [{"item_id": "I-1", "amount": 10}, {"item_id": "i-2", "amount": 19}]
    assert "comes to $29.00, not $30.00" in talk.own_error(
        "issue_refund", **refund("partial", items=lines, amount=30)
    )
    too_much = [{"item_id": "I-2", "amount": 19.01}]
    assert "At most $19.00" in talk.own_error("issue_refund", **refund("partial", items=too_much))
    content = talk.own("issue_refund", **refund("partial", items=lines))
    assert content["refund"]["items"] == {"I-1": 10.0, "I-2": 19.0}
    rest = talk.own("issue_refund", **refund("full"))
    assert rest["refund"]["items"] == {"I-1": 18.53}


def test_a_full_refund_pays_what_is_left_and_shipping_when_asked() -> None:
    talk = Conversation()
    talk.give_back(("I-2", 1, "defective"), kind=PARTIAL)
    assert "comes to $26.50, not $20.00" in talk.own_error(
        "issue_refund", **refund("full", include_shipping=True, amount=20)
    )
    assert talk.own("issue_refund", **refund("full", include_shipping=True))["refund"]["amount"] == 26.5
    assert talk.implied()[-1] == "RETURN_REFUND_FULL_BANK"
    assert "$0.00 of the shipping" in talk.own_error("issue_refund", **refund("shipping_only"))


def test_a_scheduled_refund_is_not_paid_twice() -> None:
    talk = Conversation()
    talk.give_back(("I-2", 1, "defective"))
    assert "REF-1-1" in talk.own_error("issue_refund", **refund("full"))


def test_quantities_limit_a_refund() -> None:
    talk = Conversation()
    talk.give_back(("I-1", 2, "opened_used"), kind=PARTIAL)
    assert "2 unit(s)" in talk.own_error(
        "issue_refund", **refund("full", items=[{"item_id": "I-1", "quantity": 3}])
    )
    content = talk.own("issue_refund", **refund("full", items=[{"item_id": "I-1", "quantity": 1}]))
    assert content["refund"]["amount"] == 9.51


def test_shipping_and_goodwill_need_no_return() -> None:
    talk = Conversation()
    assert talk.own("issue_refund", **refund("shipping_only"))["refund"]["amount"] == 7.5
    talk.own("issue_refund", **refund("goodwill", amount=10, refund_method="gift_card"))
    assert talk.implied() == [PARTIAL, "RETURN_REFUND_GIFT_CARD"]
    assert "$85.03" in talk.own_error("issue_refund", **refund("goodwill", amount=85.04))
    assert "needs an amount" in talk.own_error("issue_refund", **refund("goodwill"))
    free = Conversation(builtin_world("task_000"))
    assert "$0.00" in free.own_error("issue_refund", **refund("shipping_only"))


def test_a_lost_parcel_is_paid_for_once_without_a_return() -> None:
    talk = Conversation()
    content = talk.own("issue_refund", **refund("full", items=[{"item_id": "I-3"}]))
    assert content["refund"]["amount"] == 28.5
    assert talk.implied() == ["RETURN_REFUND_FULL_BANK"]
    assert "nothing left" in talk.own_error("issue_refund", **refund("full"))
    assert "0 of 2" in talk.own_error("process_return", **return_of(("I-3", 1, "unopened")))


def test_currency_item_and_repetition_are_checked() -> None:
    talk = Conversation()
    talk.give_back(("I-2", 1, "defective"), kind=PARTIAL)
    assert "USD" in talk.own_error("issue_refund", **refund("partial", amount=1, currency="EUR"))
    assert "I-9" in talk.own_error("issue_refund", **refund("full", items=[{"item_id": "I-9"}]))
    twice = [{"item_id": "I-2"}, {"item_id": "I-2"}]
    assert "appears twice" in talk.own_error("issue_refund", **refund("full", items=twice))
    assert "$19.00" in talk.own_error("issue_refund", **refund("partial"))


def test_a_promotion_on_shipping_lowers_shipping_only() -> None:
    world = world_pb2.OrderWorld()
    world.CopyFrom(mixed_world())
    world.order.promotions[0].scope = "shipping"
    talk = Conversation(world)
    assert talk.give_back(("I-2", 1, "defective"))["refund"]["amount"] == 20.0
    assert talk.own("issue_refund", **refund("shipping_only"))["refund"]["amount"] == 2.5


def test_goodwill_counts_against_the_amount_paid() -> None:
    world = builtin_world("task_000")
    talk = Conversation(world)
    talk.own("issue_refund", **refund("goodwill", amount=100))
    assert "$503.00" in talk.own_error("process_return", **return_of(*truthful_lines(world)))
