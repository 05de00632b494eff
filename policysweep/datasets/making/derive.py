"""From the facts of a task to its order world: ids, dates, totals, rates and risk follow, and always agree.

Any facts that fit their schema make a sound world. Where they collide, the narrower wins: a gift card pays
no more than the order costs, promotions take off half of it at most, what never arrived was never opened.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from policysweep.datasets.making.facts import Candidate, Facts, Item, Promotion, Purchase
from policysweep.datasets.rules.authored import vocabulary
from policysweep.datasets.rules.world import risk

Json = dict[str, Any]

TODAY = dt.date.fromisoformat(vocabulary.TODAY)
"""The day of every conversation in a world that is made: that of the shipped data set."""

TRANSIT_DAYS = 3
HANDLING_DAYS = 2
LOST_DAYS = 7
"""A parcel counts as lost this long after the promise."""
RETURN_DAYS = 10
"""An earlier purchase that was returned went back so many days after it was bought."""
MEMBER = "Member"
MONTH = 30
"""An account is at least so many days older than its orders; a former membership ended so many days ago."""

_NUMBERED_TASK = re.compile(r"task_([0-9]{3}|E[0-9]{2})")
_METHOD_LABELS = {
    "credit_card": "Credit card ending {}",
    "debit_card": "Debit card ending {}",
    "bank_transfer": "Bank account ending {}",
    "gift_card": "Gift card ending {}",
    "store_credit": "Store credit",
}


@dataclass(frozen=True)
class Ids:
    """The ids of one task's world, derived from its task id alone."""

    task_id: str

    @property
    def code(self) -> str:
        """Three characters for a numbered task, six otherwise."""
        numbered = _NUMBERED_TASK.fullmatch(self.task_id)
        return numbered[1] if numbered else hashlib.sha256(self.task_id.encode()).hexdigest()[:6].upper()

    def digits(self, purpose: str, count: int) -> str:
        """So many decimal digits, different for each purpose."""
        value = int(hashlib.sha256(f"{self.task_id}/{purpose}".encode()).hexdigest(), 16)
        return f"{value % 10**count:0{count}d}"

    def order(self, purpose: str) -> str:
        """An order id."""
        digits = self.digits(purpose, 9)
        return f"ORD-{digits[:3]}-{digits[3:]}"


@dataclass(frozen=True)
class Parcel:
    """Items that travelled together, with the days of their way."""

    status: str
    items: list[str]
    promised: dt.date
    shipped: dt.date
    delivered: dt.date | None
    revised: dt.date | None


def derive_world(facts: Facts, task_id: str, case: str) -> Json:
    """The world of a task as JSON. `case` is the text that the facts were taken from."""
    ids = Ids(task_id)
    parcels = _parcels(facts.items, ids)
    first_day = min(min(parcel.promised, parcel.shipped) for parcel in parcels)
    placed = first_day - dt.timedelta(days=HANDLING_DAYS)
    past = [
        _past_order(purchase, number, ids) for number, purchase in enumerate(facts.earlier_purchases, start=1)
    ]
    products = _products(facts, ids)
    return {
        "today": str(TODAY),
        "customer": _customer(facts, ids, placed, past),
        "order": _order(facts, ids, placed, parcels, products, case),
        "other_orders": past,
        "products": list(products.values()),
        "inspection_truth": [
            {
                "item_id": f"I-{ids.code}-{number}",
                "condition": item.condition if item.delivery == "delivered" else "unopened",
                "notes": item.inspection_notes,
                "accessories_missing": list(item.accessories_missing),
            }
            for number, item in enumerate(facts.items, start=1)
        ],
        "gold_facts": {
            "reason_truth": facts.true_reason,
            "what_customer_may_misstate": facts.customer_may_misstate.strip() or None,
        },
    }


def _parcels(items: list[Item], ids: Ids) -> list[Parcel]:
    together: dict[tuple[str, int, int], list[str]] = {}
    for number, item in enumerate(items, start=1):
        key = (item.delivery, item.delivered_days_ago, item.days_late)
        together.setdefault(key, []).append(f"I-{ids.code}-{number}")
    return [
        _parcel(status, _days(ago), _days(late), inside) for (status, ago, late), inside in together.items()
    ]


def _days(count: int) -> dt.timedelta:
    return dt.timedelta(days=count)


