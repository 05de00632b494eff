"""issue_refund and apply_discount: money that goes back to the customer.

Refunds of items (full, partial) pay for units that a return has claimed, up to their share of what was
paid; parcels that never arrived need no return. Shipping, goodwill and discounts need none either. Over
everything stands the total paid for the order: see `OrderState.pay`.
"""

from __future__ import annotations

from typing import TypeAlias

from policysweep.domains.returns import arguments as args
from policysweep.domains.returns import money
from policysweep.domains.returns.reads import payment_json
from policysweep.domains.returns.results import Json, Refused
from policysweep.domains.returns.state import NEVER_ARRIVED, RETURN, Case, OrderState, Payment
from policysweep.v1 import episode_pb2, world_pb2

Written: TypeAlias = tuple[Json, episode_pb2.Outcome.ValueType]
"""What a write answers, and the outcome that the order amounts to after it."""


def send(
    state: OrderState,
    kind: str,
    method: str,
    *,
    by_item: dict[str, int] | None = None,
    shipping: int = 0,
    other: int = 0,
    facts: Json | None = None,
) -> Payment:
    """Book a payment in cents: for lines, for shipping and for nothing in particular."""
    payment = Payment(
        payment_id=state.new_id("REF"),
        kind=kind,
        amount=sum((by_item or {}).values()) + shipping + other,
        method=method,
        by_item=by_item or {},
        shipping=shipping,
        facts={"destination": _destination(state, method), "state": "scheduled", **(facts or {})},
    )
    state.pay(payment)
    return payment


def _destination(state: OrderState, method: str) -> str:
    """Where the money goes, for a reader."""
    if method != "original_payment":
        return method.replace("_", " ")
    paid = state.order.payment
    ways = [f"{m.label} ({m.status})" for m in state.customer.payment_methods if m.type == paid.method]
    if paid.gift_card_part:
        ways.append(f"gift card for the {money.text(money.cents(paid.gift_card_part))} paid with it")
    return "as paid: " + ", ".join(ways or [paid.method])


def issue_refund(state: OrderState, arguments: args.IssueRefund) -> Written:
    """Pay money back."""
    state.own(arguments.order_id, arguments.customer_id)
    currencies = {item.currency for item in state.order.items}
    if arguments.currency not in currencies:
        raise Refused(f"The order was paid in {', '.join(sorted(currencies))}, not {arguments.currency}.")
    if arguments.refund_type == "shipping_only":
        payment = _refund_shipping(state, arguments)
    elif arguments.refund_type == "goodwill":
        if arguments.amount is None:
            raise Refused("A goodwill payment needs an amount.")
        payment = _paid(state, arguments, other=money.cents(arguments.amount))
    else:
        payment = _refund_items(state, arguments)
    left = money.dollars(state.payable)
    return {"refund": payment_json(payment), "left_of_amount_paid": left}, state.settled()


def _paid(
    state: OrderState,
    arguments: args.IssueRefund,
    *,
    by_item: dict[str, int] | None = None,
    shipping: int = 0,
    other: int = 0,
) -> Payment:
    by_item = {item_id: part for item_id, part in (by_item or {}).items() if part}
    facts: Json = {"reason": arguments.refund_reason}
    if arguments.notes:
        facts["notes"] = arguments.notes
    if by_item:
        facts["items"] = {item_id: money.dollars(part) for item_id, part in by_item.items()}
    return send(
        state,
        arguments.refund_type,
        arguments.refund_method,
        by_item=by_item,
        shipping=shipping,
        other=other,
        facts=facts,
    )


def _refund_shipping(state: OrderState, arguments: args.IssueRefund) -> Payment:
    left = state.shipping_payable
    amount = left if arguments.amount is None else money.cents(arguments.amount)
    if not left or amount > left:
        raise Refused(
            f"{money.text(left)} of the shipping charge can be paid back"
            + (f", not {money.text(amount)}." if amount else "."),
            shipping_charge=state.order.shipping_charge,
        )
    return _paid(state, arguments, shipping=amount)


def _refund_items(state: OrderState, arguments: args.IssueRefund) -> Payment:
    """full pays all that is left of the selected lines; partial an amount up to that."""
    limits = _limits(state, arguments)
    shipping = state.shipping_payable if arguments.include_shipping else 0
    if not sum(limits.values()) + shipping:
        paid = [payment_json(payment) for payment in state.payments]
        raise Refused("There is nothing left to pay for these items.", refunds=paid)
    by_item, shipping = _division(arguments, limits, shipping)
    state.check_payable(sum(by_item.values()) + shipping)
    _write_off(state, by_item)
    return _paid(state, arguments, by_item=by_item, shipping=shipping)


