"""What must be true inside one order world: account, stock, truth. The order itself is in `order.py`.

The rules run on worlds whose shape is right. They hold for every data set.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from policysweep.datasets.problems import FieldPath, Finding, under
from policysweep.datasets.rules import order

Json = Mapping[str, Any]

RISK_BANDS = ((0.30, "LOW", 0), (0.50, "MEDIUM", 5), (float("inf"), "HIGH", 10))
"""Upper bound of the return rate, risk level, recommended deduction in percent (DRIP-R, return frequency)."""


def risk(rate: float) -> tuple[str, int]:
    """Risk level and recommended deduction in percent for a return rate."""
    return next((level, deduction) for bound, level, deduction in RISK_BANDS if rate < bound)


def check_world(world: Json) -> Iterator[Finding]:
    """All rules that relate the fields of a world to each other."""
    today = dt.date.fromisoformat(world["today"])
    yield from under(("customer",), _membership(world["customer"], today))
    yield from under(("customer", "return_history"), _return_history(world["customer"]["return_history"]))
    yield from _restocking(world["products"], today)
    yield from order.check_order(world, today)
    yield from order.check_past_orders(world, today)
    yield from _truth(world)
    yield from _repeated_ids(world)


def ids(world: Json) -> Iterator[tuple[FieldPath, str]]:
    """Every id that the world defines, with its place. Products of earlier orders are not defined by it."""
    bought = world["order"]
    yield ("customer", "customer_id"), world["customer"]["customer_id"]
    yield ("order", "order_id"), bought["order_id"]
    for group, key in (("items", "item_id"), ("promotions", "promo_id"), ("shipments", "shipment_id")):
        for at, part in enumerate(bought[group]):
            yield ("order", group, at, key), part[key]
    for at, product in enumerate(world["products"]):
        yield ("products", at, "product_id"), product["product_id"]
        for below, variant in enumerate(product["variants"]):
            yield ("products", at, "variants", below, "variant_id"), variant["variant_id"]
    for at, past in enumerate(world["other_orders"]):
        yield ("other_orders", at, "order_id"), past["order_id"]
        for below, item in enumerate(past["items"]):
            yield ("other_orders", at, "items", below, "item_id"), item["item_id"]


def _repeated_ids(world: Json) -> Iterator[Finding]:
    seen: set[str] = set()
    for path, name in ids(world):
        if name in seen:
            yield Finding(path, f"the id {name!r} occurs twice in this world")
        seen.add(name)


def _membership(customer: Json, today: dt.date) -> Iterator[Finding]:
    active = "none"
    for at, period in enumerate(customer["membership"]):
        first = dt.date.fromisoformat(period["from"])
        last = dt.date.fromisoformat(period["to"]) if period["to"] else None
        if last and first > last:
            yield Finding(("membership", at, "to"), f"ends on {last}, before it begins on {first}")
        if first <= today and (last is None or last >= today):
            active = period["tier"]
    if active != customer["member_tier"]:
        told = f"is {customer['member_tier']!r}, but by the membership list it is {active!r} today"
        yield Finding(("member_tier",), told)


def _return_history(history: Json) -> Iterator[Finding]:
    orders, returns, rate = history["orders_12m"], history["returns_12m"], history["rate"]
    if returns > orders:
        yield Finding(("returns_12m",), f"is {returns}, more than the {orders} orders")
    elif abs(rate - returns / orders) > 0.0051:
        yield Finding(("rate",), f"is {rate}, but {returns}/{orders} is {returns / orders:.2f}")
    level, deduction = risk(rate)
    if history["abuse_risk_level"] != level:
        yield Finding(
            ("abuse_risk_level",), f"is {history['abuse_risk_level']}, must be {level} at rate {rate}"
        )
    if history["recommended_deduction_percentage"] != deduction:
        yield Finding(("recommended_deduction_percentage",), f"must be {deduction} at rate {rate}")


def _restocking(products: list[Json], today: dt.date) -> Iterator[Finding]:
    for at, product in enumerate(products):
        restock = product["stock"]["restock_date"]
        if restock and dt.date.fromisoformat(restock) < today:
            yield Finding(("products", at, "stock", "restock_date"), f"is {restock}, in the past")


def _truth(world: Json) -> Iterator[Finding]:
    inspected = Counter(truth["item_id"] for truth in world["inspection_truth"])
    if inspected != Counter(item["item_id"] for item in world["order"]["items"]):
        yield Finding(("inspection_truth",), "must hold every item of the order exactly once")
