"""The fixed words of the shop that the authored tasks are about: its categories, tiers, tags and ids."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from policysweep.datasets.problems import Finding
from policysweep.datasets.rules.shape import both, choice, filled, mapping, pattern, prose, string
from policysweep.datasets.rules.world_shape import Vocabulary

TODAY = "2026-01-27"
CATEGORIES = (
    "Clothing, shoes, and bags",
    "Home, kitchen, and garden",
    "Toys, games, and baby products",
    "Books, stationery, and crafts",
    "Sports and outdoor gear",
    "Beauty, health, and personal care",
    "Electronics and electronic accessories",
    "Furniture, mattresses, and large appliances",
    "Software and digital content",
)
TAGS = frozenset(
    [
        "hygiene_sealed",
        "serialised",
        "final_sale",
        "clearance",
        "large_item",
        "consumable",
        "digital_code",
        "made_to_order",
        "free_gift",
        "registered",
        "activated",
        "holiday_price",
        "warranty",
        "fragile",
    ]
)
TAG_PREFIXES = ("bundle:", "accessory_of:")
TIERS = ("Circle", "Circle Gold")
TASK_NAME = re.compile(r"task_([0-9]{3}|E[0-9]{2})")
ORDER_ID = re.compile(r"ORD-[0-9]{3}-[0-9]{6}")


def _tag(value: Any) -> Iterator[Finding]:
    if not isinstance(value, str) or (value not in TAGS and not value.startswith(TAG_PREFIXES)):
        yield Finding(
            (), f"{value!r} is not a known tag: {sorted(TAGS)} or one that starts with {TAG_PREFIXES}"
        )


def vocabulary(code: str) -> Vocabulary:
    """The ids and words of the world of one task; `code` is what follows `task_`, for example 017 or E03."""
    order_id = pattern(ORDER_ID.pattern, "ORD-###-######")
    return Vocabulary(
        today=choice(TODAY),
        customer_id=pattern(r"CUST-[0-9]{8}", "CUST-########"),
        order_id=order_id,
        item_id=pattern(rf"I-{code}-[1-9][0-9]?", f"I-{code}-1"),
        product_id=pattern(rf"P-{code}-[1-9][0-9]?", f"P-{code}-1"),
        shipment_id=pattern(rf"S-{code}-[1-9]", f"S-{code}-1"),
        promo_id=pattern(rf"PR-{code}-[1-9]", f"PR-{code}-1"),
        past_order_id=order_id,
        past_item_id=pattern(rf"I-{code}-H[1-9][0-9]?", f"I-{code}-H1"),
        past_product_id=pattern(rf"P-{code}-H[1-9][0-9]?", f"P-{code}-H1"),
        email_domain=pattern(r".*\.example", "something.example"),
        tier=choice("none", *TIERS),
        paid_tier=choice(*TIERS),
        fulfilled_by=choice("merrowick", "seller"),
        product_name=both(filled, prose(2, 14)),
        category=choice(*CATEGORIES),
        tag=_tag,
        specs=mapping(string, at_least=3),
        inspection_notes=prose(3, 60),
        reason_truth=prose(8, 60),
        misstatement=prose(4, 60),
    )
