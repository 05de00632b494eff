"""process_return: goods that go back, and the check that comes before it.

The division of labour: a return authorizes goods to come back and, where its outcome fixes the sum (full
refund, gift card), schedules the refund of the items' share. A partial refund is an amount that the agent
names, so it is left to issue_refund. Denial, escalation and withdrawal leave a case note and move nothing.
The stated facts are checked before anything changes, however the tool is reached.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from policysweep.domains.returns import arguments as args
from policysweep.domains.returns import money
from policysweep.domains.returns.paying import Written, send
from policysweep.domains.returns.reads import case_json, payment_json
from policysweep.domains.returns.reconcile import GRANTS
from policysweep.domains.returns.resolution import outcome_from_name
from policysweep.domains.returns.results import Json, Refused
from policysweep.domains.returns.state import (
    DELIVERED,
    EXCHANGE,
    NEVER_ARRIVED,
    RETURN,
    Case,
    Claim,
    OrderState,
)
from policysweep.domains.returns.verification import Statement, Verifier, reason_class
from policysweep.v1 import episode_pb2

_FULL = episode_pb2.OUTCOME_RETURN_REFUND_FULL_BANK
_GIFT = episode_pb2.OUTCOME_RETURN_REFUND_GIFT_CARD
_REPLACEMENT = episode_pb2.OUTCOME_REPLACEMENT_EXCHANGE


@dataclass(frozen=True, slots=True)
class Facts:
    """What the check of the stated facts needs beside the request."""

    verifier: Verifier
    statements: int
    """Customer messages so far."""


def process_return(state: OrderState, facts: Facts, arguments: args.ProcessReturn) -> Written:
    """Open a return, or note that there is none."""
    state.own(arguments.order_id, arguments.customer_id)
    outcome = outcome_from_name(arguments.resolution_type)
    for line in arguments.items_to_return:
        state.item(line.item_id)
    if outcome not in GRANTS:
        return _note(state, arguments), outcome
    claims = claim_lines(state, [(i.item_id, i.quantity, i.condition) for i in arguments.items_to_return])
    owed = owed_by_item(state, claims) if outcome in (_FULL, _GIFT) else {}
    state.check_payable(sum(owed.values()))
    facts.verifier.check(stated(state, claims), arguments.return_reason, facts.statements)
    case = Case(
        case_id=state.new_id("RET"),
        kind=EXCHANGE if outcome == _REPLACEMENT else RETURN,
        claims=claims,
        outcome=outcome,
        facts={
            "resolution_type": arguments.resolution_type,
            **reason_facts(arguments.return_reason, arguments.return_reason_details),
            **parcel_facts(state, claims, arguments.return_method),
        },
        open_leg=outcome == _REPLACEMENT,
    )
    state.cases.append(case)
    return _settle(state, case, owed, arguments.refund_method), state.settled()


def _settle(state: OrderState, case: Case, owed: dict[str, int], method: str | None) -> Json:
    """Schedule the refund where the outcome fixes the sum; otherwise say what comes next."""
    content: Json = {"return": case_json(case)}
    if case.outcome in (_FULL, _GIFT):
        method = method or ("gift_card" if case.outcome == _GIFT else "original_payment")
        refund = send(state, "return", method, by_item=owed, facts={"for": case.case_id})
        content["refund"] = payment_json(refund)
    elif case.open_leg:
        content["next_step"] = "Send the new item with process_exchange."
    else:
        content["refundable_at_most"] = money.dollars(sum(owed_by_item(state, case.claims).values()))
        content["next_step"] = "Nothing is paid yet: set the amount with issue_refund, refund_type partial."
    return content


def _note(state: OrderState, arguments: args.ProcessReturn) -> Json:
    note: Json = {
        "resolution_type": arguments.resolution_type,
        "items": [line.item_id for line in arguments.items_to_return],
        **reason_facts(arguments.return_reason, arguments.return_reason_details),
        "date": state.today,
    }
    state.case_notes.append(note)
    return {"case_note": note, "message": "Recorded on the order. No goods and no money move."}


def claim_lines(
    state: OrderState, lines: Iterable[tuple[str, int, str]], freed: Mapping[str, int] | None = None
) -> list[Claim]:
    """Claims on (item id, units, condition) lines. Refuses what is not there to be sent back.

    `freed` are units by item id whose earlier claim this request takes over.
    """
    asked = Counter({item_id: -units for item_id, units in (freed or {}).items()})
    claims = []
    for item_id, units, condition in lines:
        item = state.item(item_id)
        carried = state.carrier_status(item)
        if carried != DELIVERED and carried not in NEVER_ARRIVED:
            raise Refused(
                f"Item {item.item_id} has not been delivered yet (carrier status: {carried}), so it cannot "
                "be sent back. Items that have not left can be canceled with update_order."
            )
        claims.append(state.claim(item, units, condition, before=asked[item_id]))
        asked[item_id] += units
    return claims


def stated(state: OrderState, claims: Sequence[Claim]) -> list[Statement]:
    """The declared facts of a request."""
    return [
        Statement(claim.item, claim.condition or "", state.carrier_status(claim.item) == DELIVERED)
        for claim in claims
    ]


def owed_by_item(state: OrderState, claims: Sequence[Claim]) -> dict[str, int]:
    """What a new return is owed, in cents: its share of the price, less what its lines were paid before."""
    owed: Counter[str] = Counter()
    for claim in claims:
        owed[claim.item.item_id] += claim.value
    return {i: min(value, max(0, state.shares[i] - state.booked(i))) for i, value in owed.items()}


def reason_facts(reason: str, details: str | None) -> Json:
    """A reason as reads show it."""
    shown: Json = {"reason": reason, "reason_class": reason_class(reason)}
    return {**shown, "details": details} if details else shown


def parcel_facts(state: OrderState, claims: Sequence[Claim], method: str | None) -> Json:
    """How the goods come back; nothing travels for codes and for parcels that never arrived."""
    travelling = [
        claim.item
        for claim in claims
        if "digital_code" not in claim.item.tags and state.carrier_status(claim.item) == DELIVERED
    ]
    if not travelling:
        return {"parcel": "none: there is nothing to send back"}
    usual = "pickup" if any("large_item" in item.tags for item in travelling) else "drop_off"
    return {"return_method": method or usual, "label_id": state.new_id("LBL")}