def _limits(state: OrderState, arguments: args.IssueRefund) -> dict[str, int]:
    """The selected lines with what can still be paid for each, in cents. Refuses lines without a return."""
    if arguments.items is None:
        payable = [item for item in state.order.items if _units_back(state, item)]
        returned = [item for item in payable if state.units(item, RETURN)]
        if not payable:
            raise Refused("No item of this order has a return. Create the return first: process_return.")
        return {item.item_id: _limit(state, item, None) for item in returned or payable}
    limits = {}
    for line in arguments.items:
        item = state.item(line.item_id)
        if item.item_id in limits:
            raise Refused(f"Item {item.item_id} appears twice; name each item once.")
        if not _units_back(state, item):
            raise Refused(f"Item {item.item_id} has no return. Create the return first: process_return.")
        limits[item.item_id] = _limit(state, item, line.quantity)
    return limits


def _units_back(state: OrderState, item: world_pb2.OrderItem) -> int:
    """Units of the line that may be paid for: returned ones, and those that never arrived."""
    never_arrived = state.carrier_status(item) in NEVER_ARRIVED
    return state.units(item, RETURN) + (item.quantity - state.units(item) if never_arrived else 0)


def _limit(state: OrderState, item: world_pb2.OrderItem, quantity: int | None) -> int:
    units = _units_back(state, item)
    if quantity is not None and quantity > units:
        raise Refused(f"{units} unit(s) of item {item.item_id} can be paid for, not {quantity}.")
    value = sum(c.value for c in state.claims(RETURN) if c.item.item_id == item.item_id)
    if unclaimed := units - state.units(item, RETURN):
        value += state.claim(item, unclaimed, None).value
    left = min(value, state.shares[item.item_id]) - state.booked(item.item_id)
    return max(0, min(left, value * (quantity or units) // units))


def _division(
    arguments: args.IssueRefund, limits: dict[str, int], shipping: int
) -> tuple[dict[str, int], int]:
    """What to pay for each line and for shipping, in cents. Refuses amounts that contradict or exceed."""
    stated = None if arguments.amount is None else money.cents(arguments.amount)
    named = _named(arguments, limits)
    if arguments.refund_type == "full":
        if named and named != limits:
            raise Refused("A full refund pays the whole price of the items: leave the line amounts out.")
        by_item = limits
    elif named:
        by_item = named
    elif stated is None:
        most = money.text(sum(limits.values()) + shipping)
        raise Refused(f"A partial refund needs an amount; at most {most} can be paid.")
    else:
        return _spread(stated, limits, shipping)
    total = sum(by_item.values()) + shipping
    if stated not in (None, total):
        raise Refused(f"This refund comes to {money.text(total)}, not {money.text(stated or 0)}.")
    return by_item, shipping


def _named(arguments: args.IssueRefund, limits: dict[str, int]) -> dict[str, int]:
    """The amounts that the request names line by line."""
    asked = {line.item_id: line.amount for line in arguments.items or () if line.amount is not None}
    named = {i: money.cents(asked[i.upper()]) for i in limits if i.upper() in asked}
    for item_id, part in named.items():
        if part > limits[item_id]:
            most = money.text(limits[item_id])
            raise Refused(f"At most {most} can be paid for item {item_id}, not {money.text(part)}.")
    return named


def _spread(amount: int, limits: dict[str, int], shipping: int) -> tuple[dict[str, int], int]:
    """A sum divided over the lines by what each can bear, the rest over shipping."""
    for_items = min(amount, sum(limits.values()))
    if amount - for_items > shipping:
        most = money.text(sum(limits.values()) + shipping)
        raise Refused(f"At most {most} can be paid for these items, not {money.text(amount)}.")
    parts = money.split(for_items, list(limits.values()))
    return dict(zip(limits, parts, strict=True)), amount - for_items


def _write_off(state: OrderState, by_item: dict[str, int]) -> None:
    """What never arrived and is paid for cannot be returned or exchanged as well."""
    for item_id in by_item:
        item = state.item(item_id.upper())
        left = item.quantity - state.units(item)
        if left and state.carrier_status(item) in NEVER_ARRIVED:
            state.cases.append(
                Case(
                    case_id=state.new_id("RET"),
                    kind=RETURN,
                    claims=[state.claim(item, left, None)],
                    outcome=episode_pb2.OUTCOME_RETURN_REFUND_PARTIAL_BANK,
                    facts={"parcel": "none: it never arrived"},
                )
            )
