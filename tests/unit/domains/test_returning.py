from __future__ import annotations

import pytest

from .support import TASKS, Conversation, builtin_world, return_of, truthful_lines


@pytest.mark.parametrize("task", TASKS)
def test_a_truthful_full_return_of_every_builtin_order_pays_the_items(task: str) -> None:
    world = builtin_world(task)
    talk = Conversation(world)
    content = talk.give_back(*truthful_lines(world))
    assert content["refund"]["amount"] == pytest.approx(
        world.order.payment.amount - world.order.shipping_charge
    )
    assert talk.implied() == ["RETURN_REFUND_FULL_BANK"]
    assert content["return"]["items"][0]["item_id"] == world.order.items[0].item_id


def test_shares_carry_their_part_of_the_promotion() -> None:
    talk = Conversation()
    content = talk.give_back(("I-1", 3, "opened_used"), ("I-2", 1, "defective"))
    # 30.03 and 20.00 out of 100.03, of which the coupon takes 5.00: 1.50 and 1.00 to the cent.
    assert [line["share_of_price"] for line in content["return"]["items"]] == [28.53, 19.0]
    assert content["refund"]["amount"] == 47.53


def test_units_of_one_line_add_up_to_its_share() -> None:
    talk = Conversation()
    amounts = [
        talk.give_back(("I-1", 1, "opened_used"), return_reason=f"unit {i}")["refund"]["amount"]
        for i in range(3)
    ]
    assert sum(round(amount * 100) for amount in amounts) == 2853
    assert "0 of 3" in talk.own_error("process_return", **return_of(("I-1", 1, "opened_used")))


def test_outcome_and_method_decide_where_the_money_goes() -> None:
    gift = Conversation()
    assert (
        gift.give_back(("I-2", 1, "defective"), kind="RETURN_REFUND_GIFT_CARD")["refund"]["method"]
        == "gift_card"
    )
    assert gift.implied() == ["RETURN_REFUND_GIFT_CARD"]
    credit = Conversation()
    credit.give_back(("I-2", 1, "defective"), refund_method="store_credit")
    assert credit.implied() == ["RETURN_REFUND_GIFT_CARD"]
    assert "Card 1 (active)" in Conversation().give_back(("I-2", 1, "defective"))["refund"]["destination"]


def test_a_partial_return_pays_nothing_until_the_amount_is_set() -> None:
    talk = Conversation()
    content = talk.give_back(("I-2", 1, "defective"), kind="RETURN_REFUND_PARTIAL_BANK")
    assert "refund" not in content
    assert content["refundable_at_most"] == 19.0
    assert talk.ok("get_order_details", order_id="current")["payment"]["paid_back"] == 0.0
    assert talk.implied() == ["RETURN_REFUND_PARTIAL_BANK"]


@pytest.mark.parametrize("kind", ["DENY_REFUND", "ESCALATE_HUMAN_AGENT", "USER_ABORT"])
def test_other_outcomes_only_leave_a_note(kind: str) -> None:
    talk = Conversation()
    talk.give_back(("I-1", 9, "unopened"), kind=kind)  # neither checked nor counted: nothing moves
    shown = talk.ok("get_order_details", order_id="current", detail_type="status")["order_status"]
    assert shown["case_notes"][0]["resolution_type"] == kind
    assert shown["returns"] == shown["refunds"] == []
    assert talk.implied() == [kind]


def test_impossible_returns_are_refused() -> None:
    talk = Conversation()
    refused = [
        (("I-9", 1, "unopened"), "I-9"),
        (("I-1", 4, "opened_used"), "3 of 3"),
        (("I-4", 1, "unopened"), "in_transit"),
        (("I-5", 1, "unopened"), "label_created"),
    ]
    for line, reason in refused:
        assert reason in talk.own_error("process_return", **return_of(line))
    twice = return_of(("I-1", 2, "opened_used"), ("I-1", 2, "defective"))
    assert "1 of 3" in talk.own_error("process_return", **twice)
    other = {"order_id": "ORD-1", "customer_id": "CUST-2", **return_of(("I-1", 1, "opened_used"))}
    assert "CUST-2" in talk.error("process_return", **other)
    archived = {"order_id": "ORD-0", "customer_id": "CUST-1", **return_of(("I-1", 1, "opened_used"))}
    assert "archived" in talk.error("process_return", **archived)
    assert not talk.environment.writes()


def test_a_lost_parcel_needs_no_goods_back() -> None:
    content = Conversation().give_back(("I-3", 2, "unopened"), return_reason="arrived_late")
    assert content["refund"]["amount"] == 28.5
    assert "label_id" not in content["return"]


def test_large_items_are_picked_up_unless_asked_otherwise() -> None:
    world = builtin_world("task_000")
    assert Conversation(world).give_back(*truthful_lines(world))["return"]["return_method"] == "pickup"
    mailed = Conversation(world).give_back(*truthful_lines(world), return_method="mail")
    assert mailed["return"]["return_method"] == "mail"


