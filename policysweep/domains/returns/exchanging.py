"""process_exchange: goods that go back, and what goes out for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from policysweep.domains.returns import arguments as args
from policysweep.domains.returns import money
from policysweep.domains.returns.paying import Written, send
from policysweep.domains.returns.products import alternatives
from policysweep.domains.returns.reads import case_json, payment_json
from policysweep.domains.returns.results import Json, Refused
from policysweep.domains.returns.returning import (
    Facts,
    claim_lines,
    owed_by_item,
    parcel_facts,
    reason_facts,
    stated,
)
from policysweep.domains.returns.state import EXCHANGE, Case, Claim, OrderState
from policysweep.v1 import episode_pb2


def process_exchange(state: OrderState, facts: Facts, arguments: args.ProcessExchange) -> Written:
    """Take items back and send others out for them. Takes over open return legs of the same items.

    The originals bring their share of what was paid, the new items cost today's price.
    """
    state.own(arguments.order_id, arguments.customer_id)
    lines = arguments.items_to_exchange
    legs = _open_legs(state, {line.original_item_id for line in lines})
    claims = claim_lines(
        state, [(i.original_item_id, i.original_quantity, i.condition) for i in lines], _units(legs)
    )
    sent_out = _sent_out(state, lines)
    owed = owed_by_item(state, claims)
    difference = _new_price(state, lines) - sum(owed.values())
    _check_difference(state, difference, arguments.price_difference)
    facts.verifier.check(stated(state, claims), arguments.exchange_reason, facts.statements)
    case = _book(state, arguments, claims, legs, difference)
    case.facts = {"sent_out": sent_out, **case.facts}
    content: Json = {"exchange": case_json(case)}
    if difference < 0 and arguments.price_difference == "refund_difference":
        parts = money.split(-difference, list(owed.values()))
        by_item = dict(zip(owed, parts, strict=True))
        refund = send(
            state, "price_difference", "original_payment", by_item=by_item, facts={"for": case.case_id}
        )
        content["refund"] = payment_json(refund)
    return content, state.settled()


def _open_legs(state: OrderState, item_ids: set[str]) -> list[tuple[Case, Claim]]:
    """Claims of open return legs on these items, each with its case."""
    return [
        (case, claim)
        for case in state.cases
        if case.open_leg
        for claim in case.claims
        if claim.item.item_id.upper() in item_ids
    ]


def _units(legs: Sequence[tuple[Case, Claim]]) -> Counter[str]:
    units: Counter[str] = Counter()
    for _, claim in legs:
        units[claim.item.item_id.upper()] += claim.units
    return units


def _sent_out(state: OrderState, lines: Sequence[args.ItemToExchange]) -> list[Json]:
    """What goes out. Refuses more of a product than is in stock, over all lines together."""
    wanted: Counter[str] = Counter()
    shown: list[Json] = []
    for line in lines:
        product, _ = state.stock(line.new_product_id)
        for key in {line.new_product_id, product.product_id.upper()}:
            wanted[key] += line.new_quantity
            available = state.stock(key)[1]
            if wanted[key] > available:
                raise Refused(
                    f"{product.name} ({key}) has {available} unit(s) in stock, not {wanted[key]}.",
                    restock_date=product.stock.restock_date or None,
                    alternatives=alternatives(state, product, line.new_quantity),
                )
        shown.append({"product_id": line.new_product_id, "name": product.name, "quantity": line.new_quantity})
    return shown


def _new_price(state: OrderState, lines: Sequence[args.ItemToExchange]) -> int:
    """What the new items cost today, in cents."""
    return sum(money.cents(state.stock(i.new_product_id)[0].price) * i.new_quantity for i in lines)


def _check_difference(state: OrderState, difference: int, settled_by: str | None) -> None:
    """Refuse to leave a difference in price open, or to settle it the wrong way round."""
    if not difference:
        return
    fitting = "charge_customer" if difference > 0 else "refund_difference"
    if settled_by not in (fitting, "waive_difference"):
        verb = "more" if difference > 0 else "less"
        raise Refused(
            f"The new items cost {money.text(abs(difference))} {verb} than the originals bring: set "
            f"price_difference to {fitting} or waive_difference.",
            price_difference=money.dollars(difference),
        )
    if settled_by == "refund_difference":
        state.check_payable(-difference)


def _book(
    state: OrderState,
    arguments: args.ProcessExchange,
    claims: list[Claim],
    legs: Sequence[tuple[Case, Claim]],
    difference: int,
) -> Case:
    """Close the legs that are taken over, reserve the new items, and book the exchange."""
    for case, claim in legs:
        case.claims.remove(claim)
        case.open_leg = bool(case.claims)
    state.cases = [case for case in state.cases if case.claims]
    for line in arguments.items_to_exchange:
        state.reserve(line.new_product_id, line.new_quantity)
    exchange = Case(
        case_id=state.new_id("EXC"),
        kind=EXCHANGE,
        claims=claims,
        outcome=episode_pb2.OUTCOME_REPLACEMENT_EXCHANGE,
        facts={
            "price_difference": money.dollars(difference),
            **({"settled_by": arguments.price_difference} if difference else {}),
            "ships_before_return": arguments.ship_before_return,
            **reason_facts(arguments.exchange_reason, arguments.exchange_reason_details),
            **parcel_facts(state, claims, arguments.return_method),
        },
    )
    state.cases.append(exchange)
    return exchange