def _parcel(status: str, ago: dt.timedelta, late: dt.timedelta, items: list[str]) -> Parcel:
    way = _days(TRANSIT_DAYS)
    if status == "delivered":
        delivered = TODAY - ago
        return Parcel(status, items, delivered - late, delivered - way, delivered, None)
    if status == "lost":
        promised = TODAY - max(late, _days(LOST_DAYS))
        return Parcel(status, items, promised, promised - way, None, None)
    promised = TODAY - late if late else TODAY + way
    shipped = min(promised - way, TODAY - _days(1))
    return Parcel(status, items, promised, shipped, None, TODAY + way if late else None)


def _products(facts: Facts, ids: Ids) -> dict[str, Json]:
    """Products by name; items and candidates of one name are one product."""
    products: dict[str, Json] = {}
    for item in facts.items:
        product_id = f"P-{ids.code}-{len(products) + 1}"
        product = _product(product_id, item, item.unit_price, restock_in_days=0)
        product["variants"] = [
            {"variant_id": f"{product_id}-{letter}", "label": variant.label, "available": variant.available}
            for letter, variant in zip("ABC", item.variants, strict=False)
        ]
        products.setdefault(item.name, product)
    for candidate in facts.exchange_candidates:
        product_id = f"P-{ids.code}-{len(products) + 1}"
        product = _product(product_id, candidate, candidate.price, candidate.restock_in_days)
        products.setdefault(candidate.name, product)
    return products


def _product(product_id: str, offer: Item | Candidate, price: float, restock_in_days: int) -> Json:
    return {
        "product_id": product_id,
        "name": offer.name,
        "category": offer.category,
        "price": _cents(price) / 100,
        "specs": {detail.label: detail.value for detail in offer.details},
        "stock": {
            "available": offer.units_in_stock,
            "restock_date": str(TODAY + _days(restock_in_days)) if restock_in_days else None,
        },
        "variants": [],
    }


def _customer(facts: Facts, ids: Ids, placed: dt.date, past: list[Json]) -> Json:
    oldest = min([placed, *(dt.date.fromisoformat(order["placed_at"]) for order in past)])
    since = min(TODAY - _days(365 * facts.account_age_years), oldest - _days(MONTH))
    return {
        "customer_id": f"CUST-{ids.digits('customer', 8)}",
        "email_domain": "mailbox.example",
        "member_tier": MEMBER if facts.membership == "current" else "none",
        "membership": _membership(facts.membership, since),
        "since": str(since),
        "return_history": _return_history(facts, past),
        "payment_methods": _payment_methods(facts, ids),
        "addresses": _addresses(facts),
    }


def _membership(membership: str, since: dt.date) -> list[Json]:
    if membership == "none":
        return []
    end = None if membership == "current" else str(TODAY - _days(MONTH))
    return [{"tier": MEMBER, "from": str(since), "to": end}]


def _return_history(facts: Facts, past: list[Json]) -> Json:
    recent = [order for order in past if (TODAY - dt.date.fromisoformat(order["placed_at"])).days <= 365]
    returns = max(facts.other_orders_returned_12_months, sum(bool(order["returns"]) for order in recent))
    kept = max(facts.other_orders_kept_12_months, sum(not order["returns"] for order in recent))
    orders = 1 + kept + returns
    rate = round(returns / orders, 2)
    level, deduction = risk(rate)
    return {
        "orders_12m": orders,
        "returns_12m": returns,
        "rate": rate,
        "abuse_risk_level": level,
        "recommended_deduction_percentage": deduction,
    }


def _payment_methods(facts: Facts, ids: Ids) -> list[Json]:
    kinds: dict[str, str] = {facts.payment_method: facts.payment_method_status}
    if facts.paid_with_gift_card > 0:
        kinds.setdefault("gift_card", "active")
    return [
        {"type": kind, "label": _METHOD_LABELS[kind].format(ids.digits(kind, 4)), "status": status}
        for kind, status in kinds.items()
    ]


def _addresses(facts: Facts) -> list[Json]:
    to_other = facts.sent_to_somebody_else
    home = {"label": "Home", "kind": "home", "cross_border": facts.delivered_abroad and not to_other}
    other = {"label": "Recipient", "kind": "other_person", "cross_border": facts.delivered_abroad}
    return [home, other] if to_other else [home]


