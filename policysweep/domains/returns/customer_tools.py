"""The five customer tools: the customer's own account page, and the way out of the conversation.

They show what a shop shows its customers. Shop-internal facts stay out: risk figures, item tags and case
notes. The agent sees neither calls nor answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from policysweep.domains.returns import products, reads
from policysweep.domains.returns.arguments import (
    Identifier,
    OnOrder,
    OptionalIdentifier,
    OptionalText,
    Text,
    Units,
)
from policysweep.domains.returns.results import Json, Refused
from policysweep.domains.returns.schema import Arguments
from policysweep.domains.returns.state import EXCHANGE, RETURN, OrderState
from policysweep.v1 import world_pb2


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """The customer has left the conversation."""

    reason: str
    details: str
    will_return: bool


class WithdrawFromConversation(Arguments):
    """withdraw_from_conversation."""

    reason: Text = Field(description="Why you give up, in a few words.")
    details: OptionalText = Field(default=None, description="More, if you like.")
    will_return: bool = Field(default=False, description="Whether you mean to come back later.")


class CustomerViewOrderDetails(OnOrder):
    """customer_view_order_details."""

    view_type: Literal["summary", "items", "delivery", "payment", "returns", "full"] = Field(
        default="full", description="The part of the order page to open."
    )


class CustomerCheckItemAvailability(Arguments):
    """customer_check_item_availability."""

    product_id: OptionalIdentifier = Field(default=None, description="Product or variant number, if known.")
    product_name: OptionalText = Field(default=None, description="Name or part of it, if the number is not.")
    quantity: Units = Field(default=1, description="Units wanted.")


class CustomerConfirmReturnedItems(OnOrder):
    """customer_confirm_returned_items."""

    item_ids: list[Identifier] | None = Field(
        default=None, max_length=50, description="Lines to look at. Default: all."
    )
    return_id: OptionalIdentifier = Field(default=None, description="Number of one return or exchange.")


class CustomerInspectProfile(Arguments):
    """customer_inspect_profile."""

    section: Literal["profile", "addresses", "payment_methods", "membership", "orders", "all"] = Field(
        default="all", description="The part of your profile to open."
    )
    verify_for_agent: bool = Field(
        default=False, description="Also show what the agent needs to find your account."
    )


def view_order_details(state: OrderState, arguments: CustomerViewOrderDetails) -> Json:
    """The order page."""
    order = state.find_order(arguments.order_id)
    if isinstance(order, world_pb2.PastOrder):
        return {"order": reads.past_order(order)}
    wanted = arguments.view_type
    content: Json = {
        "order_id": order.order_id,
        "placed_at": order.placed_at,
        "today": state.today,
        "order_status": reads.order_status(state),
        "total": order.payment.amount,
    }
    if wanted in ("items", "full"):
        content["items"] = [_shown(item) for item in reads.items(state)]
    if wanted in ("delivery", "full"):
        content |= {"ship_to": reads.ship_to(state), "deliveries": reads.delivery_dates(state)}
    if wanted in ("payment", "full"):
        content |= {"payment": reads.payment(state), "promotions": reads.promotions(state)}
    if wanted in ("returns", "full"):
        content |= _returned(state)
    return content


def _shown(item: Json) -> Json:
    return {name: value for name, value in item.items() if name != "tags"}


def _returned(state: OrderState) -> Json:
    return {
        "returns": [reads.case_json(case) for case in state.cases if case.kind == RETURN],
        "exchanges": [reads.case_json(case) for case in state.cases if case.kind == EXCHANGE],
        "refunds": [reads.payment_json(payment) for payment in state.payments],
    }


def check_item_availability(state: OrderState, arguments: CustomerCheckItemAvailability) -> Json:
    """The stock line of a product page."""
    product = products.find_product(state, arguments.product_id, arguments.product_name)
    _, available = state.stock(arguments.product_id or product.product_id.upper())
    return {
        "product_id": arguments.product_id or product.product_id,
        "name": product.name,
        "price": product.price,
        "in_stock": available >= arguments.quantity,
        "available": available,
        "restock_date": product.stock.restock_date or None,
        "variants": products.variants(state, product),
    }


def confirm_returned_items(state: OrderState, arguments: CustomerConfirmReturnedItems) -> Json:
    """What the shop has on file about things that go back."""
    state.own(arguments.order_id, None)
    wanted = {state.item(item_id).item_id for item_id in arguments.item_ids or state.items}
    cases = [
        case
        for case in state.cases
        if arguments.return_id in (None, case.case_id) and any(c.item.item_id in wanted for c in case.claims)
    ]
    if arguments.return_id and not cases:
        known = [case.case_id for case in state.cases]
        raise Refused(f"Order {state.order.order_id} has no return {arguments.return_id}.", on_file=known)
    covered = {claim.item.item_id for case in cases for claim in case.claims}
    return {
        "order_id": state.order.order_id,
        "on_file": [reads.case_json(case) for case in cases],
        "not_on_file": sorted(wanted - covered),
        "refunds": [reads.payment_json(payment) for payment in state.payments],
    }


def inspect_profile(state: OrderState, name: str, arguments: CustomerInspectProfile) -> Json:
    """The profile page of the customer called `name`."""
    customer = state.customer
    sections: Json = {
        "profile": {
            "name": name,
            "customer_id": customer.customer_id,
            "email_domain": customer.email_domain,
            "customer_since": customer.since,
        },
        "addresses": [{"label": a.label, "kind": a.kind} for a in customer.addresses],
        "payment_methods": reads.payment_methods(state),
        "membership": _membership(customer),
        "orders": [
            {
                "order_id": entry["order_id"],
                "placed_at": entry["placed_at"],
                "status": entry["status"],
                "amount": entry["amount"],
                "items": [item["name"] for item in entry["items"]],
            }
            for entry in reads.history(state, returns=False)
        ],
    }
    content: Json = {
        section: shown for section, shown in sections.items() if arguments.section in (section, "all")
    }
    if arguments.verify_for_agent:
        account = {"name": name, "customer_id": customer.customer_id, "order_id": state.order.order_id}
        content["tell_the_agent"] = account
    return content


def _membership(customer: world_pb2.Customer) -> Json:
    periods = [
        {"tier": period.tier, "from": period.from_date, "to": period.to_date or None}
        for period in customer.membership
    ]
    return {"tier_today": customer.member_tier, "periods": periods}