def test_free_text_reasons_count_as_other_and_keep_their_words() -> None:
    talk = Conversation()
    shown = talk.give_back(("I-1", 1, "opened_used"), return_reason="The cat hates it")["return"]
    assert (shown["reason"], shown["reason_class"]) == ("The cat hates it", "other")
    shown = talk.give_back(("I-2", 1, "defective"), return_reason="Faulty")["return"]
    assert shown["reason_class"] == "defective"


def exchange(old: tuple[str, int, str], new: tuple[str, int], **more: object) -> dict[str, object]:
    line = {
        "original_item_id": old[0],
        "original_quantity": old[1],
        "condition": old[2],
        "new_product_id": new[0],
        "new_quantity": new[1],
    }
    return {"items_to_exchange": [line], "exchange_reason": "changed_mind", **more}


def test_an_exchange_moves_goods_and_stock() -> None:
    talk = Conversation()
    content = talk.own(
        "process_exchange",
        **exchange(("I-1", 1, "opened_used"), ("P-6-B", 1), price_difference="charge_customer"),
    )
    assert content["exchange"]["price_difference"] == 15.49  # $25.00 for what had brought $9.51
    assert talk.ok("check_inventory", product_id="P-6")["available"] == 2
    assert talk.ok("check_inventory", product_id="P-6-B")["available"] == 2
    assert talk.implied() == ["REPLACEMENT_EXCHANGE"]
    assert "2 of 3" in talk.own_error("process_return", **return_of(("I-1", 3, "opened_used")))


def test_a_cheaper_product_can_pay_the_difference_back() -> None:
    talk = Conversation()
    request = exchange(("I-2", 1, "defective"), ("P-1", 1))
    assert "$8.99 less" in talk.own_error("process_exchange", **request)
    assert "refund_difference" in talk.own_error(
        "process_exchange", **request, price_difference="charge_customer"
    )
    content = talk.own("process_exchange", **request, price_difference="refund_difference")
    assert content["refund"]["amount"] == 8.99
    assert talk.implied() == ["REPLACEMENT_EXCHANGE"]


def test_impossible_exchanges_are_refused() -> None:
    talk = Conversation()
    waived = {"price_difference": "waive_difference"}
    assert "2026-02-15" in talk.own_error("process_exchange", **exchange(("I-2", 1, "defective"), ("P-2", 1)))
    assert "P-77" in talk.own_error("process_exchange", **exchange(("I-2", 1, "defective"), ("P-77", 1)))
    assert "in_transit" in talk.own_error("process_exchange", **exchange(("I-4", 1, "unopened"), ("P-1", 1)))
    assert "I-9" in talk.own_error("process_exchange", **exchange(("I-9", 1, "unopened"), ("P-1", 1)))
    both_variants = exchange(("I-1", 1, "opened_used"), ("P-6-A", 1), **waived)
    lines = both_variants["items_to_exchange"]
    assert isinstance(lines, list)
    lines.append({**lines[0], "new_product_id": "P-6-B", "new_quantity": 3})
    assert "3 unit(s) in stock, not 4" in talk.own_error("process_exchange", **both_variants)
    assert not talk.environment.writes()


def test_an_exchange_takes_over_the_return_leg_of_the_same_item() -> None:
    talk = Conversation()
    talk.give_back(("I-2", 1, "defective"), kind="REPLACEMENT_EXCHANGE")
    assert "0 of 1" in talk.own_error("process_return", **return_of(("I-2", 1, "defective")))
    request = exchange(("I-2", 1, "defective"), ("P-6", 1), price_difference="waive_difference")
    talk.own("process_exchange", **request)
    shown = talk.ok("get_order_details", order_id="current")
    assert [case["exchange_id"] for case in shown["order_status"]["exchanges"]] == ["EXC-1-1"]
    assert shown["items"][1]["units_exchange"] == 1
    assert talk.implied() == ["REPLACEMENT_EXCHANGE", "REPLACEMENT_EXCHANGE"]


def test_what_was_refunded_cannot_be_exchanged_and_the_reverse() -> None:
    talk = Conversation()
    talk.give_back(("I-2", 1, "defective"))
    request = exchange(("I-2", 1, "defective"), ("P-6", 1), price_difference="waive_difference")
    assert "RET-1-1" in talk.own_error("process_exchange", **request)
    other = Conversation()
    other.own("process_exchange", **request)
    assert "EXC-1-1" in other.own_error("process_return", **return_of(("I-2", 1, "defective")))
    refund = {"refund_type": "full", "refund_method": "original_payment", "refund_reason": "x"}
    assert "no return" in other.own_error("issue_refund", **refund, items=[{"item_id": "I-2"}])
