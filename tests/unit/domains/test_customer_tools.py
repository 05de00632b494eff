from __future__ import annotations

import pytest

from policysweep.domains.returns.customer_tools import Withdrawal

from .support import ALREADY, TASKS, Conversation, builtin_world


@pytest.mark.parametrize("task", TASKS)
def test_every_builtin_account_opens_its_pages(task: str) -> None:
    world = builtin_world(task)
    talk = Conversation(world)
    for view in ("summary", "items", "delivery", "payment", "returns", "full"):
        page = talk.ok("customer_view_order_details", order_id=world.order.order_id, view_type=view)
        assert page["total"] == world.order.payment.amount
    past = world.other_orders[0]
    shown = talk.ok("customer_view_order_details", order_id=past.order_id)
    assert shown["order"]["order_id"] == past.order_id
    profile = talk.ok("customer_inspect_profile", verify_for_agent=True)
    assert profile["profile"]["name"] == "Ada Quill"
    assert profile["tell_the_agent"]["order_id"] == world.order.order_id
    assert len(profile["orders"]) == len(world.other_orders) + 1


def test_the_customer_does_not_see_what_the_shop_keeps_to_itself() -> None:
    talk = Conversation(builtin_world("task_000"))
    talk.own(
        "process_return",
        resolution_type="DENY_REFUND",
        return_reason="changed_mind",
        items_to_return=[{"item_id": "I-000-1", "quantity": 1, "condition": "opened_used"}],
    )
    seen = [
        talk.outcome("customer_view_order_details", order_id="current").content,
        talk.outcome("customer_inspect_profile").content,
        talk.outcome("customer_confirm_returned_items", order_id="current").content,
    ]
    for internal in ("abuse_risk", "recommended_deduction", "serialised", "case_note", "DENY_REFUND"):
        assert not any(internal in content for content in seen)


def test_one_section_of_the_profile() -> None:
    talk = Conversation()
    page = talk.ok("customer_inspect_profile", section="membership")
    assert page.keys() == {"status", "membership"}
    assert page["membership"]["periods"] == [{"tier": "Circle", "from": "2025-01-01", "to": None}]


def test_availability_by_number_or_name() -> None:
    talk = Conversation()
    assert talk.ok("customer_check_item_availability", product_id="P-6-A", quantity=2)["in_stock"] is False
    assert talk.ok("customer_check_item_availability", product_name="better thing")["available"] == 3
    assert "P-9" in talk.error("customer_check_item_availability", product_id="P-9")


def test_returned_items_can_be_confirmed() -> None:
    talk = Conversation()
    talk.give_back(("I-2", 1, "defective"))
    page = talk.ok("customer_confirm_returned_items", order_id="current", item_ids=["i-1", "I-2"])
    assert [case["return_id"] for case in page["on_file"]] == ["RET-1-1"]
    assert page["not_on_file"] == ["I-1"]
    by_id = talk.ok("customer_confirm_returned_items", order_id="current", return_id="ret-1-1")
    assert by_id["refunds"][0]["amount"] == 19.0
    assert "RET-1-1" in talk.error("customer_confirm_returned_items", order_id="current", return_id="RET-9")
    assert "I-9" in talk.error("customer_confirm_returned_items", order_id="current", item_ids=["I-9"])


def test_withdrawing() -> None:
    talk = Conversation()
    assert Conversation().environment.withdrawal is None
    talk.ok("withdraw_from_conversation", reason="too slow", will_return="true")
    assert talk.environment.withdrawal == Withdrawal("too slow", "", will_return=True)
    assert talk.outcome("withdraw_from_conversation", reason="too slow", will_return=True).status == ALREADY
    assert "already left" in talk.error("withdraw_from_conversation", reason="again")
    assert talk.environment.withdrawal.reason == "too slow"
    assert not talk.environment.writes()
