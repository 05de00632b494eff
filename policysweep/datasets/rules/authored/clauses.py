"""Clauses and the world: a clause bites only where the world has the facts that it speaks about, and some
facts need a clause that speaks about them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from policysweep.datasets.problems import FieldPath, Finding

Json = Mapping[str, Any]

NEEDS = {
    "C01": "listing_window",
    "C08": "free_gift",
    "C19": "software",
    "C20": "software",
    "C21": "software",
    "C22": "large_item",
    "C23": "large_item",
    "C24": "bundle",
    "C25": "bundle",
    "C26": "promo",
    "C27": "promo",
    "C28": "promo",
    "C29": "gift",
    "C30": "gift",
    "C31": "gift",
    "C32": "split",
    "C34": "shipping_charge",
    "C41": "final_or_clearance",
    "C42": "made_to_order",
    "C47": "gift_card_part",
    "C49": "promo",
    "C53": "cross_border",
    "C54": "cross_border",
    "C55": "holiday",
    "C56": "holiday",
    "C57": "member",
    "C58": "gold",
    "C59": "member",
    "C60": "abuse",
    "T04": "member",
    "T05": "holiday",
    "T12": "promo",
}
"""Clause id to the fact without which the clause does not bite."""

HOLIDAY = (dt.date(2025, 11, 15), dt.date(2025, 12, 24))
FEWEST_PRODUCTS, MOST_PRODUCTS = 2, 4
MERROWICK = {"name": "Merrowick", "type": "first_party", "fulfilled_by": "merrowick"}

_FACT_NEEDS_CLAUSE: Mapping[str, tuple[tuple[str, ...], FieldPath, str]] = {
    "holiday": (("C55", "C56", "T05"), ("order", "placed_at"), "placed in the holiday period"),
    "cross_border": (("C53", "C54", "T06"), ("order", "ship_to", "cross_border"), "a cross-border order"),
}


def facts(world: Json) -> set[str]:
    """What the world of a task has that a clause can speak about."""
    found = _order_facts(world["order"]) | _customer_facts(world["customer"])
    for item in world["order"]["items"]:
        found |= _item_facts(item)
    return found


def _order_facts(order: Json) -> set[str]:
    promotions = order["promotions"]
    holds = {
        "holiday": HOLIDAY[0] <= dt.date.fromisoformat(order["placed_at"]) <= HOLIDAY[1],
        "gift": any(order["gift"].values()),
        "cross_border": order["ship_to"]["cross_border"],
        "shipping_charge": order["shipping_charge"] > 0,
        "promo": bool(promotions),
        "bundle": any(promotion["scope"] == "bundle" for promotion in promotions),
        "gift_card_part": order["payment"]["gift_card_part"] > 0,
        "split": len(order["shipments"]) > 1,
    }
    return {fact for fact, held in holds.items() if held}


def _customer_facts(customer: Json) -> set[str]:
    holds = {
        "member": bool(customer["membership"]),
        "gold": any(period["tier"] == "Circle Gold" for period in customer["membership"]),
        "abuse": customer["return_history"]["abuse_risk_level"] != "LOW",
    }
    return {fact for fact, held in holds.items() if held}


def _item_facts(item: Json) -> set[str]:
    tags = set(item["tags"])
    holds = {
        "third_party": item["seller"]["type"] == "third_party",
        "bundle": any(tag.startswith("bundle:") for tag in tags),
        "final_or_clearance": bool(tags & {"final_sale", "clearance"}),
        "listing_window": item["window_days_on_listing"] is not None,
        "software": item["category"] == "Software and digital content" or "digital_code" in tags,
    }
    return tags | {fact for fact, held in holds.items() if held}


def check_clauses_bite(world: Json, clauses: Sequence[str]) -> Iterator[Finding]:
    """The rules that relate a task's clauses to its world; paths start at the world."""
    found = facts(world)
    for clause in clauses:
        if NEEDS.get(clause, "") not in found | {""}:
            yield Finding((), f"clause {clause} needs the fact {NEEDS[clause]!r}, the world does not have it")
    for fact, (speaking, path, told) in _FACT_NEEDS_CLAUSE.items():
        if fact in found and not set(speaking) & set(clauses):
            yield Finding(path, f"{told} needs one of the clauses {', '.join(speaking)}")
    if any(clause.startswith("T") for clause in clauses) != ("third_party" in found):
        yield Finding(("order", "items"), "a third-party seller needs a T clause, and the reverse")


def check_shop(world: Json) -> Iterator[Finding]:
    """What is true of every order at this shop; paths start at the world."""
    items = world["order"]["items"]
    for at, item in enumerate(items):
        if item["seller"]["type"] == "first_party" and item["seller"] != MERROWICK:
            yield Finding(("order", "items", at, "seller"), f"a first-party seller must be {MERROWICK}")
    count = len({item["product_id"] for item in items})
    if not FEWEST_PRODUCTS <= count <= MOST_PRODUCTS:
        yield Finding(
            ("order", "items"), f"has {count} products, wanted {FEWEST_PRODUCTS} to {MOST_PRODUCTS}"
        )
    yield from _variant_ids(world["products"])


def _variant_ids(products: Sequence[Json]) -> Iterator[Finding]:
    for at, product in enumerate(products):
        for below, variant in enumerate(product["variants"]):
            stem, _, letter = variant["variant_id"].rpartition("-")
            if (
                stem != product["product_id"]
                or not letter[:1].isupper()
                or (not letter[1:].isdigit() and letter[1:])
            ):
                path = ("products", at, "variants", below, "variant_id")
                yield Finding(
                    path, f"is {variant['variant_id']!r}, must have the form {product['product_id']}-A"
                )
