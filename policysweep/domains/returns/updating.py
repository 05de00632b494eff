"""update_order and apply_discount: changes of an order that are not returns."""

from __future__ import annotations

from decimal import Decimal

from policysweep.domains.returns import arguments as args
from policysweep.domains.returns import money
from policysweep.domains.returns.paying import Written, send
from policysweep.domains.returns.reads import case_json, payment_json
from policysweep.domains.returns.results import Json, Refused
from policysweep.domains.returns.returning import owed_by_item
from policysweep.domains.returns.state import CANCELLATION, DELIVERED, NOT_SENT, Case, OrderState
from policysweep.v1 import episode_pb2, world_pb2

_UNSETTLED = episode_pb2.OUTCOME_UNSPECIFIED


def update_order(state: OrderState, arguments: args.UpdateOrder) -> Written:
    """Redirect, instruct, shrink or cancel what has not left yet."""
    state.own(arguments.order_id, arguments.customer_id)
    if arguments.update_type == "shipping_address":
        return _redirect(state, arguments.new_address_label), _UNSETTLED
    if arguments.update_type == "delivery_instructions":
        return _instruct(state, arguments.delivery_instructions), _UNSETTLED
    if arguments.update_type == "cancel_order":
        return _cancel(state, {i.item_id: _left(state, i) for i in state.order.items if _left(state, i)})
    if arguments.item_id is None:
        raise Refused(f"{arguments.update_type} needs item_id.")
    item = state.item(arguments.item_id)
    left = _left(state, item)
    if arguments.update_type == "cancel_item":
        return _cancel(state, {item.item_id: left} if left else {})
    kept = arguments.new_quantity
    if kept is None or kept >= left:
        raise Refused(
            f"quantity needs a new_quantity below the {left} unit(s) on order; more units are a new order."
        )
    return _cancel(state, {item.item_id: left - kept})


def _left(state: OrderState, item: world_pb2.OrderItem) -> int:
    return item.quantity - state.units(item)


def _redirect(state: OrderState, label: str | None) -> Json:
    if all(parcel.carrier_status != NOT_SENT for parcel in state.order.shipments):
        raise Refused("Every parcel of this order has left; its address can no longer be changed.")
    on_file = {address.label.casefold(): address for address in state.customer.addresses}
    address = on_file.get((label or "").casefold())
    if address is None:
        labels = [known.label for known in state.customer.addresses]
        raise Refused(f"new_address_label must be an address on file, not {label!r}.", addresses=labels)
    state.new_address = address
    waiting = [parcel.shipment_id for parcel in state.order.shipments if parcel.carrier_status == NOT_SENT]
    return {"ship_to": address.label, "shipments": waiting}


def _instruct(state: OrderState, instructions: str | None) -> Json:
    if instructions is None:
        raise Refused("delivery_instructions is missing.")
    if all(parcel.carrier_status == DELIVERED for parcel in state.order.shipments):
        raise Refused("Every parcel of this order has been delivered.")
    state.delivery_instructions = instructions
    return {"delivery_instructions": instructions}


def _cancel(state: OrderState, units: dict[str, int]) -> Written:
    """Cancel units of lines that have not left; their share of the price goes back as it was paid."""
    if not units:
        raise Refused("Nothing is left to cancel.")
    claims = []
    for item_id, count in units.items():
        item = state.item(item_id.upper())
        carried = state.carrier_status(item)
        if carried != NOT_SENT:
            raise Refused(
                f"Item {item_id} can no longer be canceled (carrier status: {carried}). "
                "What was delivered can be returned with process_return."
            )
        claims.append(state.claim(item, count, None))
    owed = owed_by_item(state, claims)
    whole_order = sum(units.values()) == sum(_left(state, item) for item in state.order.items)
    shipping = state.shipping_payable if whole_order else 0
    state.check_payable(sum(owed.values()) + shipping)
    case = Case(
        case_id=state.new_id("CAN"),
        kind=CANCELLATION,
        claims=claims,
        outcome=episode_pb2.OUTCOME_RETURN_REFUND_FULL_BANK,
        facts={"date": state.today},
    )
    state.cases.append(case)
    refund = send(
        state,
        "cancellation",
        "original_payment",
        by_item=owed,
        shipping=shipping,
        facts={"for": case.case_id},
    )
    return {"cancellation": case_json(case), "refund": payment_json(refund)}, state.settled()


def apply_discount(state: OrderState, arguments: args.ApplyDiscount) -> Written:
    """Lower the price of an order that is paid: the difference goes back as it was paid."""
    state.own(arguments.order_id, arguments.customer_id)
    lines = _discounted(state, arguments)
    shipping = 0 if lines else state.shipping_payable
    base = sum(lines.values()) + shipping
    amount = shipping if arguments.discount_type == "free_shipping" else _discount(arguments, base)
    if not amount or amount > base:
        raise Refused(
            f"At most {money.text(base)} can be taken off here, and more than nothing; "
            f"this discount comes to {money.text(amount)}."
        )
    parts = money.split(min(amount, sum(lines.values())), list(lines.values()))
    by_item = dict(zip(lines, parts, strict=True))
    facts: Json = {
        "discount_type": arguments.discount_type,
        "apply_to": arguments.apply_to,
        "code": arguments.code,
        "reason": arguments.reason,
        "overrides_policy": arguments.override_policy,
    }
    discount = send(
        state,
        "discount",
        "original_payment",
        by_item=by_item,
        shipping=amount - sum(parts),
        facts={name: value for name, value in facts.items() if value},
    )
    return {"discount": payment_json(discount)}, state.settled()


def _discounted(state: OrderState, arguments: args.ApplyDiscount) -> dict[str, int]:
    """The lines that a discount lowers, with what is left of each one's price in cents; none for shipping."""
    if arguments.apply_to == "shipping" or arguments.discount_type == "free_shipping":
        return {}
    if arguments.apply_to == "item" and not arguments.item_ids:
        raise Refused("apply_to item needs item_ids.")
    named = arguments.item_ids if arguments.apply_to == "item" else None
    lines = [state.item(i) for i in dict.fromkeys(named)] if named else state.order.items
    return {i.item_id: max(0, state.shares[i.item_id] - state.booked(i.item_id)) for i in lines}


def _discount(arguments: args.ApplyDiscount, base: int) -> int:
    """The discount in cents; for a percentage out of `base`."""
    if arguments.value is None:
        raise Refused(f"A discount of type {arguments.discount_type} needs a value.")
    if arguments.discount_type != "percentage":
        return money.cents(arguments.value)
    if arguments.value > Decimal(100):
        raise Refused("A percentage is at most 100.")
    return round(base * arguments.value / 100)
