from __future__ import annotations

import pytest

from .support import Conversation, builtin_world, return_of


def test_nothing_of_a_delivered_order_can_be_updated() -> None:
    talk = Conversation(builtin_world("task_000"))
    requests: list[tuple[str, dict[str, object], str]] = [
        ("shipping_address", {"new_address_label": "Home"}, "has left"),
        ("delivery_instructions", {"delivery_instructions": "Ring twice"}, "has been delivered"),
        ("quantity", {"item_id": "I-000-1", "new_quantity": 0}, "no longer be canceled"),
        ("cancel_item", {"item_id": "I-000-1"}, "no longer be canceled"),
        ("cancel_order", {}, "no longer be canceled"),
    ]
    for kind, more, reason in requests:
        assert reason in talk.own_error("update_order", update_type=kind, **more)
    assert not talk.environment.writes()


def test_an_address_on_file_can_replace_the_one_of_unsent_parcels() -> None:
    talk = Conversation()
    assert "Work" in talk.own_error("update_order", update_type="shipping_address", new_address_label="Moon")
    content = talk.own("update_order", update_type="shipping_address", new_address_label="work")
    assert content["shipments"] == ["S-5"]
    assert talk.ok("get_order_details", order_id="current")["ship_to"] == {
        "address_label": "Work",
        "cross_border": True,
    }
    assert talk.implied() == ["UNSPECIFIED"]


def test_instructions_are_kept() -> None:
    talk = Conversation()
    assert "missing" in talk.own_error("update_order", update_type="delivery_instructions")
    talk.own("update_order", update_type="delivery_instructions", delivery_instructions="Ring twice")
    shown = talk.ok("get_order_details", order_id="current", detail_type="status")
    assert shown["order_status"]["delivery_instructions"] == "Ring twice"


def test_unsent_units_can_be_canceled_and_are_paid_back() -> None:
    talk = Conversation()
    more = {"update_type": "quantity", "item_id": "I-5"}
    assert "below the 2" in talk.own_error("update_order", **more, new_quantity=2)
    assert talk.own("update_order", **more, new_quantity=1)["refund"]["amount"] == 5.7
    assert talk.own("update_order", update_type="cancel_item", item_id="I-5")["refund"]["amount"] == 5.7
    assert "below the 0" in talk.own_error("update_order", **more, new_quantity=0)
    assert "delivered" in talk.own_error("update_order", update_type="cancel_order")
    assert "item_id" in talk.own_error("update_order", update_type="cancel_item")
    assert talk.implied() == ["RETURN_REFUND_FULL_BANK"] * 2


def test_a_whole_unsent_order_is_canceled_with_its_shipping() -> None:
    world = builtin_world("task_000")
    unsent = type(world)()
    unsent.CopyFrom(world)
    unsent.order.shipping_charge = 9.0
    unsent.order.payment.amount += 9.0
    for parcel in unsent.order.shipments:
        parcel.carrier_status = "label_created"
    talk = Conversation(unsent)
    assert talk.own("update_order", update_type="cancel_order")["refund"]["amount"] == 612.0
    shown = talk.ok("get_order_details", order_id="current", detail_type="status")
    assert shown["order_status"]["state"] == "canceled"
    assert "Nothing is left" in talk.own_error("update_order", update_type="cancel_item", item_id="I-000-1")


@pytest.mark.parametrize(
    ("request_", "amount"),
    [
        ({"discount_type": "percentage", "value": 10}, 9.5),
        ({"discount_type": "percentage", "value": 10, "apply_to": "item", "item_ids": ["i-2"]}, 1.9),
        ({"discount_type": "percentage", "value": 50, "apply_to": "shipping"}, 3.75),
        ({"discount_type": "fixed_amount", "value": "12.5"}, 12.5),
        ({"discount_type": "goodwill", "value": 5, "code": "SORRY", "override_policy": True}, 5.0),
        ({"discount_type": "free_shipping"}, 7.5),
    ],
)
def test_discounts_lower_what_was_paid(request_: dict[str, object], amount: float) -> None:
    talk = Conversation()
    discount = talk.own("apply_discount", **request_)["discount"]
    assert discount["amount"] == amount
    assert discount.get("overrides_policy", False) == request_.get("override_policy", False)
    assert talk.implied() == ["RETURN_REFUND_PARTIAL_BANK"]


def test_impossible_discounts_are_refused() -> None:
    talk = Conversation()
    assert "needs a value" in talk.own_error("apply_discount", discount_type="percentage")
    assert "at most 100" in talk.own_error("apply_discount", discount_type="percentage", value=101)
    assert "At most $95.03" in talk.own_error("apply_discount", discount_type="fixed_amount", value=95.04)
    one = {"discount_type": "fixed_amount", "apply_to": "item", "value": 1}
    assert "item_ids" in talk.own_error("apply_discount", **one)
    assert "I-9" in talk.own_error("apply_discount", **one, item_ids=["I-9"])
    talk.own("apply_discount", discount_type="free_shipping")
    assert "$0.00" in talk.own_error("apply_discount", discount_type="free_shipping", reason="again")


def test_a_discounted_item_brings_less_when_it_is_returned() -> None:
    talk = Conversation()
    talk.own("apply_discount", discount_type="fixed_amount", apply_to="item", value=4, item_ids=["I-2"])
    assert talk.own("process_return", **return_of(("I-2", 1, "defective")))["refund"]["amount"] == 15.0
    assert talk.implied()[-1] == "RETURN_REFUND_FULL_BANK"
