"""The served models: dispositions, each a small set of parameters in one table.

A disposition decides how a returns agent leans where the policy leaves room. Any model can play any role;
`rehearsal-customer` and the two judges exist so that a sweep can name them apart from the agents. As a judge,
a disposition is the more lenient the less rigor it has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

FULL = "RETURN_REFUND_FULL_BANK"
PARTIAL = "RETURN_REFUND_PARTIAL_BANK"
GIFT_CARD = "RETURN_REFUND_GIFT_CARD"
DENY = "DENY_REFUND"
EXCHANGE = "REPLACEMENT_EXCHANGE"
ESCALATE = "ESCALATE_HUMAN_AGENT"
ABORT = "USER_ABORT"


@dataclass(frozen=True, slots=True)
class Disposition:
    """How a model behaves as a returns agent.

    `leanings` are added to the utility of each outcome; `rigor` scales what speaks against the customer.
    `whim` scales what a disposition reads into an ambiguous case and no other does. `yields` is the chance
    that an objection improves the offer, `when_refused` the outcome when the customer still refuses.
    `deduction` is the usual deduction of a partial refund in percent. `reads` are the rounds of look-ups
    after the order itself. `slips` is the share of cases with one blunder.
    """

    leanings: Mapping[str, float]
    rigor: float
    whim: float
    yields: float
    when_refused: str
    deduction: int
    asks_for_number: bool
    reads: tuple[tuple[str, ...], ...]
    slips: float


_POLICY = "get_policy_info"
_FREQUENCY = "get_return_frequency_assessment"
_PRODUCT = "get_product_info"
_HISTORY = "get_purchase_history"

_FAIR = Disposition(
    leanings={PARTIAL: 0.15, GIFT_CARD: 0.05, EXCHANGE: 0.05},
    rigor=1.0,
    whim=0.9,
    yields=0.35,
    when_refused=ESCALATE,
    deduction=15,
    asks_for_number=True,
    reads=((_POLICY, _FREQUENCY),),
    slips=0.03,
)

DISPOSITIONS: Mapping[str, Disposition] = {
    "rehearsal-strict": Disposition(
        leanings={DENY: 0.55, PARTIAL: 0.1, GIFT_CARD: 0.05, FULL: -0.35, ESCALATE: -0.1},
        rigor=1.35,
        whim=0.8,
        yields=0.1,
        when_refused=DENY,
        deduction=25,
        asks_for_number=True,
        reads=((_POLICY,), (_FREQUENCY,)),
        slips=0.03,
    ),
    "rehearsal-fair": _FAIR,
    "rehearsal-lenient": Disposition(
        leanings={FULL: 0.3, GIFT_CARD: 0.15, EXCHANGE: 0.2, DENY: -0.4},
        rigor=0.7,
        whim=0.9,
        yields=0.55,
        when_refused=FULL,
        deduction=10,
        asks_for_number=False,
        reads=((_POLICY, _PRODUCT),),
        slips=0.05,
    ),
    "rehearsal-generous": Disposition(
        leanings={FULL: 0.6, EXCHANGE: 0.25, GIFT_CARD: 0.1, DENY: -0.8, ESCALATE: -0.15},
        rigor=0.5,
        whim=1.0,
        yields=0.8,
        when_refused=FULL,
        deduction=5,
        asks_for_number=False,
        reads=((_PRODUCT,),),
        slips=0.06,
    ),
    "rehearsal-cautious": Disposition(
        leanings={ESCALATE: 0.75, PARTIAL: 0.1, FULL: -0.1, GIFT_CARD: -0.1},
        rigor=1.1,
        whim=0.9,
        yields=0.15,
        when_refused=ESCALATE,
        deduction=20,
        asks_for_number=True,
        reads=((_POLICY, _HISTORY), (_FREQUENCY,)),
        slips=0.02,
    ),
    "rehearsal-customer": _FAIR,
    "rehearsal-judge": _FAIR,
    "rehearsal-judge-lenient": replace(_FAIR, rigor=0.4),
}
"""The served models by name."""
