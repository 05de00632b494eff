from __future__ import annotations

import json

import pytest

from .support import OK, TASKS, Conversation, builtin_world, mixed_world


@pytest.mark.parametrize("task", TASKS)
def test_every_builtin_world_answers_every_read(task: str) -> None:
    world = builtin_world(task)
    talk = Conversation(world)
    for detail in ("items", "delivery_dates", "promotions", "payment", "status", "full"):
        talk.ok("get_order_details", order_id=world.order.order_id, detail_type=detail, include_tracking=True)
    for past in world.other_orders:
        assert talk.ok("get_order_details", order_id=past.order_id)["order"]["amount"] == past.amount
    for product in world.products:
        assert talk.ok("get_product_info", product_id=product.product_id)["price"] == product.price
        talk.ok("check_inventory", product_id=product.product_id)
    history = talk.ok("get_purchase_history", customer_id=world.customer.customer_id)
    assert history["orders_found"] == len(world.other_orders) + 1
    for kind in ("returns", "exchanges", "refunds", "shipping", "gift_cards", "damaged_items", "all"):
        assert talk.ok("get_policy_info", policy_type=kind)["sections"]
    risk = talk.ok("get_return_frequency_assessment", customer_id=world.customer.customer_id)
    assert risk["return_rate"] == world.customer.return_history.rate


def test_order_details_show_what_is_asked_for() -> None:
    talk = Conversation()
    full = talk.ok("get_order_details", order_id="ord-1", include_tracking=True)
    assert {"items", "delivery_dates", "promotions", "payment", "order_status", "tracking"} <= full.keys()
    assert full["customer_id"] == "CUST-1"
    assert full["order_status"]["state"] == "partly_delivered"
    assert full["tracking"][1]["events"][-1] == {"date": "2026-01-20", "event": "delivered"}
    assert full["items"][0]["return_window_days_on_listing"] is None
    part = talk.ok("get_order_details", order_id="ORD-1", detail_type="payment")
    assert part.keys() == {"status", "order_id", "customer_id", "placed_at", "today", "payment"}
    assert part["payment"]["amount"] == 102.53


def test_unknown_orders_and_accounts_are_refused_with_what_is_on_file() -> None:
    talk = Conversation()
    assert json.loads(talk.error("get_order_details", order_id="ORD-77"))["orders_on_account"] == [
        "ORD-1",
        "ORD-0",
    ]
    assert "CUST-1" in talk.error("get_order_details", order_id="ORD-1", customer_id="CUST-2")
    assert "CUST-1" in talk.error("get_purchase_history", customer_id="CUST-2")
    assert "CUST-1" in talk.error("get_return_frequency_assessment", customer_id="CUST-2")


def test_products_are_found_by_number_name_or_part_of_it() -> None:
    talk = Conversation()
    assert talk.ok("get_product_info", product_id=" p-6-a ")["product_id"] == "P-6"
    assert talk.ok("get_product_info", product_name="THING 3")["product_id"] == "P-3"
    assert talk.ok("get_product_info", product_name="better")["name"] == "Better thing"
    assert "specs" not in talk.ok("get_product_info", product_id="P-1", include_specs=False)
    assert json.loads(talk.error("get_product_info", product_name="thing"))["did_you_mean"][0] == "Thing 1"
    assert "Better thing" in talk.error("get_product_info", product_name="beter thng")
    assert "product_id or product_name" in talk.error("get_product_info", product_name="")
    assert "P-9" in talk.error("get_product_info", product_id="P-9")


def test_specs_have_a_fixed_order() -> None:
    assert list(Conversation().ok("get_product_info", product_id="P-1")["specs"]) == [
        "Age",
        "Color",
        "Page note",
    ]


def test_inventory_knows_restock_dates_variants_and_alternatives() -> None:
    talk = Conversation()
    empty = talk.ok("check_inventory", product_id="P-2")
    assert (empty["in_stock"], empty["restock_date"]) == (False, "2026-02-15")
    assert [other["product_id"] for other in empty["alternatives"]] == ["P-1", "P-3", "P-4", "P-5", "P-6"]
    four = talk.ok("check_inventory", product_id="P-2", quantity=4)
    assert [other["product_id"] for other in four["alternatives"]] == ["P-3", "P-4", "P-5"]
    assert talk.ok("check_inventory", product_id="P-6-A", quantity="2")["available"] == 1
    assert "alternatives" not in talk.ok("check_inventory", product_id="P-1", suggest_alternatives=False)
    assert "P-9" in talk.error("check_inventory", product_id="P-9")


def test_history_is_filtered_and_newest_first() -> None:
    talk = Conversation()

    def orders(**filters: object) -> list[str]:
        found = talk.ok("get_purchase_history", customer_id="current", **filters)
        return [order["order_id"] for order in found["orders"]]

    assert orders() == ["ORD-1", "ORD-0"]
    assert orders(limit=1) == ["ORD-1"]
    assert orders(product_filter="books") == ["ORD-0"]
    assert orders(start_date="2025-07-01") == ["ORD-1"]
    assert orders(end_date="2025-06-01") == ["ORD-0"]
    assert orders(start_date="2025-06-02", end_date="2026-01-01") == []
    shown = talk.ok("get_purchase_history", customer_id="current", include_returns=False)
    assert all("returns" not in order for order in shown["orders"])


def test_writes_are_seen_by_later_reads() -> None:
    talk = Conversation()
    talk.give_back(("I-1", 2, "opened_used"), kind="RETURN_REFUND_GIFT_CARD")
    talk.own("apply_discount", discount_type="fixed_amount", value=1)
    shown = talk.ok("get_order_details", order_id="current")
    assert shown["items"][0]["units_return"] == 2
    assert shown["order_status"]["returns"][0]["return_id"] == "RET-1-1"
    assert [refund["type"] for refund in shown["payment"]["refunds"]] == ["return", "discount"]
    assert shown["payment"]["paid_back"] == sum(refund["amount"] for refund in shown["payment"]["refunds"])
    assert shown["promotions"][-1]["amount"] == 1.0
    history = talk.ok("get_purchase_history", customer_id="current")
    assert history["orders"][0]["returns"][0]["return_id"] == "RET-1-1"


def test_the_world_is_never_changed() -> None:
    world = mixed_world()
    before = world.SerializeToString(deterministic=True)
    talk = Conversation(world)
    talk.give_back(("I-1", 1, "opened_used"))
    talk.own("update_order", update_type="shipping_address", new_address_label="work")
    talk.own("update_order", update_type="cancel_item", item_id="I-5")
    assert world.SerializeToString(deterministic=True) == before
    assert Conversation(world).outcome("get_order_details", order_id="current").status == OK
