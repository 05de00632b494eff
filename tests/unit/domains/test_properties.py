"""What holds for any sequence of calls."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from policysweep.domains.returns import reads
from policysweep.domains.returns.environment import ToolOutcome
from policysweep.domains.returns.money import split
from policysweep.domains.returns.state import DELIVERED, EXCHANGE, RETURN
from policysweep.v1 import world_pb2

from .support import TASKS, VERIFY, Conversation, builtin_world, mixed_world

OWN = {"order_id": "current", "customer_id": "current"}
CONDITIONS = ["unopened", "opened_unused", "opened_used", "defective", "damaged_in_shipping", "wrong_item"]
GRANTS = [
    "RETURN_REFUND_FULL_BANK",
    "RETURN_REFUND_PARTIAL_BANK",
    "RETURN_REFUND_GIFT_CARD",
    "REPLACEMENT_EXCHANGE",
]
REASONS = ["changed_mind", "defective", "arrived_late", "missing_parts", "wrong_item", "free text"]
Call = tuple[str, dict[str, Any]]

WORLDS = st.sampled_from([mixed_world(), builtin_world("task_003")]) | st.sampled_from(
    [*map(builtin_world, TASKS)]
)
quick = settings(
    max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)


def money() -> st.SearchStrategy[float]:
    return st.integers(1, 20_000).map(lambda cents: cents / 100)


@st.composite
def calls(draw: st.DrawFn, world: world_pb2.OrderWorld) -> Call:
    """A call of any tool with plausible arguments for this world."""
    items = st.sampled_from([item.item_id for item in world.order.items])
    products = st.sampled_from([product.product_id for product in world.products])
    units = st.integers(1, 3)
    truth = {entry.item_id: entry.condition for entry in world.inspection_truth}
    kind = draw(st.sampled_from(["return", "exchange", "refund", "discount", "update", "read", "customer"]))

    def condition(item: str) -> str:
        return draw(st.sampled_from([truth[item], truth[item], *CONDITIONS]))

    if kind == "return":
        chosen = draw(st.lists(items, min_size=1, max_size=3))
        lines = [{"item_id": i, "quantity": draw(units), "condition": condition(i)} for i in chosen]
        return "process_return", {
            **OWN,
            "resolution_type": draw(st.sampled_from([*GRANTS, "DENY_REFUND"])),
            "items_to_return": lines,
            "return_reason": draw(st.sampled_from(REASONS)),
            "refund_method": draw(st.sampled_from([None, "store_credit", "original_payment"])),
        }
    if kind == "exchange":
        item = draw(items)
        line = {
            "original_item_id": item,
            "original_quantity": draw(units),
            "condition": condition(item),
            "new_product_id": draw(products),
            "new_quantity": draw(units),
        }
        settled = draw(st.sampled_from(["refund_difference", "waive_difference", "charge_customer"]))
        return "process_exchange", {
            **OWN,
            "items_to_exchange": [line],
            "exchange_reason": draw(st.sampled_from(REASONS)),
            "price_difference": settled,
        }
    if kind == "refund":
        lines = [
            {"item_id": i, "amount": draw(st.none() | money())} for i in draw(st.lists(items, max_size=2))
        ]
        return "issue_refund", {
            **OWN,
            "refund_type": draw(st.sampled_from(["full", "partial", "shipping_only", "goodwill"])),
            "amount": draw(st.none() | money()),
            "refund_method": draw(st.sampled_from(["original_payment", "gift_card"])),
            "refund_reason": "agreed",
            "items": lines or None,
            "include_shipping": draw(st.booleans()),
        }
    if kind == "discount":
        return "apply_discount", {
            **OWN,
            "discount_type": draw(
                st.sampled_from(["percentage", "fixed_amount", "free_shipping", "goodwill"])
            ),
            "value": draw(money()),
            "apply_to": draw(st.sampled_from(["order", "item", "shipping"])),
            "item_ids": [draw(items)],
        }
    if kind == "update":
        what = draw(st.sampled_from(["quantity", "cancel_item", "cancel_order"]))
        more = {"item_id": draw(items), "new_quantity": draw(st.integers(0, 2))}
        return "update_order", {**OWN, "update_type": what, **more}
    return draw(_reads(world, kind))


def _reads(world: world_pb2.OrderWorld, kind: str) -> st.SearchStrategy[Call]:
    order = st.sampled_from(["current", *(past.order_id for past in world.other_orders), "ORD-999"])
    product = st.sampled_from([*(p.product_id for p in world.products), "P-999"])
    if kind == "read":
        return st.one_of(
            st.builds(lambda o: ("get_order_details", {"order_id": o, "include_tracking": True}), order),
            st.builds(lambda p: ("get_product_info", {"product_id": p}), product),
            st.builds(lambda p: ("check_inventory", {"product_id": p}), product),
            st.just(("get_purchase_history", {"customer_id": "current"})),
            st.just(("get_return_frequency_assessment", {"customer_id": "current"})),
            st.just(("get_policy_info", {"policy_type": "all"})),
        )
    return st.one_of(
        st.builds(lambda o: ("customer_view_order_details", {"order_id": o}), order),
        st.builds(lambda p: ("customer_check_item_availability", {"product_id": p}), product),
        st.just(("customer_confirm_returned_items", {"order_id": "current"})),
        st.just(("customer_inspect_profile", {"verify_for_agent": True})),
    )


def script(world: world_pb2.OrderWorld, data: st.DataObject) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Random calls of one conversation: customer messages so far, tool, arguments."""
    statements = 1
    for _ in range(data.draw(st.integers(1, 14))):
        statements += data.draw(st.integers(0, 1))
        yield statements, *data.draw(calls(world))


