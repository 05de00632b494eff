"""From the facts of a case to an outcome: a random-utility model.

    utility(outcome) = what the facts say for it
                     + how the disposition and the agent persona lean
                     + how this order strikes everybody       (a draw per order and outcome)
                     + how this disposition reads the clauses (a draw per order, outcome and disposition)
                     + the wording of the opening             (a small draw per conversation)

The largest utility wins. The shared terms keep the dispositions from being independent, the others keep
them from agreeing, as published results have it: models that share a policy seldom share its reading.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from policysweep.models.rehearsal import draws
from policysweep.models.rehearsal.dispositions import (
    DENY,
    ESCALATE,
    EXCHANGE,
    FULL,
    GIFT_CARD,
    PARTIAL,
    Disposition,
)
from policysweep.models.rehearsal.returns.order import Line, Order
from policysweep.models.rehearsal.returns.statements import FAULTS, Stated

_SHARED = 0.9
_OPENING = 0.35
_HIGH_VALUE = 300.0

_PERSONA_LEANINGS: Mapping[str, Mapping[str, float]] = {
    "DIRECT": {DENY: 0.12, FULL: -0.08},
    "FAIR": {PARTIAL: 0.08},
    "AGREEABLE": {EXCHANGE: 0.1, GIFT_CARD: 0.1},
    "HELPFUL": {EXCHANGE: 0.08, ESCALATE: 0.05},
    "VERY_HELPFUL": {FULL: 0.2, DENY: -0.2},
}

_BETTER_FOR_CUSTOMER = (FULL, EXCHANGE, PARTIAL, GIFT_CARD, ESCALATE, DENY)


@dataclass(frozen=True, slots=True)
class Decision:
    """What the agent decides: an outcome for some lines, with the refund in dollars and the deduction in percent."""

    outcome: str
    lines: tuple[Line, ...]
    conditions: Mapping[str, str]
    amount: float
    deduction: int


@dataclass(frozen=True, slots=True)
class Judge:
    """One disposition's judgement of one case. `key` holds what its draws depend on."""

    disposition: Disposition
    model: str
    persona: str
    opening: str
    trial: str

    def decide(self, order: Order, stated: Stated, abuse: str, deduction: int) -> Decision:
        """The decision; `abuse` is LOW, MEDIUM or HIGH, `deduction` what the shop recommends in percent."""
        lines = in_question(order, stated)
        facts = _utilities(order, lines, stated, abuse, self.disposition.rigor)
        outcome = max(facts, key=lambda name: facts[name] + self._leaning(order, name))
        percent = self.disposition.deduction + deduction
        return priced(Decision(outcome, lines, stated.conditions, 0.0, percent))

    def _leaning(self, order: Order, outcome: str) -> float:
        chance = draws.fraction
        return (
            self.disposition.leanings.get(outcome, 0.0)
            + _PERSONA_LEANINGS.get(self.persona, {}).get(outcome, 0.0)
            + _SHARED * (chance("case", order.order_id, outcome) - 0.5)
            + self.disposition.whim * (chance(self.model, order.order_id, outcome) - 0.5)
            + _OPENING * (chance(self.model, self.opening, self.trial, outcome) - 0.5)
        )

    def concedes(self, order: Order) -> bool:
        """Whether an objection improves the offer."""
        return (
            draws.fraction("concede", self.model, order.order_id, self.opening, self.trial)
            < self.disposition.yields
        )


def priced(decision: Decision) -> Decision:
    """The decision with its amount: the share of what was paid, less the deduction of a partial refund."""
    share = sum(line.share for line in decision.lines)
    kept = 1 - decision.deduction / 100 if decision.outcome == PARTIAL else 1.0
    return replace(decision, amount=round(share * kept, 2))


def conceded(decision: Decision) -> Decision:
    """The next better offer."""
    better = {DENY: GIFT_CARD, GIFT_CARD: PARTIAL, PARTIAL: FULL}.get(decision.outcome, decision.outcome)
    return priced(replace(decision, outcome=better))


def is_worse(outcome: str, than: str) -> bool:
    """Whether the customer is worse off."""
    return _BETTER_FOR_CUSTOMER.index(outcome) > _BETTER_FOR_CUSTOMER.index(than)


def in_question(order: Order, stated: Stated) -> tuple[Line, ...]:
    """The lines that are to go back: those that cost something and are not to be kept."""
    paid = [line for line in order.lines if line.share > 0 and line.item_id not in stated.kept]
    return tuple(paid or [line for line in order.lines if line.share > 0] or order.lines)


def lateness(order: Order, line: Line) -> int:
    """Days past the window after the kindest reading of its start; 0 when in time."""
    if order.holiday:
        return 0
    return line.overdue(order.today, order.latest_delivery)


def _utilities(
    order: Order, lines: tuple[Line, ...], stated: Stated, abuse: str, rigor: float
) -> dict[str, float]:
    states = [stated.conditions.get(line.item_id, "opened_unused") for line in lines]
    total = max(1.0, sum(line.share for line in lines))

    def part(share_of: list[bool]) -> float:
        return sum(line.share for line, holds in zip(lines, share_of, strict=True) if holds) / total

    faulty = part([state in FAULTS for state in states])
    used = part([state == "opened_used" for state in states])
    sealed = part([state == "unopened" for state in states])
    strictly_late = part([line.overdue(order.today) > 0 for line in lines])
    late = part([lateness(order, line) > 0 for line in lines])
    excluded = part([line.excluded for line in lines])
    seller = part([line.third_party for line in lines])
    delayed = float(any(line.late_by > 3 for line in lines))
    frequent = {"MEDIUM": 0.5, "HIGH": 1.0}.get(abuse, 0.0)
    against = rigor * (0.35 * strictly_late + 0.45 * late + 0.7 * excluded)
    return {
        FULL: 0.95
        + 0.5 * faulty
        + 0.3 * sealed
        + 0.25 * delayed
        - 0.55 * used * rigor
        - against
        - 0.3 * frequent,
        PARTIAL: 0.62
        + 0.5 * used
        + 0.15 * (order.promotions > 0)
        + 0.35 * frequent
        - 0.6 * against
        - 0.3 * faulty,
        GIFT_CARD: 0.35 + 0.6 * late + 0.35 * strictly_late + 0.6 * order.is_gift + 0.2 * used - 0.2 * faulty,
        DENY: 0.1
        + 1.1 * against
        + 0.25 * used * rigor
        + 0.15 * seller
        + 0.2 * frequent
        - 0.5 * faulty
        - 0.2 * delayed,
        EXCHANGE: 0.45 + 0.75 * faulty + 0.7 * stated.wants_exchange - 0.3 * late * rigor - 0.25 * used,
        ESCALATE: 0.25
        + 0.55 * stated.safety
        + 0.3 * (total > _HIGH_VALUE)
        + 0.35 * seller
        + 0.25 * order.cross_border,
    }
