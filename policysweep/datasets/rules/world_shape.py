"""The form of an order world (`policysweep.v1.OrderWorld` as JSON).

Every world has the same fields. What a data set adds is a *vocabulary*: the form of its ids and the words
that it uses for categories, tiers and tags. `ANY_WORDS` is for data sets that we know nothing about.
"""

from __future__ import annotations

from dataclasses import dataclass

from policysweep.datasets.problems import Rule
from policysweep.datasets.rules.shape import (
    amount,
    boolean,
    choice,
    date,
    filled,
    integer,
    listing,
    mapping,
    nullable,
    number,
    record,
    reduction,
    string,
)
from policysweep.v1 import episode_pb2

OUTCOMES = tuple(
    name.removeprefix("OUTCOME_")
    for name, value in episode_pb2.Outcome.items()
    if value != episode_pb2.OUTCOME_UNSPECIFIED
)
"""Wire names of the seven outcomes."""

PAYMENT_TYPES = ("credit_card", "debit_card", "bank_transfer", "gift_card", "store_credit")
CONDITIONS = ("unopened", "opened_unused", "opened_used", "defective", "damaged_in_shipping", "wrong_item")
CARRIER_STATUSES = ("label_created", "in_transit", "delivered", "lost", "returned_to_sender")
PAST_ORDER_STATUSES = ("delivered", "returned", "partially_returned", "canceled", "in_transit")
SELLER_TYPES = ("first_party", "third_party")


@dataclass(frozen=True)
class Vocabulary:
    """The form of ids and words in the worlds of a data set."""

    today: Rule = date
    customer_id: Rule = filled
    order_id: Rule = filled
    item_id: Rule = filled
    product_id: Rule = filled
    shipment_id: Rule = filled
    promo_id: Rule = filled
    past_order_id: Rule = filled
    past_item_id: Rule = filled
    past_product_id: Rule = filled
    email_domain: Rule = filled
    tier: Rule = filled
    paid_tier: Rule = filled
    fulfilled_by: Rule = filled
    product_name: Rule = filled
    category: Rule = filled
    tag: Rule = filled
    specs: Rule = mapping(string)  # noqa: RUF009 -- a rule is a function, shared on purpose
    inspection_notes: Rule = filled
    reason_truth: Rule = filled
    misstatement: Rule = filled


ANY_WORDS = Vocabulary()


def world_shape(words: Vocabulary) -> Rule:
    """The form of a world in this vocabulary."""
    return record(
        {
            "today": words.today,
            "customer": _customer(words),
            "order": _order(words),
            "other_orders": listing(_past_order(words)),
            "products": listing(_product(words)),
            "inspection_truth": listing(
                record(
                    {
                        "item_id": filled,
                        "condition": choice(*CONDITIONS),
                        "notes": words.inspection_notes,
                        "accessories_missing": listing(filled),
                    }
                )
            ),
            "gold_facts": record(
                {
                    "reason_truth": words.reason_truth,
                    "what_customer_may_misstate": nullable(words.misstatement),
                }
            ),
        }
    )


def _customer(words: Vocabulary) -> Rule:
    method = {
        "type": choice(*PAYMENT_TYPES),
        "label": filled,
        "status": choice("active", "expired", "closed"),
    }
    address = {"label": filled, "kind": choice("home", "work", "other_person"), "cross_border": boolean}
    history = {
        "orders_12m": integer(1),
        "returns_12m": integer(0),
        "rate": number,
        "abuse_risk_level": choice("LOW", "MEDIUM", "HIGH"),
        "recommended_deduction_percentage": choice(0, 5, 10),
    }
    return record(
        {
            "customer_id": words.customer_id,
            "email_domain": words.email_domain,
            "member_tier": words.tier,
            "membership": listing(record({"tier": words.paid_tier, "from": date, "to": nullable(date)})),
            "since": date,
            "return_history": record(history),
            "payment_methods": listing(record(method)),
            "addresses": listing(record(address)),
        }
    )


def _order(words: Vocabulary) -> Rule:
    payment = {"method": choice(*PAYMENT_TYPES), "amount": amount, "gift_card_part": amount}
    return record(
        {
            "order_id": words.order_id,
            "placed_at": date,
            "channel": choice("web", "app", "phone"),
            "gift": record({"marked": boolean, "sent_to_other": boolean}),
            "ship_to": record({"address_label": filled, "cross_border": boolean}),
            "shipping_charge": amount,
            "payment": record(payment),
            "promotions": listing(_promotion(words)),
            "shipments": listing(_shipment(words)),
            "items": listing(_item(words), at_least=1),
        }
    )


def _promotion(words: Vocabulary) -> Rule:
    return record(
        {
            "promo_id": words.promo_id,
            "description": filled,
            "amount": reduction,
            "scope": choice("order", "item", "bundle", "shipping"),
            "item_ids": listing(filled),
            "conditions": string,
        }
    )


def _shipment(words: Vocabulary) -> Rule:
    return record(
        {
            "shipment_id": words.shipment_id,
            "carrier_status": choice(*CARRIER_STATUSES),
            "shipped_at": nullable(date),
            "promised_by": nullable(date),
            "revised_promise": nullable(date),
            "delivered_at": nullable(date),
            "items": listing(filled),
        }
    )


def _item(words: Vocabulary) -> Rule:
    seller = {"name": filled, "type": choice(*SELLER_TYPES), "fulfilled_by": words.fulfilled_by}
    return record(
        {
            "item_id": words.item_id,
            "product_id": filled,
            "name": filled,
            "category": filled,
            "quantity": integer(1),
            "unit_price": amount,
            "currency": choice("USD"),
            "seller": record(seller),
            "tags": listing(words.tag),
            "window_days_on_listing": nullable(integer(0, 365)),
        }
    )


def _product(words: Vocabulary) -> Rule:
    variant = {"variant_id": filled, "label": filled, "available": integer(0)}
    return record(
        {
            "product_id": words.product_id,
            "name": words.product_name,
            "category": words.category,
            "price": amount,
            "specs": words.specs,
            "stock": record({"available": integer(0), "restock_date": nullable(date)}),
            "variants": listing(record(variant)),
        }
    )


def _past_order(words: Vocabulary) -> Rule:
    item = {
        "item_id": words.past_item_id,
        "product_id": words.past_product_id,
        "name": filled,
        "category": words.category,
        "quantity": integer(1),
        "unit_price": amount,
    }
    returned = {"item_id": filled, "returned_at": date, "reason": filled, "outcome": choice(*OUTCOMES)}
    return record(
        {
            "order_id": words.past_order_id,
            "placed_at": date,
            "status": choice(*PAST_ORDER_STATUSES),
            "amount": amount,
            "items": listing(record(item)),
            "returns": listing(record(returned)),
        }
    )