def play(talk: Conversation, data: st.DataObject) -> Iterator[ToolOutcome]:
    """The answers to a random conversation, as it goes on."""
    for statements, name, arguments in script(talk.world, data):
        talk.statements = statements
        yield talk.outcome(name, **arguments)


@quick
@given(WORLDS, st.data())
def test_never_more_is_paid_back_than_was_paid(world: world_pb2.OrderWorld, data: st.DataObject) -> None:
    talk = Conversation(world)
    state = talk.environment._desk.state
    for _ in play(talk, data):
        shown = reads.payment(state)
        assert shown["paid_back"] == pytest.approx(sum(refund["amount"] for refund in shown["refunds"]))
        assert shown["paid_back"] <= world.order.payment.amount
        for item in world.order.items:
            assert state.units(item) <= item.quantity
            assert state.booked(item.item_id) <= state.shares[item.item_id]
        assert state.shipping_payable >= 0
        assert all(part >= 0 for payment in state.payments for part in payment.by_item.values())


@quick
@given(WORLDS, st.data())
def test_items_are_paid_for_only_after_a_truthful_return(
    world: world_pb2.OrderWorld, data: st.DataObject
) -> None:
    """Whatever an agent tries, money for items of a delivered parcel follows a return that was verified."""
    truth = {entry.item_id: entry.condition for entry in world.inspection_truth}
    wear = CONDITIONS[:3]
    talk = Conversation(world)
    for _ in play(talk, data):
        pass
    state = talk.environment._desk.state
    for claim in state.claims(RETURN, EXCHANGE):
        if claim.condition in wear and state.carrier_status(claim.item) == DELIVERED:
            real = truth[claim.item.item_id]
            assert wear.index(claim.condition) >= (wear.index(real) if real in wear else 2)
    for payment in state.payments:
        if payment.kind in ("full", "partial", "return"):
            assert all(state.units(state.items[i.upper()], RETURN) for i in payment.by_item)


@pytest.mark.parametrize("task", ["mixed", *TASKS])
def test_shares_add_up_to_what_was_paid(task: str) -> None:
    world = mixed_world() if task == "mixed" else builtin_world(task)
    state = Conversation(world).environment._desk.state
    assert sum(state.shares.values()) + state.shipping_paid == round(world.order.payment.amount * 100)
    for item in world.order.items:
        parts = [state.claim(item, 1, None, before=taken).value for taken in range(item.quantity)]
        assert sum(parts) == state.shares[item.item_id]


@quick
@given(st.integers(0, 10_000), st.lists(st.integers(0, 5_000), max_size=6))
def test_a_split_is_exact_and_bounded(amount: int, weights: list[int]) -> None:
    parts = split(amount, weights)
    assert sum(parts) == (amount if sum(weights) else 0)
    if amount <= sum(weights):
        assert all(0 <= part <= weight for part, weight in zip(parts, weights, strict=True))


@quick
@given(WORLDS, st.data())
def test_nothing_hidden_is_ever_shown(world: world_pb2.OrderWorld, data: st.DataObject) -> None:
    planted = world_pb2.OrderWorld()
    planted.CopyFrom(world)
    for number, truth in enumerate(planted.inspection_truth):
        truth.notes = f"CANARY-notes-{number}"
        truth.accessories_missing[:] = [f"CANARY-part-{number}"]
    planted.gold_facts.reason_truth = "CANARY-reason"
    planted.gold_facts.what_customer_may_misstate = "CANARY-misstate"
    for outcome in play(Conversation(planted), data):
        assert "CANARY" not in outcome.content


@quick
@given(WORLDS, st.data())
def test_the_truth_decides_nothing_but_whether_a_request_passes(
    world: world_pb2.OrderWorld, data: st.DataObject
) -> None:
    """Worlds that differ in their truth alone answer alike, until one holds back what the other lets pass."""
    other = world_pb2.OrderWorld()
    other.CopyFrom(world)
    for truth in other.inspection_truth:
        truth.condition = data.draw(st.sampled_from(CONDITIONS))
    one, two = Conversation(world), Conversation(other)
    for statements, name, arguments in script(world, data):
        one.statements = two.statements = statements
        first, second = one.outcome(name, **arguments), two.outcome(name, **arguments)
        if first != second:
            assert VERIFY in (first.status, second.status)
            break


@quick
@given(WORLDS, st.data())
def test_a_retry_changes_nothing(world: world_pb2.OrderWorld, data: st.DataObject) -> None:
    talk = Conversation(world)
    for statements, name, arguments in script(world, data):
        talk.statements = statements
        call_id = f"id-{data.draw(st.integers(0, 3))}" if data.draw(st.booleans()) else None
        first = talk.outcome(name, call_id, **arguments)
        writes = talk.environment.writes()
        if call_id and "give every call an id" not in first.content:
            talk.statements += 1
            assert talk.outcome(name, call_id, **arguments) == first
        assert talk.environment.writes() == writes


@quick
@given(WORLDS, st.data())
def test_the_world_is_never_changed(world: world_pb2.OrderWorld, data: st.DataObject) -> None:
    before = world.SerializeToString(deterministic=True)
    for _ in play(Conversation(world), data):
        pass
    assert world.SerializeToString(deterministic=True) == before


@quick
@given(st.text(max_size=60), st.sampled_from(["process_return", "get_order_details", "nothing", ""]))
def test_any_text_has_a_readable_answer(text: str, tool: str) -> None:
    outcome = Conversation().raw(tool, text)
    assert json.loads(outcome.content)["status"] == "error"
    assert outcome.error_kind is not None
