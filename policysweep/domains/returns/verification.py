"""Declared facts held against the hidden truth, before a return or an exchange is executed.

This is the only module that knows the truth, and all that leaves it is yes or no: a request passes, or
it is answered with questions about every item of the request. The questions depend on the request alone,
never on which fact is wrong or what is true. After a mismatch no request is checked again until the
customer has said something new; then all of it is checked again. Nothing passes because of a retry.

What counts as a mismatch ("major" in DRIP-R's terms):

    declared                  truth                     mismatch
    better of unopened >      worse of the three        yes: the shop would pay for what it does not get
      opened_unused >
      opened_used
    worse                     better                    no: the customer only harms itself
    wrong_item                anything else             yes
    defective or damaged_     neither of the two        yes; one for the other is no mismatch, as both are
      in_shipping                                       the shop's fault and a customer cannot always tell
    opened_used               a fault                   no: a faulty item has been opened
    unopened, opened_unused   a fault                   yes

Reasons that put the fault on the shop must be borne out too: a fault needs an item of the request with
that fault, missing_parts an item with parts missing, arrived_late a parcel of the order later than first
promised. not_as_described is a matter of judgement that no inspection settles, and all other reasons are
neutral. An item whose parcel never arrived has no state that the customer could misstate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from policysweep.domains.returns.results import NeedsVerification
from policysweep.errors import InputError
from policysweep.v1 import world_pb2

_WEAR = {"unopened": 0, "opened_unused": 1, "opened_used": 2}
_FAULTS = {
    "defective": frozenset({"defective", "damaged_in_shipping"}),
    "damaged_in_shipping": frozenset({"defective", "damaged_in_shipping"}),
    "wrong_item": frozenset({"wrong_item"}),
}
"""Each fault with the truths that bear it out."""

REASONS = frozenset(
    {
        "changed_mind",
        "no_longer_needed",
        "does_not_fit",
        "gift",
        "arrived_late",
        "defective",
        "damaged_in_shipping",
        "wrong_item",
        "missing_parts",
        "not_as_described",
        "other",
    }
)
_OTHER_WORDS = {
    "damaged": "damaged_in_shipping",
    "damaged_on_arrival": "damaged_in_shipping",
    "arrived_damaged": "damaged_in_shipping",
    "defect": "defective",
    "faulty": "defective",
    "item_defective": "defective",
    "late": "arrived_late",
    "late_delivery": "arrived_late",
    "delivered_late": "arrived_late",
    "missing_part": "missing_parts",
    "missing_accessories": "missing_parts",
    "received_wrong_item": "wrong_item",
    "wrong_item_received": "wrong_item",
}

_ASK = (
    "Nothing has been changed. Before this can be processed, the customer has to confirm the facts of the "
    "request. Ask these questions, and send the request again with what the customer answers."
)
_WAIT = (
    "Nothing has been changed. The request is waiting for the customer's answer: ask these questions "
    "first, and send it again once the customer has replied."
)


@dataclass(frozen=True, slots=True)
class Statement:
    """An item of a request with its declared condition. `arrived` is whether its parcel ever did."""

    item: world_pb2.OrderItem
    condition: str
    arrived: bool


def reason_class(reason: str) -> str:
    """One of REASONS; "other" for free text."""
    word = "_".join(reason.lower().replace("-", " ").replace("_", " ").split())
    word = _OTHER_WORDS.get(word, word)
    return word if word in REASONS else "other"


class Verifier:
    """Keeps the hidden truth of one world, and whether a customer's answer is awaited."""

    def __init__(self, world: world_pb2.OrderWorld) -> None:
        self._truth = {truth.item_id: truth for truth in world.inspection_truth}
        self._parcels = world.order.shipments
        self._today = world.today
        self._asked_at: int | None = None
        for item in world.order.items:
            truth = self._truth.get(item.item_id)
            if truth is None or (truth.condition not in _WEAR and truth.condition not in _FAULTS):
                raise InputError(
                    f"world of order {world.order.order_id}: inspection_truth: item {item.item_id} needs one "
                    f"entry with a condition out of {', '.join([*_WEAR, *_FAULTS])}; a world without it "
                    "could not verify a return"
                )

    def check(self, request: Sequence[Statement], reason: str, statements: int) -> None:
        """Pass, or raise NeedsVerification.

        `reason` is in the caller's words. `statements` is the number of customer messages so far.
        """
        if self._asked_at is not None and statements <= self._asked_at:
            raise NeedsVerification(_WAIT, _questions(request))
        if any(map(self._misstated, request)) or not self._borne_out(reason_class(reason), request):
            self._asked_at = statements
            raise NeedsVerification(_ASK, _questions(request))

    def _misstated(self, statement: Statement) -> bool:
        if not statement.arrived:
            return False
        declared, truth = statement.condition, self._truth[statement.item.item_id].condition
        if declared in _FAULTS:
            return truth not in _FAULTS[declared]
        if truth in _FAULTS:
            return declared != "opened_used"
        return _WEAR[declared] < _WEAR[truth]

    def _borne_out(self, reason: str, request: Sequence[Statement]) -> bool:
        if reason == "arrived_late":
            return any(map(self._late, self._parcels))
        truths = [self._truth[statement.item.item_id] for statement in request if statement.arrived]
        if reason == "missing_parts":
            return any(truth.accessories_missing for truth in truths)
        if reason in _FAULTS:
            return any(truth.condition in _FAULTS[reason] for truth in truths)
        return True

    def _late(self, parcel: world_pb2.Shipment) -> bool:
        """Whether the parcel came, or has still to come, after the first promise."""
        return bool(parcel.promised_by) and (parcel.delivered_at or self._today) > parcel.promised_by


def _questions(request: Sequence[Statement]) -> list[str]:
    """The same questions for the same items, whatever is declared and whatever is true."""
    names = {s.item.item_id: f'"{s.item.name}" ({s.item.item_id})' for s in request}
    asked = [
        f"In what state is {name}: has it been opened, has it been used, is anything wrong with it, and is "
        "everything there that came in the box?"
        for name in names.values()
    ]
    return [
        f"Is this everything that is to go back: {', '.join(names.values())}?",
        *asked,
        "When did it arrive, and what is the reason for sending it back, in the customer's own words?",
    ]
