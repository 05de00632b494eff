"""What the eleven agent tools take (DRIP-R, agent tools). Field descriptions are what a model is shown."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, WithJsonSchema

from policysweep.domains.returns.resolution import ResolutionType
from policysweep.domains.returns.schema import Arguments

CURRENT = "CURRENT"
"""Stands for the order or the account that the conversation is about, in any case."""

Condition = Literal[
    "unopened", "opened_unused", "opened_used", "defective", "damaged_in_shipping", "wrong_item"
]
RefundMethod = Literal["original_payment", "store_credit", "gift_card", "bank_transfer"]
PolicyType = Literal[
    "returns",
    "exchanges",
    "refunds",
    "warranties",
    "shipping",
    "discounts",
    "gift_cards",
    "damaged_items",
    "all",
]

MAX_UNITS = 10_000
MAX_TEXT = 4_000


def _blank_is_none(value: Any) -> Any:
    return None if isinstance(value, str) and not value.strip() else value


def _to_the_cent(amount: Decimal) -> Decimal:
    """25, 25.0 and "25.00" are the same amount, so that repeated calls are recognised."""
    return amount.quantize(Decimal("0.01"))


Identifier = Annotated[str, StringConstraints(to_upper=True, min_length=1, max_length=80)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT)]
Units = Annotated[int, Field(ge=1, le=MAX_UNITS)]
Amount = Annotated[
    Decimal,
    Field(gt=0, max_digits=9, decimal_places=2),
    AfterValidator(_to_the_cent),
    WithJsonSchema({"type": "number", "exclusiveMinimum": 0}),
]
OptionalIdentifier = Annotated[Identifier | None, BeforeValidator(_blank_is_none)]
OptionalText = Annotated[Text | None, BeforeValidator(_blank_is_none)]
OptionalDate = Annotated[datetime.date | None, BeforeValidator(_blank_is_none)]

OrderId = Annotated[
    Identifier,
    Field(description='Order number; "current" is the order that this conversation is about.'),
]
CustomerId = Annotated[
    Identifier, Field(description='Customer number; "current" is the customer of this conversation.')
]


class OnOrder(Arguments):
    """Names an order."""

    order_id: OrderId


class OnOwnOrder(OnOrder):
    """Names an order and the account that it must belong to."""

    customer_id: CustomerId


class OnAccount(Arguments):
    """Names an account."""

    customer_id: CustomerId


class GetProductInfo(Arguments):
    """get_product_info."""

    product_id: OptionalIdentifier = Field(default=None, description="Product number, if known.")
    product_name: OptionalText = Field(default=None, description="Name or part of it, if the number is not.")
    include_specs: bool = Field(default=True, description="Include what the product page says.")


class GetOrderDetails(OnOrder):
    """get_order_details."""

    customer_id: OptionalIdentifier = Field(default=None, description="Checks whose order it is.")
    include_tracking: bool = Field(default=False, description="Include the tracking history of each parcel.")
    detail_type: Literal["items", "delivery_dates", "promotions", "payment", "status", "full"] = Field(
        default="full", description="The part of the order to show."
    )


class CheckInventory(Arguments):
    """check_inventory."""

    product_id: Identifier = Field(description="Product or variant number.")
    quantity: Units = Field(default=1, description="Units wanted.")
    fulfillment_center: OptionalText = Field(
        default=None, description="Stock is pooled: every center answers for all."
    )
    suggest_alternatives: bool = Field(
        default=True, description="Also list products of the same category that are in stock."
    )


class GetPurchaseHistory(OnAccount):
    """get_purchase_history."""

    product_filter: OptionalText = Field(default=None, description="Part of a product name or a category.")
    start_date: OptionalDate = Field(default=None, description="Earliest day of purchase, YYYY-MM-DD.")
    end_date: OptionalDate = Field(default=None, description="Latest day of purchase, YYYY-MM-DD.")
    include_returns: bool = Field(default=True, description="Include what was returned from each order.")
    limit: Annotated[int, Field(ge=1, le=100)] = Field(default=10, description="Most orders to list.")


class GetPolicyInfo(Arguments):
    """get_policy_info."""

    policy_type: PolicyType = Field(description="The subject.")
    product_category: OptionalText = Field(default=None, description="Prefers sections on this category.")
    query: OptionalText = Field(default=None, description="Words to look for.")


class GetReturnFrequencyAssessment(OnAccount):
    """get_return_frequency_assessment."""

    months: Annotated[int, Field(ge=1, le=120)] = Field(
        default=12, description="Months to look back. The system keeps figures for 12."
    )


class UpdateOrder(OnOwnOrder):
    """update_order."""

    update_type: Literal[
        "shipping_address", "delivery_instructions", "quantity", "cancel_item", "cancel_order"
    ] = Field(description="What to change.")
    new_address_label: OptionalText = Field(
        default=None, description="shipping_address: label of an address on file."
    )
    delivery_instructions: OptionalText = Field(
        default=None, description="delivery_instructions: the new text."
    )
    item_id: OptionalIdentifier = Field(default=None, description="quantity, cancel_item: the line.")
    new_quantity: Annotated[int, Field(ge=0, le=MAX_UNITS)] | None = Field(
        default=None, description="quantity: units to keep; an order can only shrink."
    )


class ItemToReturn(Arguments):
    """One line of process_return."""

    item_id: Identifier = Field(description="Line of the order.")
    quantity: Units = Field(description="Units to return.")
    condition: Condition = Field(description="State of the item as the customer describes it.")


class ProcessReturn(OnOwnOrder):
    """process_return."""

    resolution_type: ResolutionType = Field(
        description=(
            "How the return is settled. FULL_BANK and GIFT_CARD schedule the refund of the items at once; "
            "PARTIAL_BANK leaves the amount to issue_refund; REPLACEMENT_EXCHANGE opens the return leg of "
            "an exchange; the other three only record a case note."
        )
    )
    items_to_return: list[ItemToReturn] = Field(min_length=1, max_length=50, description="Lines to return.")
    return_reason: Text = Field(
        description=(
            "changed_mind, no_longer_needed, does_not_fit, gift, arrived_late, defective, "
            "damaged_in_shipping, wrong_item, missing_parts, not_as_described, other, or a few words."
        )
    )
    return_reason_details: OptionalText = Field(default=None, description="The reason in full.")
    refund_method: RefundMethod | None = Field(
        default=None, description="Where the refund goes. Default: as paid, or gift_card for GIFT_CARD."
    )
    return_method: Literal["drop_off", "pickup", "mail"] | None = Field(
        default=None, description="How the parcel travels. Default: drop_off, pickup for large items."
    )


class ItemToExchange(Arguments):
    """One line of process_exchange."""

    original_item_id: Identifier = Field(description="Line of the order.")
    original_quantity: Units = Field(description="Units to send back.")
    new_product_id: Identifier = Field(description="Product or variant wanted; may be the same product.")
    new_quantity: Units = Field(description="Units to send out.")
    condition: Condition = Field(description="State of the original as the customer describes it.")


class ProcessExchange(OnOwnOrder):
    """process_exchange."""

    items_to_exchange: list[ItemToExchange] = Field(
        min_length=1, max_length=50, description="Lines to exchange."
    )
    exchange_reason: Text = Field(description="Reason, in the words of return_reason.")
    exchange_reason_details: OptionalText = Field(default=None, description="The reason in full.")
    price_difference: Literal["charge_customer", "refund_difference", "waive_difference"] | None = Field(
        default=None, description="Who bears a difference in price; required when there is one."
    )
    return_method: Literal["drop_off", "pickup", "mail"] | None = Field(
        default=None, description="How the original travels back."
    )
    ship_before_return: bool = Field(
        default=False, description="Send the new item before the original has come back."
    )


class RefundItem(Arguments):
    """One line of issue_refund."""

    item_id: Identifier = Field(description="Line of the order.")
    quantity: Units | None = Field(default=None, description="Units. Default: all that were returned.")
    amount: Amount | None = Field(default=None, description="partial: dollars for this line.")


class IssueRefund(OnOwnOrder):
    """issue_refund."""

    refund_type: Literal["full", "partial", "shipping_only", "goodwill"] = Field(
        description=(
            "full and partial pay for items whose return exists and need process_return first; "
            "shipping_only and goodwill do not."
        )
    )
    amount: Amount | None = Field(
        default=None, description="Dollars. Required for goodwill, and for partial without line amounts."
    )
    currency: Identifier = Field(default="USD", description="Currency of the order.")
    refund_method: RefundMethod = Field(description="Where the money goes.")
    refund_reason: Text = Field(description="Why it is paid.")
    items: list[RefundItem] | None = Field(
        default=None,
        max_length=50,
        description="Lines to pay for. Default: all returned ones, else those whose parcel never arrived.",
    )
    include_shipping: bool = Field(default=False, description="Also pay back the shipping charge.")
    include_tax: bool = Field(
        default=True, description="All prices include tax: both settings give the same amount."
    )
    notes: OptionalText = Field(default=None, description="For the file.")


class ApplyDiscount(OnOwnOrder):
    """apply_discount."""

    discount_type: Literal["percentage", "fixed_amount", "free_shipping", "goodwill"] = Field(
        description="How the discount is counted."
    )
    code: OptionalText = Field(default=None, description="Code to note on the discount.")
    value: Amount | None = Field(
        default=None, description="Percent for percentage, dollars for fixed_amount and goodwill."
    )
    apply_to: Literal["order", "item", "shipping"] = Field(default="order", description="What it lowers.")
    item_ids: list[Identifier] | None = Field(
        default=None, max_length=50, description="item: the lines. Required for item."
    )
    reason: OptionalText = Field(default=None, description="Why it is given.")
    override_policy: bool = Field(
        default=False,
        description="Puts on record that it departs from the written policy. System limits stay.",
    )
