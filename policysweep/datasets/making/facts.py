"""What a model is asked for: the facts of a task's story, with nothing that can be derived from them."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str, Field(min_length=2, max_length=80)]
Line = Annotated[str, Field(min_length=3, max_length=200)]
MaybeLine = Annotated[str, Field(max_length=200)]
Price = Annotated[float, Field(ge=0, le=10_000)]
Count = Annotated[int, Field(ge=0, le=40)]
Days = Annotated[int, Field(ge=0, le=200)]

Tag = Literal[
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
    "warranty",
    "fragile",
]


class _Facts(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Detail(_Facts):
    """A line of a product page."""

    label: Name
    value: MaybeLine


class Variant(_Facts):
    """A variant that the shop offers."""

    label: Name
    available: Count


class Item(_Facts):
    """A line of the order."""

    name: Name
    category: Name
    quantity: Annotated[int, Field(ge=1, le=20)]
    unit_price: Price
    details: Annotated[list[Detail], Field(min_length=1, max_length=5)]
    tags: Annotated[list[Tag], Field(max_length=4)]
    seller: Literal["shop", "independent"]
    seller_name: MaybeLine = Field(description="Empty when the shop itself sells it.")
    return_days_on_page: Annotated[int, Field(ge=0, le=365)] = Field(
        description="Days to return it that the product page itself states; 0 when it states none."
    )
    delivery: Literal["delivered", "in_transit", "lost"]
    delivered_days_ago: Days = Field(description="0 when it was not delivered.")
    days_late: Annotated[int, Field(ge=0, le=60)]
    condition: Literal[
        "unopened", "opened_unused", "opened_used", "defective", "damaged_in_shipping", "wrong_item"
    ]
    inspection_notes: Line
    accessories_missing: Annotated[list[Name], Field(max_length=5)]
    units_in_stock: Count
    variants: Annotated[list[Variant], Field(max_length=3)]


class Promotion(_Facts):
    """A price reduction, or a gift that came with the order."""

    description: Line
    amount: Price = Field(description="What it took off; 0 for a gift.")
    scope: Literal["order", "bundle", "shipping"]
    conditions: MaybeLine


class Candidate(_Facts):
    """A product that could be offered in exchange."""

    name: Name
    category: Name
    price: Price
    details: Annotated[list[Detail], Field(min_length=1, max_length=5)]
    units_in_stock: Count
    restock_in_days: Days = Field(description="0 when it is in stock or nothing is known.")


class Purchase(_Facts):
    """An earlier purchase."""

    name: Name
    category: Name
    price: Price
    days_ago: Annotated[int, Field(ge=20, le=700)]
    returned: bool
    return_reason: MaybeLine = Field(description="Empty when it was kept.")


class Facts(_Facts):
    """The facts of one task."""

    items: Annotated[list[Item], Field(min_length=1, max_length=6)]
    order_number_in_case: Annotated[str, Field(max_length=40)] = Field(
        description="The order number exactly as the case gives it; empty when it gives none."
    )
    channel: Literal["web", "app", "phone"]
    marked_as_gift: bool
    sent_to_somebody_else: bool
    delivered_abroad: bool
    shipping_charge: Annotated[float, Field(ge=0, le=500)]
    promotions: Annotated[list[Promotion], Field(max_length=3)]
    payment_method: Literal["credit_card", "debit_card", "bank_transfer", "gift_card", "store_credit"]
    payment_method_status: Literal["active", "expired", "closed"]
    paid_with_gift_card: Price = Field(description="The part of the total that a gift card paid.")
    membership: Literal["none", "current", "former"]
    account_age_years: Annotated[int, Field(ge=0, le=25)]
    other_orders_kept_12_months: Count
    other_orders_returned_12_months: Count
    earlier_purchases: Annotated[list[Purchase], Field(min_length=1, max_length=3)]
    exchange_candidates: Annotated[list[Candidate], Field(min_length=1, max_length=3)]
    true_reason: Line
    customer_may_misstate: MaybeLine = Field(description="Empty when the customer has nothing to shade.")


@cache
def facts_schema() -> dict[str, Any]:
    """The JSON schema of `Facts` in what every server of open models understands: no $ref, no titles."""
    schema = Facts.model_json_schema()
    definitions = schema.pop("$defs")
    inlined: dict[str, Any] = _plain(schema, definitions)
    return inlined


def _plain(part: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(part, list):
        return [_plain(each, definitions) for each in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        return _plain(definitions[part["$ref"].rpartition("/")[2]], definitions)
    return {
        key: {name: _plain(field, definitions) for name, field in value.items()}
        if key == "properties"
        else _plain(value, definitions)
        for key, value in part.items()
        if key != "title"
    }
