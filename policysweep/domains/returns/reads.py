"""The agent's read tools on orders and the account: what the shop's systems show."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from policysweep.domains.returns import arguments as args
from policysweep.domains.returns import money
from policysweep.domains.returns.results import Json
from policysweep.domains.returns.state import (
    CANCELLATION,
    DELIVERED,
    EXCHANGE,
    NOT_SENT,
    RETURN,
    Case,
    OrderState,
    Payment,
)
from policysweep.v1 import world_pb2


def get_order_details(state: OrderState, arguments: args.GetOrderDetails) -> Json:
    """One part of an order of the account, or all of it."""
    state.own_account(arguments.customer_id)
    order = state.find_order(arguments.order_id)
    if isinstance(order, world_pb2.PastOrder):
        return {"order": past_order(order), "archived": True}
    content: Json = {
        "order_id": order.order_id,
        "customer_id": state.customer.customer_id,
        "placed_at": order.placed_at,
        "today": state.today,
    }
    wanted = arguments.detail_type
    for part, show in PARTS.items():
        if wanted in (part, "full"):
            content["order_status" if part == "status" else part] = show(state)
    if wanted == "full":
        content |= {"channel": order.channel, "gift": _gift(order), "ship_to": ship_to(state)}
    if arguments.include_tracking:
        content["tracking"] = tracking(state)
    return content


def items(state: OrderState) -> list[Json]:
    """The lines of the open order."""
    return [_item(state, item) for item in state.order.items]


def _item(state: OrderState, item: world_pb2.OrderItem) -> Json:
    shown: Json = {
        "item_id": item.item_id,
        "product_id": item.product_id,
        "name": item.name,
        "category": item.category,
        "quantity": item.quantity,
        "unit_price": item.unit_price,
        "currency": item.currency,
        "seller": {
            "name": item.seller.name,
            "type": item.seller.type,
            "fulfilled_by": item.seller.fulfilled_by,
        },
        "tags": list(item.tags),
        "return_window_days_on_listing": (
            item.window_days_on_listing if item.HasField("window_days_on_listing") else None
        ),
    }
    if state.cases:
        claimed = {f"units_{kind}": state.units(item, kind) for kind in (RETURN, EXCHANGE, CANCELLATION)}
        shown |= {name: units for name, units in claimed.items() if units}
    return shown


def delivery_dates(state: OrderState) -> list[Json]:
    """The parcels of the open order."""
    return [
        {
            "shipment_id": parcel.shipment_id,
            "carrier_status": parcel.carrier_status,
            "items": list(parcel.items),
            "shipped_at": parcel.shipped_at or None,
            "promised_by": parcel.promised_by or None,
            "revised_promise": parcel.revised_promise or None,
            "delivered_at": parcel.delivered_at or None,
        }
        for parcel in state.order.shipments
    ]


def tracking(state: OrderState) -> list[Json]:
    """The dated events of each parcel, oldest first."""
    shown = []
    for parcel in state.order.shipments:
        events = [{"date": state.order.placed_at, "event": "order placed"}]
        if parcel.shipped_at:
            events.append({"date": parcel.shipped_at, "event": "handed to the carrier"})
        if parcel.delivered_at:
            events.append({"date": parcel.delivered_at, "event": "delivered"})
        shown.append({"shipment_id": parcel.shipment_id, "latest": parcel.carrier_status, "events": events})
    return shown


def promotions(state: OrderState) -> list[Json]:
    """The promotions of the open order, then discounts given since."""
    applied = [
        {
            "promo_id": promotion.promo_id,
            "description": promotion.description,
            "amount": promotion.amount,
            "scope": promotion.scope,
            "item_ids": list(promotion.item_ids),
            "conditions": promotion.conditions,
        }
        for promotion in state.order.promotions
    ]
    return applied + [payment_json(payment) for payment in state.payments if payment.kind == "discount"]


def payment(state: OrderState) -> Json:
    """What was paid and what has been paid back."""
    paid = state.order.payment
    return {
        "method": paid.method,
        "methods_on_file": payment_methods(state),
        "amount": paid.amount,
        "gift_card_part": paid.gift_card_part,
        "shipping_charge": state.order.shipping_charge,
        "paid_back": money.dollars(state.paid_back),
        "refunds": [payment_json(payment) for payment in state.payments],
    }


def payment_methods(state: OrderState) -> list[Json]:
    """The payment methods of the account."""
    return [
        {"type": method.type, "label": method.label, "status": method.status}
        for method in state.customer.payment_methods
    ]


def status(state: OrderState) -> Json:
    """Where the open order stands, with all that was done to it."""
    shown: Json = {"state": order_status(state)}
    for kind, name in ((RETURN, "returns"), (EXCHANGE, "exchanges"), (CANCELLATION, "cancellations")):
        shown[name] = [case_json(case) for case in state.cases if case.kind == kind]
    shown["refunds"] = [payment_json(payment) for payment in state.payments]
    if state.delivery_instructions:
        shown["delivery_instructions"] = state.delivery_instructions
    shown["case_notes"] = list(state.case_notes)
    return shown


def order_status(state: OrderState) -> str:
    """One word for where the order stands."""
    if state.cases and all(state.units(i, CANCELLATION) == i.quantity for i in state.order.items):
        return "canceled"
    carried = {parcel.carrier_status for parcel in state.order.shipments}
    if carried == {DELIVERED}:
        return "delivered"
    if DELIVERED in carried:
        return "partly_delivered"
    return "processing" if carried == {NOT_SENT} else "shipped"


def case_json(case: Case) -> Json:
    """A return, exchange or cancellation as reads show it."""
    lines = [
        {
            "item_id": claim.item.item_id,
            "quantity": claim.units,
            "share_of_price": money.dollars(claim.value),
            **({"condition": claim.condition} if claim.condition else {}),
        }
        for claim in case.claims
    ]
    return {f"{case.kind}_id": case.case_id, "items": lines, **case.facts}


def payment_json(payment: Payment) -> Json:
    """A refund or discount as reads show it."""
    return {
        "refund_id": payment.payment_id,
        "type": payment.kind,
        "amount": money.dollars(payment.amount),
        "method": payment.method,
        **payment.facts,
    }


def ship_to(state: OrderState) -> Json:
    """The delivery address of the open order."""
    address = state.new_address
    if address is not None:
        return {"address_label": address.label, "cross_border": address.cross_border}
    sent = state.order.ship_to
    return {"address_label": sent.address_label, "cross_border": sent.cross_border}


def _gift(order: world_pb2.Order) -> Json:
    return {"marked": order.gift.marked, "sent_to_other": order.gift.sent_to_other}


def past_order(order: world_pb2.PastOrder, *, returns: bool = True) -> Json:
    """An earlier order, which is archived."""
    shown: Json = {
        "order_id": order.order_id,
        "placed_at": order.placed_at,
        "status": order.status,
        "amount": order.amount,
        "items": [
            {
                "item_id": item.item_id,
                "product_id": item.product_id,
                "name": item.name,
                "category": item.category,
                "quantity": item.quantity,
                "unit_price": item.unit_price,
            }
            for item in order.items
        ],
    }
    if returns:
        shown["returns"] = [
            {
                "item_id": past.item_id,
                "returned_at": past.returned_at,
                "reason": past.reason,
                "outcome": past.outcome,
            }
            for past in order.returns
        ]
    return shown


def get_purchase_history(state: OrderState, arguments: args.GetPurchaseHistory) -> Json:
    """Orders of the account, newest first, as far as the filters let them through."""
    state.own_account(arguments.customer_id)
    start = arguments.start_date.isoformat() if arguments.start_date else ""
    end = arguments.end_date.isoformat() if arguments.end_date else "9999"
    found = [
        entry
        for entry in history(state, returns=arguments.include_returns)
        if start <= entry["placed_at"] <= end and _mentions(entry, arguments.product_filter)
    ]
    return {
        "customer_id": state.customer.customer_id,
        "orders_found": len(found),
        "orders": found[: arguments.limit],
    }


def history(state: OrderState, *, returns: bool) -> list[Json]:
    """All orders of the account that are on file, newest first."""
    current: Json = {
        "order_id": state.order.order_id,
        "placed_at": state.order.placed_at,
        "status": order_status(state),
        "amount": state.order.payment.amount,
        "items": items(state),
    }
    if returns:
        current["returns"] = [case_json(case) for case in state.cases if case.kind == RETURN]
    past = [past_order(order, returns=returns) for order in state.other_orders]
    return sorted([current, *past], key=lambda entry: str(entry["placed_at"]), reverse=True)


def _mentions(entry: Mapping[str, list[Mapping[str, str]]], wanted: str | None) -> bool:
    if wanted is None:
        return True
    fields = (item[key] for item in entry["items"] for key in ("name", "category", "product_id"))
    return any(wanted.casefold() in text.casefold() for text in fields)


def get_return_frequency_assessment(state: OrderState, arguments: args.GetReturnFrequencyAssessment) -> Json:
    """How often the account returns things: the shop's own figures, which cover 12 months."""
    state.own_account(arguments.customer_id)
    figures = state.customer.return_history
    return {
        "customer_id": state.customer.customer_id,
        "months_requested": arguments.months,
        "months_covered": 12,
        "order_count": figures.orders_12m,
        "return_count": figures.returns_12m,
        "return_rate": figures.rate,
        "abuse_risk_level": figures.abuse_risk_level,
        "recommended_deduction_percentage": figures.recommended_deduction_percentage,
    }


PARTS: Mapping[str, Callable[[OrderState], object]] = {
    "status": status,
    "items": items,
    "delivery_dates": delivery_dates,
    "promotions": promotions,
    "payment": payment,
}
