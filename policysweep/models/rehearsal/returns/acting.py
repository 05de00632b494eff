"""The calls of a returns agent, with arguments that fit the tools as they are offered.

A tool's own schema decides: arguments that it does not list are left out, and values of an enum that it does
not know give way to one that it does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from policysweep.models.rehearsal.dispositions import EXCHANGE, GIFT_CARD, PARTIAL
from policysweep.models.rehearsal.draft import ToolUse
from policysweep.models.rehearsal.request import Json
from policysweep.models.rehearsal.returns.judgement import Decision
from policysweep.models.rehearsal.returns.order import Order

_FAULTS = ("wrong_item", "damaged_in_shipping", "defective")


def use(functions: Mapping[str, Json], name: str, wanted: Mapping[str, Any]) -> ToolUse:
    """A call of an offered tool with those of the wanted arguments that its schema knows."""
    properties = properties_of(functions, name)
    if not properties:
        return ToolUse.of(name, wanted)
    return ToolUse.of(
        name, {key: _fitting(value, properties[key]) for key, value in wanted.items() if key in properties}
    )


def properties_of(functions: Mapping[str, Json], name: str) -> Json:
    """The schemas of a tool's arguments; {} when it states none."""
    properties = (functions.get(name, {}).get("parameters") or {}).get("properties")
    return properties if isinstance(properties, dict) else {}


def _fitting(value: Any, schema: Any) -> Any:
    options = schema.get("enum") if isinstance(schema, dict) else None
    return options[0] if options and value not in options else value


def read_arguments(name: str, order: Order) -> Json:
    """What a look-up is asked."""
    first = max(order.lines, key=lambda line: line.share, default=None)
    subject = {"customer_id": order.customer_id, "order_id": order.order_id}
    if name == "get_policy_info":
        category = first.category if first else ""
        return {"policy_type": "returns", "product_category": category}
    if name == "get_product_info" and first is not None:
        named = {"product_id": first.product_id} if first.product_id else {"product_name": first.name}
        return {**named, "include_specs": True}
    if name == "get_return_frequency_assessment":
        return {"customer_id": order.customer_id, "months": 12}
    return subject


def reason_of(decision: Decision, order: Order, checked: bool) -> str:
    """The return reason; after a failed check nothing is claimed that the shop would be at fault for."""
    conditions = [decision.conditions.get(line.item_id, "") for line in decision.lines]
    for fault in _FAULTS:
        if fault in conditions:
            return fault
    if any(line.late_by > 0 for line in decision.lines) and not checked:
        return "arrived_late"
    return "gift" if order.is_gift and not checked else "changed_mind"


def process_return(decision: Decision, order: Order, checked: bool) -> Json:
    """Arguments of process_return."""
    lines = [
        {
            "item_id": line.item_id,
            "quantity": line.quantity,
            "condition": decision.conditions.get(line.item_id, "opened_unused"),
        }
        for line in decision.lines
    ]
    large = any("large_item" in line.tags for line in decision.lines)
    return {
        "order_id": order.order_id,
        "customer_id": order.customer_id,
        "resolution_type": decision.outcome,
        "items_to_return": lines,
        "return_reason": reason_of(decision, order, checked),
        "refund_method": "gift_card" if decision.outcome == GIFT_CARD else "original_payment",
        "return_method": "pickup" if large else "drop_off",
    }


def issue_refund(decision: Decision, order: Order, at_most: float | None) -> Json:
    """Arguments of issue_refund for the partial refund that was agreed; never more than the return allows."""
    amount = decision.amount if at_most is None else min(decision.amount, at_most)
    return {
        "order_id": order.order_id,
        "customer_id": order.customer_id,
        "refund_type": "partial",
        "amount": round(amount, 2),
        "currency": "USD",
        "refund_method": "original_payment",
        "refund_reason": f"Return with a deduction of {decision.deduction}%",
    }


def process_exchange(
    decision: Decision, order: Order, product_id: str, difference: str, checked: bool
) -> Json:
    """Arguments of process_exchange of the decision's one line for `product_id`."""
    line = decision.lines[0]
    exchange = {
        "original_item_id": line.item_id,
        "original_quantity": line.quantity,
        "new_product_id": product_id,
        "new_quantity": line.quantity,
        "condition": decision.conditions.get(line.item_id, "opened_unused"),
    }
    return {
        "order_id": order.order_id,
        "customer_id": order.customer_id,
        "items_to_exchange": [exchange],
        "exchange_reason": reason_of(decision, order, checked),
        "price_difference": difference,
    }


def stocked(inventory: Json, quantity: int) -> tuple[str, str] | None:
    """Product number and name of what can be sent out: the product itself, else an alternative."""
    if inventory.get("in_stock") or (inventory.get("available") or 0) >= quantity:
        return str(inventory.get("product_id", "")), str(inventory.get("name", ""))
    for other in inventory.get("alternatives") or ():
        if (
            isinstance(other, dict)
            and other.get("product_id")
            and (other.get("available") or quantity) >= quantity
        ):
            return str(other["product_id"]), str(other.get("name", ""))
    return None


WRITES: Mapping[str, Sequence[str]] = {
    EXCHANGE: ("process_exchange",),
    PARTIAL: ("process_return", "issue_refund"),
}
"""The write tools of an outcome, in order; process_return alone for other refunds."""