def _order(
    facts: Facts, ids: Ids, placed: dt.date, parcels: list[Parcel], products: Mapping[str, Json], case: str
) -> Json:
    stated = facts.order_number_in_case.strip()
    promotions, amount = _promotions(facts, ids)
    by_card = (
        amount if facts.payment_method == "gift_card" else min(_cents(facts.paid_with_gift_card), amount)
    )
    return {
        "order_id": stated
        if stated and stated in case and any(map(str.isdigit, stated))
        else ids.order("order"),
        "placed_at": str(placed),
        "channel": facts.channel,
        "gift": {"marked": facts.marked_as_gift, "sent_to_other": facts.sent_to_somebody_else},
        "ship_to": {
            "address_label": "Recipient" if facts.sent_to_somebody_else else "Home",
            "cross_border": facts.delivered_abroad,
        },
        "shipping_charge": _cents(facts.shipping_charge) / 100,
        "payment": {"method": facts.payment_method, "amount": amount / 100, "gift_card_part": by_card / 100},
        "promotions": promotions,
        "shipments": [_shipment(parcel, f"S-{ids.code}-{n}") for n, parcel in enumerate(parcels, start=1)],
        "items": [_item(item, f"I-{ids.code}-{n}", products) for n, item in enumerate(facts.items, start=1)],
    }


def _cents(dollars: float) -> int:
    return round(dollars * 100)


def _promotions(facts: Facts, ids: Ids) -> tuple[list[Json], int]:
    """The promotions, which together take off half at most, and the cents that are left to pay."""
    items = sum(item.quantity * _cents(item.unit_price) for item in facts.items)
    full = items + _cents(facts.shipping_charge)
    most, promotions = full // 2, []
    for number, promotion in enumerate(facts.promotions, start=1):
        off = min(_cents(promotion.amount), most)
        most -= off
        promotions.append(_promotion(promotion, f"PR-{ids.code}-{number}", off, facts, ids))
    return promotions, full - full // 2 + most


def _promotion(promotion: Promotion, promo_id: str, off: int, facts: Facts, ids: Ids) -> Json:
    items = [f"I-{ids.code}-{number}" for number in range(1, len(facts.items) + 1)]
    return {
        "promo_id": promo_id,
        "description": promotion.description,
        "amount": -off / 100,
        "scope": promotion.scope,
        "item_ids": items if promotion.scope == "bundle" else [],
        "conditions": promotion.conditions,
    }


def _shipment(parcel: Parcel, shipment_id: str) -> Json:
    return {
        "shipment_id": shipment_id,
        "carrier_status": parcel.status,
        "shipped_at": str(parcel.shipped),
        "promised_by": str(parcel.promised),
        "revised_promise": str(parcel.revised) if parcel.revised else None,
        "delivered_at": str(parcel.delivered) if parcel.delivered else None,
        "items": parcel.items,
    }


def _item(item: Item, item_id: str, products: Mapping[str, Json]) -> Json:
    product = products[item.name]
    by_shop = item.seller == "shop"
    return {
        "item_id": item_id,
        "product_id": product["product_id"],
        "name": item.name,
        "category": product["category"],
        "quantity": item.quantity,
        "unit_price": _cents(item.unit_price) / 100,
        "currency": "USD",
        "seller": {
            "name": "The shop" if by_shop else item.seller_name.strip() or "Independent seller",
            "type": "first_party" if by_shop else "third_party",
            "fulfilled_by": "shop" if by_shop else "seller",
        },
        "tags": list(dict.fromkeys(item.tags)),
        "window_days_on_listing": item.return_days_on_page or None,
    }


def _past_order(purchase: Purchase, number: int, ids: Ids) -> Json:
    placed = TODAY - _days(purchase.days_ago)
    item_id, price = f"I-{ids.code}-H{number}", _cents(purchase.price) / 100
    returned = {
        "item_id": item_id,
        "returned_at": str(min(placed + _days(RETURN_DAYS), TODAY)),
        "reason": purchase.return_reason.strip() or "No longer needed",
        "outcome": "RETURN_REFUND_FULL_BANK",
    }
    return {
        "order_id": ids.order(f"earlier order {number}"),
        "placed_at": str(placed),
        "status": "returned" if purchase.returned else "delivered",
        "amount": price,
        "items": [
            {
                "item_id": item_id,
                "product_id": f"P-{ids.code}-H{number}",
                "name": purchase.name,
                "category": purchase.category,
                "quantity": 1,
                "unit_price": price,
            }
        ],
        "returns": [returned] if purchase.returned else [],
    }
