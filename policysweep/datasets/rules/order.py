"""What must be true of the orders of a world: dates in sequence, sums that add up, parts that exist."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from policysweep.datasets.problems import Finding, under

Json = Mapping[str, Any]

CENT = 0.0101
"""Tolerance of sums: one cent, and room for binary fractions."""


def check_order(world: Json, today: dt.date) -> Iterator[Finding]:
    """The rules for the order that the conversation is about."""
    yield from _placing(world, today)
    yield from under(("order",), _address(world["order"], world["customer"]["addresses"]))
    yield from under(("order",), _items(world["order"], world["products"]))
    yield from under(("order",), _promotions(world["order"]))
    yield from under(("order", "payment"), _payment(world["order"], world["customer"]["payment_methods"]))
    yield from under(("order",), _shipments(world["order"], today))


def _day(text: str | None) -> dt.date | None:
    return dt.date.fromisoformat(text) if text else None


def _placing(world: Json, today: dt.date) -> Iterator[Finding]:
    placed = dt.date.fromisoformat(world["order"]["placed_at"])
    since = dt.date.fromisoformat(world["customer"]["since"])
    if placed > today:
        yield Finding(("order", "placed_at"), f"is {placed}, after today ({today})")
    if since > placed:
        yield Finding(("customer", "since"), f"is {since}, after the order was placed on {placed}")


def _address(order: Json, addresses: list[Json]) -> Iterator[Finding]:
    label = order["ship_to"]["address_label"]
    address = next((each for each in addresses if each["label"] == label), None)
    if address is None:
        yield Finding(("ship_to", "address_label"), f"{label!r} is not among the customer's addresses")
        return
    if address["cross_border"] != order["ship_to"]["cross_border"]:
        yield Finding(("ship_to", "cross_border"), f"differs from that of the address {label!r}")
    if (address["kind"] == "other_person") != order["gift"]["sent_to_other"]:
        yield Finding(
            ("gift", "sent_to_other"), f"does not agree with the kind of the address, {address['kind']!r}"
        )


def _items(order: Json, products: list[Json]) -> Iterator[Finding]:
    catalogue = {product["product_id"]: product for product in products}
    known = {item["item_id"] for item in order["items"]}
    for at, item in enumerate(order["items"]):
        product = catalogue.get(item["product_id"])
        if product is None:
            yield Finding(("items", at, "product_id"), f"{item['product_id']!r} is not in products")
        else:
            for key in ("name", "category"):
                if item[key] != product[key]:
                    yield Finding(("items", at, key), f"is {item[key]!r}, the product's is {product[key]!r}")
        for below, tag in enumerate(item["tags"]):
            if tag.startswith("accessory_of:") and tag.removeprefix("accessory_of:") not in known:
                yield Finding(("items", at, "tags", below), f"{tag!r} names no item of the order")


def _promotions(order: Json) -> Iterator[Finding]:
    known = {item["item_id"] for item in order["items"]}
    for at, promotion in enumerate(order["promotions"]):
        for below, item_id in enumerate(promotion["item_ids"]):
            if item_id not in known:
                yield Finding(
                    ("promotions", at, "item_ids", below), f"{item_id!r} is not an item of the order"
                )


def _payment(order: Json, methods: list[Json]) -> Iterator[Finding]:
    payment, paid = order["payment"], order["payment"]["amount"]
    items = sum(item["quantity"] * item["unit_price"] for item in order["items"])
    promotions = sum(promotion["amount"] for promotion in order["promotions"])
    shipping = order["shipping_charge"]
    if abs(items + promotions + shipping - paid) > CENT:
        parts = f"items {items:.2f} + promotions {promotions:.2f} + shipping {shipping:.2f}"
        yield Finding(("amount",), f"is {paid:.2f}, but {parts} = {items + promotions + shipping:.2f}")
    if payment["gift_card_part"] > paid:
        yield Finding(("gift_card_part",), f"is {payment['gift_card_part']}, more than the amount {paid}")
    if payment["method"] == "gift_card" and payment["gift_card_part"] != paid:
        yield Finding(("gift_card_part",), "must equal the amount, as the order was paid by gift card")
    if payment["method"] not in [method["type"] for method in methods]:
        yield Finding(("method",), f"{payment['method']!r} is not among the customer's payment_methods")


def _shipments(order: Json, today: dt.date) -> Iterator[Finding]:
    placed = dt.date.fromisoformat(order["placed_at"])
    for at, shipment in enumerate(order["shipments"]):
        yield from under(("shipments", at), _shipment(shipment, placed, today))
    sent = Counter(item_id for shipment in order["shipments"] for item_id in shipment["items"])
    if sent != Counter(item["item_id"] for item in order["items"]):
        yield Finding(("shipments",), "every item must be in exactly one shipment")


def _shipment(shipment: Json, placed: dt.date, today: dt.date) -> Iterator[Finding]:
    shipped, delivered = _day(shipment["shipped_at"]), _day(shipment["delivered_at"])
    for key in ("promised_by", "revised_promise", "shipped_at"):
        day = _day(shipment[key])
        if day and day < placed:
            yield Finding((key,), f"is {day}, before the order was placed on {placed}")
    if delivered and (shipped is None or delivered < shipped):
        yield Finding(("delivered_at",), f"is {delivered}, before it was shipped ({shipped or 'never'})")
    for key, when in (("shipped_at", shipped), ("delivered_at", delivered)):
        if when and when > today:
            yield Finding((key,), f"is {when}, after today ({today})")
    if (shipment["carrier_status"] == "delivered") != (delivered is not None):
        yield Finding(
            ("delivered_at",),
            f"must be set exactly when the status is delivered, it is {shipment['carrier_status']}",
        )


def check_past_orders(world: Json, today: dt.date) -> Iterator[Finding]:
    """The rules for earlier orders, and for the counts that must cover them."""
    since = dt.date.fromisoformat(world["customer"]["since"])
    for at, past in enumerate(world["other_orders"]):
        yield from under(("other_orders", at), _past_order(past, since, today))
    recent = [
        past
        for past in world["other_orders"]
        if (today - dt.date.fromisoformat(past["placed_at"])).days <= 365
    ]
    history = world["customer"]["return_history"]
    shown = {"orders_12m": 1 + len(recent), "returns_12m": sum(bool(past["returns"]) for past in recent)}
    for key, count in shown.items():
        if count > history[key]:
            told = f"is {history[key]}, but this order and other_orders show {count} within 12 months"
            yield Finding(("customer", "return_history", key), told)


def _past_order(past: Json, since: dt.date, today: dt.date) -> Iterator[Finding]:
    placed = dt.date.fromisoformat(past["placed_at"])
    if not since <= placed <= today:
        yield Finding(
            ("placed_at",), f"is {placed}, must lie between customer.since ({since}) and today ({today})"
        )
    total = sum(item["quantity"] * item["unit_price"] for item in past["items"])
    if abs(total - past["amount"]) > CENT:
        yield Finding(("amount",), f"is {past['amount']:.2f}, but the items sum to {total:.2f}")
    if bool(past["returns"]) != (past["status"] in ("returned", "partially_returned")):
        yield Finding(("status",), f"is {past['status']!r}, which does not agree with the returns listed")
    known = {item["item_id"] for item in past["items"]}
    for at, back in enumerate(past["returns"]):
        if back["item_id"] not in known:
            yield Finding(("returns", at, "item_id"), f"{back['item_id']!r} is not an item of that order")
        if not placed <= dt.date.fromisoformat(back["returned_at"]) <= today:
            yield Finding(
                ("returns", at, "returned_at"),
                f"is {back['returned_at']}, must lie between {placed} and today",
            )
