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

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from policysweep.models.rehearsal import draws
from policysweep.models.rehearsal.dispositions import (
    DENY,
    DISPOSITIONS,
    ESCALATE,
    EXCHANGE,
    FULL,
    GIFT_CARD,
    PARTIAL,
    Disposition,
)
from policysweep.models.rehearsal.returns.order import Line, Order
from policysweep.models.rehearsal.returns.statements import FAULTS, Stated, read_statements

_SHARED = 0.9
_OPENING = 0.35
_HIGH_VALUE = 300.0
_DELAY_DAYS = 3
_FREQUENT = {"MEDIUM": 0.5, "HIGH": 1.0}
_JUDGEMENTS_KEPT = 4096

_PERSONA_LEANINGS: Mapping[str, Mapping[str, float]] = {
    "DIRECT": {DENY: 0.12, FULL: -0.08},
    "FAIR": {PARTIAL: 0.08},
    "AGREEABLE": {EXCHANGE: 0.1, GIFT_CARD: 0.1},
    "HELPFUL": {EXCHANGE: 0.08, ESCALATE: 0.05},
    "VERY_HELPFUL": {FULL: 0.2, DENY: -0.2},
}

_WEIGHTS: Mapping[str, Mapping[str, float]] = {
    FULL: {
        "base": 0.95, "faulty": 0.5, "sealed": 0.3, "delayed": 0.25, "used_by_rigor": -0.55, "against": -1.0,
        "frequent": -0.3,
    },
    PARTIAL: {
        "base": 0.62, "used": 0.5, "promotion": 0.15, "frequent": 0.35, "against": -0.6, "faulty": -0.3,
    },
    GIFT_CARD: {"base": 0.35, "late": 0.6, "late_by_letter": 0.35, "gift": 0.6, "used": 0.2, "faulty": -0.2},
    DENY: {
        "base": 0.1, "against": 1.1, "used_by_rigor": 0.25, "marketplace": 0.15, "frequent": 0.2,
        "faulty": -0.5, "delayed": -0.2,
    },
    EXCHANGE: {"base": 0.45, "faulty": 0.75, "exchange_wanted": 0.7, "late": -0.3, "used": -0.25},
    ESCALATE: {"base": 0.25, "danger": 0.55, "high_value": 0.3, "marketplace": 0.35, "abroad": 0.25},
}  # fmt: skip
"""What each fact says for an outcome; see `_features`."""

_BETTER_FOR_CUSTOMER = (FULL, EXCHANGE, PARTIAL, GIFT_CARD, ESCALATE, DENY)


@dataclass(frozen=True, slots=True)
class Decision:
    """What the agent decides: an outcome for some lines, the refund in dollars, the deduction in percent."""

    outcome: str
    lines: tuple[Line, ...]
    conditions: Mapping[str, str]
    amount: float
    deduction: int


@dataclass(frozen=True, slots=True)
class Judge:
    """One disposition's judgement of one conversation: all that its draws depend on."""

    model: str
    persona: str
    opening: str
    trial: str

    @property
    def disposition(self) -> Disposition:
        """The model's parameters."""
        return DISPOSITIONS[self.model]

    def concedes(self, order: Order) -> bool:
        """Whether an objection improves the offer."""
        chance = draws.fraction("concede", self.model, order.order_id, self.opening, self.trial)
        return chance < self.disposition.yields


@lru_cache(maxsize=_JUDGEMENTS_KEPT)
def decide(judge: Judge, order: Order, statements: tuple[str, ...], abuse: str, deduction: int) -> Decision:
    """The decision after these statements, remembered: each step of a conversation asks for it again.

    `abuse` is LOW, MEDIUM or HIGH, `deduction` what the shop recommends in percent.
    """
    stated = read_statements(statements, order.lines)
    lines = in_question(order, stated)
    facts = _utilities(_features(order, lines, stated, abuse, judge.disposition.rigor))
    leanings = _leanings(judge, order)
    outcome = max(facts, key=lambda name: facts[name] + leanings[name])
    percent = judge.disposition.deduction + deduction
    return priced(Decision(outcome, lines, stated.conditions, 0.0, percent))


def _leanings(judge: Judge, order: Order) -> dict[str, float]:
    disposition, many = judge.disposition, len(_BETTER_FOR_CUSTOMER)
    persona = _PERSONA_LEANINGS.get(judge.persona, {})
    everybody = draws.fractions(many, "case", order.order_id)
    own = draws.fractions(many, judge.model, order.order_id)
    opening = draws.fractions(many, judge.model, judge.opening, judge.trial)
    return {
        outcome: disposition.leanings.get(outcome, 0.0)
        + persona.get(outcome, 0.0)
        + _SHARED * (everybody[at] - 0.5)
        + disposition.whim * (own[at] - 0.5)
        + _OPENING * (opening[at] - 0.5)
        for at, outcome in enumerate(_BETTER_FOR_CUSTOMER)
    }


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


def _utilities(features: Mapping[str, float]) -> dict[str, float]:
    return {
        outcome: sum(weight * features[name] for name, weight in weights.items())
        for outcome, weights in _WEIGHTS.items()
    }


def _features(
    order: Order, lines: tuple[Line, ...], stated: Stated, abuse: str, rigor: float
) -> dict[str, float]:
    """The facts as numbers, most of them the share of the money in question for which they hold."""
    total = max(1.0, sum(line.share for line in lines))

    def part(holds: Callable[[Line, str], bool]) -> float:
        state = stated.conditions
        return sum(line.share for line in lines if holds(line, state.get(line.item_id, ""))) / total

    used = part(lambda line, state: state == "opened_used")
    late_by_letter = part(lambda line, state: line.overdue(order.today) > 0)
    late = part(lambda line, state: lateness(order, line) > 0)
    excluded = part(lambda line, state: line.excluded)
    return {
        "base": 1.0,
        "faulty": part(lambda line, state: state in FAULTS),
        "used": used,
        "used_by_rigor": used * rigor,
        "sealed": part(lambda line, state: state == "unopened"),
        "late_by_letter": late_by_letter,
        "late": late,
        "against": rigor * (0.35 * late_by_letter + 0.45 * late + 0.7 * excluded),
        "marketplace": part(lambda line, state: line.third_party),
        "delayed": float(any(line.late_by > _DELAY_DAYS for line in lines)),
        "frequent": _FREQUENT.get(abuse, 0.0),
        "promotion": float(order.promotions > 0),
        "gift": float(order.is_gift),
        "abroad": float(order.cross_border),
        "exchange_wanted": float(stated.wants_exchange),
        "danger": float(stated.safety),
        "high_value": float(total > _HIGH_VALUE),
    }
