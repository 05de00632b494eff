"""What the returns agent says, in the voice of the agent persona that it was given.

A message is an opener and a closer of the persona around a core that carries the facts (texts.py). The cores
name amounts and days, because that is what customers react to and judges look for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from policysweep.models.rehearsal import draws
from policysweep.models.rehearsal.dispositions import DENY
from policysweep.models.rehearsal.request import Json
from policysweep.models.rehearsal.returns import texts
from policysweep.models.rehearsal.returns.judgement import Decision, lateness
from policysweep.models.rehearsal.returns.order import Line, Order

_PERSONA_HEAD = "## How you are asked to behave"
_PERSONA = re.compile(r"\b(VERY[_ ]HELPFUL|DIRECT|FAIR|AGREEABLE|HELPFUL)\b")
_DEFAULT_PERSONA = "FAIR"
_METHODS = {"credit_card": "credit card", "debit_card": "debit card", "bank_transfer": "bank account"}
_STATES = {
    "unopened": "is unopened",
    "opened_unused": "has been opened but not used",
    "opened_used": "has been used",
    "defective": "has a defect",
    "damaged_in_shipping": "was damaged on the way",
    "wrong_item": "is not what was ordered",
}
_MOST_NAMED = 3


def persona_of(system_text: str) -> str:
    """The agent persona that the system message names; FAIR when it names none."""
    start = system_text.rfind(_PERSONA_HEAD)
    found = _PERSONA.search(system_text, start + len(_PERSONA_HEAD)) if start >= 0 else None
    return found[1].replace(" ", "_") if found else _DEFAULT_PERSONA


@dataclass(frozen=True, slots=True)
class Speech:
    """One agent's way of speaking: `key` is what the choices are drawn from, `turn` counts its messages."""

    persona: str
    key: str
    turn: int

    def ask_number(self) -> str:
        """Ask for the order number."""
        return self._voiced(texts.OPENERS, self._next(texts.ASK_NUMBER))

    def clarify(self, lines: Sequence[Line]) -> str:
        """Ask about the state of the items."""
        return self._voiced(texts.OPENERS, texts.CLARIFY[self.persona].format(items=_names(lines)))

    def verify(self, questions: Sequence[str]) -> str:
        """Put the system's questions."""
        return self._next(texts.VERIFY).format(questions=" ".join(filter(None, questions)))

    def propose(self, order: Order, decision: Decision, replacement: str, *, revised: bool) -> str:
        """Propose a decision."""
        core = texts.PROPOSALS[decision.outcome].format_map(_facts(order, decision, replacement))
        return self._voiced(texts.OPENERS, f"{texts.REVISION} {core}" if revised else core)

    def insist(self, order: Order, decision: Decision, replacement: str) -> str:
        """Answer an objection with the same offer."""
        core = texts.INSISTENCE[decision.outcome].format_map(_facts(order, decision, replacement))
        return self._voiced(texts.INSISTENCE_OPENERS, core)

    def concede(self, order: Order, decision: Decision, replacement: str) -> str:
        """Answer an objection with a better offer."""
        facts = _facts(order, decision, replacement) | {"grounds": texts.CONCESSION}
        return self._voiced(texts.OPENERS, texts.PROPOSALS[decision.outcome].format_map(facts))

    def _voiced(self, openers: Mapping[str, tuple[str, ...]], core: str) -> str:
        parts = (self._next(openers[self.persona]), core, self._next(texts.CLOSERS[self.persona]))
        return " ".join(part for part in parts if part)

    def _next(self, options: Sequence[str]) -> str:
        """Options take turns, so that no phrase comes twice in a row."""
        return options[(draws.number(self.key) + self.turn) % len(options)]


def resolution(order: Order, decision: Decision, replacement: str) -> Json:
    """Arguments of declare_resolution for a decision."""
    facts = _facts(order, decision, replacement)
    interpretation = texts.INTERPRETATIONS[decision.outcome].format_map(facts)
    trade_off = texts.TRADE_OFFS[decision.outcome]
    return {
        "resolution_type": decision.outcome,
        "description": f"CONFLICT: {facts['grounds']} INTERPRETATION: {interpretation} TRADE-OFF: "
        f"{trade_off}",
        "conditions": list(texts.CONDITIONS.get(decision.outcome, ())),
        "customer_next_steps": list(texts.NEXT_STEPS.get(decision.outcome, texts.NEXT_STEPS[DENY])),
        "message": texts.CLOSING[decision.outcome].format_map(facts),
    }


def _facts(order: Order, decision: Decision, replacement: str) -> dict[str, object]:
    """What the texts are filled with."""
    return {
        "grounds": _grounds(order, decision),
        "amount": _money(decision.amount),
        "share": _money(sum(line.share for line in decision.lines)),
        "items": _names(decision.lines),
        "method": _METHODS.get(order.method, order.method.replace("_", " ")),
        "deduction": decision.deduction,
        "replacement": replacement or "the same product",
    }


def _grounds(order: Order, decision: Decision) -> str:
    """The facts that the decision turns on: the latest window and the state of the items."""

    def weight(line: Line) -> tuple[int, float]:
        return line.overdue(order.today), line.share

    told = [
        f"the {line.name} {_STATES[decision.conditions.get(line.item_id, 'opened_unused')]}"
        for line in decision.lines[:_MOST_NAMED]
    ]
    return f"{_window(order, max(decision.lines, key=weight))} As I understand you, {_joined(told)}."


def _window(order: Order, line: Line) -> str:
    if line.delivered is None:
        return f"There is no delivery date on file for the {line.name}."
    end = _day(line.delivered + timedelta(days=line.window))
    text = f"The window of {line.window} days for the {line.name}, delivered on {_day(line.delivered)},"
    days = line.overdue(order.today)
    if days == 0:
        return f"{text} runs until {end}."
    kinder = (
        "" if lateness(order, line) else ", though a kinder reading of its start or its end could save it"
    )
    return f"{text} ended on {end}, {days} days ago{kinder}."


def _names(lines: Sequence[Line]) -> str:
    return _joined([f"the {line.name}" for line in lines])


def _joined(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _money(amount: float) -> str:
    return f"${amount:,.2f}"


def _day(day: date) -> str:
    return f"{day:%B} {day.day}"
