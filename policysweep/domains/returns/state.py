"""The order as the episode left it: the frozen world below, what the tools changed on top.

The world's message is read and never written. Nothing in here knows the hidden truth, so no tool that
is handed an `OrderState` can reveal it.

Units of an order line are *claimed* once, by a return, an exchange or a cancellation. A claim is worth
its share of what was paid: the line's price less its part of the promotions that cover it. Payments are
booked against the lines that they pay for, and their sum never exceeds what was paid for the order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from policysweep.domains.returns import money
from policysweep.domains.returns.results import Json, Refused
from policysweep.errors import InputError
from policysweep.v1 import episode_pb2, world_pb2

GIFT_METHODS = frozenset({"gift_card", "store_credit"})
NOT_SENT = "label_created"
DELIVERED = "delivered"
NEVER_ARRIVED = frozenset({"lost", "returned_to_sender"})
"""Carrier states in which the customer has nothing to send back."""

RETURN, EXCHANGE, CANCELLATION = "return", "exchange", "cancellation"


@dataclass(slots=True)
class Claim:
    """Units of a line that leave the order. `value` is their share of what was paid, in cents."""

    item: world_pb2.OrderItem
    units: int
    value: int
    condition: str | None = None


@dataclass(slots=True)
class Case:
    """A return, exchange or cancellation. `facts` is what reads show beside id, kind and lines."""

    case_id: str
    kind: str
    claims: list[Claim]
    outcome: episode_pb2.Outcome.ValueType
    facts: Json
    open_leg: bool = False
    """A return leg that still waits for its exchange."""


@dataclass(slots=True)
class Payment:
    """Money paid back or credited, in cents. `by_item` is the part booked against order lines."""

    payment_id: str
    kind: str
    amount: int
    method: str
    by_item: dict[str, int]
    shipping: int
    facts: Json = field(default_factory=dict)


class OrderState:
    """What the tools of one episode read and change."""

    def __init__(self, world: world_pb2.OrderWorld) -> None:
        self.today = world.today
        self.order = world.order
        self.customer = world.customer
        self.other_orders = world.other_orders
        self.items = {item.item_id.upper(): item for item in self.order.items}
        self.products = {product.product_id.upper(): product for product in world.products}
        self.shipment_of = {i.upper(): parcel for parcel in self.order.shipments for i in parcel.items}
        self.cases: list[Case] = []
        self.payments: list[Payment] = []
        self.case_notes: list[Json] = []
        self.new_address: world_pb2.Address | None = None
        self.delivery_instructions = ""
        self.reserved: Counter[str] = Counter()
        self._numbered: Counter[str] = Counter()
        if missing := self.items.keys() - self.shipment_of.keys():
            raise InputError(
                f"world of order {self.order.order_id}: shipments: no parcel holds item {min(missing)}; "
                "put every item into exactly one shipment"
            )

    # What is on file

    def own(self, order_id: str, customer_id: str | None) -> None:
        """Refuse unless the order is the open one and the account, if given, owns it."""
        if isinstance(self.find_order(order_id), world_pb2.PastOrder):
            raise Refused(f"Order {order_id} is archived; only {self.order.order_id} can be changed.")
        self.own_account(customer_id)

    def own_account(self, customer_id: str | None) -> None:
        """Refuse unless the account, if given, is the one of this conversation."""
        if customer_id not in (None, self.customer.customer_id.upper()):
            raise Refused(
                f"Account {customer_id} is not the account of this conversation.",
                customer_id=self.customer.customer_id,
            )

    def find_order(self, order_id: str) -> world_pb2.Order | world_pb2.PastOrder:
        """An order of the account. The refusal of any other names those that it has."""
        if order_id == self.order.order_id.upper():
            return self.order
        for past in self.other_orders:
            if order_id == past.order_id.upper():
                return past
        orders = [self.order.order_id, *(past.order_id for past in self.other_orders)]
        raise Refused(f"Order {order_id} is not on this account.", orders_on_account=orders)

    def item(self, item_id: str) -> world_pb2.OrderItem:
        """The order line. Refuses an id that the order does not have."""
        try:
            return self.items[item_id]
        except KeyError:
            known = {item.item_id: item.name for item in self.order.items}
            message = f"Item {item_id} is not on order {self.order.order_id}."
            raise Refused(message, items_on_order=known) from None

    def carrier_status(self, item: world_pb2.OrderItem) -> str:
        """Where the parcel of the line is."""
        return self.shipment_of[item.item_id.upper()].carrier_status

    @cached_property
    def variants(self) -> dict[str, tuple[world_pb2.Product, world_pb2.Variant]]:
        """Variants by id, each with its product."""
        pairs = ((p, v) for p in self.products.values() for v in p.variants)
        return {variant.variant_id.upper(): (product, variant) for product, variant in pairs}

    def stock(self, product_id: str) -> tuple[world_pb2.Product, int]:
        """The product (also found by one of its variants) and the units that can still be promised."""
        if product_id in self.variants:
            product, variant = self.variants[product_id]
            on_hand = min(variant.available - self.reserved[product_id], self._on_hand(product))
        elif product_id in self.products:
            product = self.products[product_id]
            on_hand = self._on_hand(product)
        else:
            known = {product.product_id: product.name for product in self.products.values()}
            raise Refused(f"Product {product_id} is not in the catalogue.", products_known=known)
        return product, max(0, on_hand)

    def _on_hand(self, product: world_pb2.Product) -> int:
        return product.stock.available - self.reserved[product.product_id.upper()]

    def reserve(self, product_id: str, units: int) -> None:
        """Promise units of a product or variant to an exchange."""
        self.reserved[product_id] += units
        if product_id in self.variants:
            self.reserved[self.variants[product_id][0].product_id.upper()] += units

    # Claims on units

    def claims(self, *kinds: str) -> Iterable[Claim]:
        """The claims of all cases of these kinds; of every kind when none is named."""
        return (claim for case in self.cases if not kinds or case.kind in kinds for claim in case.claims)

    def units(self, item: world_pb2.OrderItem, *kinds: str) -> int:
        """Units of the line that are claimed."""
        return sum(claim.units for claim in self.claims(*kinds) if claim.item.item_id == item.item_id)

    def claim(self, item: world_pb2.OrderItem, units: int, condition: str | None, before: int = 0) -> Claim:
        """A claim on the next units of the line, `before` of which the same request already claims.

        Refuses more units than are left. Booked only once its case is added.
        """
        taken = self.units(item) + before
        if taken + units > item.quantity:
            left = item.quantity - taken
            raise Refused(
                f"Item {item.item_id} has {left} of {item.quantity} unit(s) left to act on, not {units}.",
                already_claimed=[case.case_id for case in self.cases_of(item)],
            )
        line = self.shares[item.item_id]
        value = line * (taken + units) // item.quantity - line * taken // item.quantity
        return Claim(item, units, value, condition)

    def cases_of(self, item: world_pb2.OrderItem) -> list[Case]:
        """The cases that claim units of the line."""
        return [c for c in self.cases if any(claim.item.item_id == item.item_id for claim in c.claims)]

    def new_id(self, prefix: str) -> str:
        """The next number of its kind on this order, for example "RET-318652-1"."""
        self._numbered[prefix] += 1
        return f"{prefix}-{self.order.order_id.rpartition('-')[2]}-{self._numbered[prefix]}"

    # Money

    @cached_property
    def shares(self) -> dict[str, int]:
        """Each line's share of the price in cents: promotions are prorated over the lines they cover."""
        shares = {i.item_id: money.cents(i.unit_price) * i.quantity for i in self.order.items}
        prices = dict(shares)
        for promotion in self.order.promotions:
            if promotion.scope != "shipping":
                covered = [i for i in (promotion.item_ids or shares) if i in shares]
                parts = money.split(money.cents(-promotion.amount), [prices[i] for i in covered])
                for item_id, part in zip(covered, parts, strict=True):
                    shares[item_id] -= part
        return {item_id: max(0, share) for item_id, share in shares.items()}

    @cached_property
    def shipping_paid(self) -> int:
        """What was paid for delivery, in cents."""
        lowered = sum(p.amount for p in self.order.promotions if p.scope == "shipping")
        return max(0, money.cents(self.order.shipping_charge + lowered))

    @property
    def paid_back(self) -> int:
        """All money paid back or credited so far, in cents."""
        return sum(payment.amount for payment in self.payments)

    @property
    def payable(self) -> int:
        """What can still be paid back, in cents."""
        return money.cents(self.order.payment.amount) - self.paid_back

    @property
    def shipping_payable(self) -> int:
        """What can still be paid back of the shipping charge, in cents."""
        return self.shipping_paid - sum(payment.shipping for payment in self.payments)

    def booked(self, item_id: str) -> int:
        """What has been paid back for the line, in cents."""
        return sum(payment.by_item.get(item_id, 0) for payment in self.payments)

    def check_payable(self, amount: int) -> None:
        """Refuse an amount that would bring the total above what was paid for the order."""
        if amount > self.payable:
            raise Refused(
                f"{money.text(amount)} is more than the {money.text(self.payable)} that is left of what was "
                "paid for this order.",
                paid=self.order.payment.amount,
                already_paid_back=money.dollars(self.paid_back),
            )

    def pay(self, payment: Payment) -> None:
        """Book a payment. Refuses to exceed what was paid for the order."""
        self.check_payable(payment.amount)
        self.payments.append(payment)

    # What it amounts to

    def settled(self) -> episode_pb2.Outcome.ValueType:
        """The outcome that goods and money moved so far amount to; unspecified when nothing moved.

        An exchange counts as a replacement unless the items returned for a refund are worth more. Where
        money moved, its larger half decides between bank and gift card, and against the price of what
        was returned (of the whole order, when nothing was) whether it is the full or a partial refund.
        """
        exchanged = [case for case in self.cases if case.kind == EXCHANGE]
        returned = [case for case in self.cases if case.kind != EXCHANGE]
        returned_value = sum(claim.value for case in returned for claim in case.claims)
        exchanged_value = sum(claim.value for case in exchanged for claim in case.claims)
        if exchanged and exchanged_value >= returned_value:
            return episode_pb2.OUTCOME_REPLACEMENT_EXCHANGE
        if not self.paid_back:
            return returned[-1].outcome if returned else episode_pb2.OUTCOME_UNSPECIFIED
        in_gifts = sum(p.amount for p in self.payments if p.method in GIFT_METHODS)
        if 2 * in_gifts > self.paid_back:
            return episode_pb2.OUTCOME_RETURN_REFUND_GIFT_CARD
        for_items = self.paid_back - (self.shipping_paid - self.shipping_payable)
        price = returned_value or money.cents(self.order.payment.amount)
        if (for_items if returned_value else self.paid_back) >= price:
            return episode_pb2.OUTCOME_RETURN_REFUND_FULL_BANK
        return episode_pb2.OUTCOME_RETURN_REFUND_PARTIAL_BANK
