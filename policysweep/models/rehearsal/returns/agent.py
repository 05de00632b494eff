"""The returns agent's script: one step from the conversation so far to the next message or call.

    order unknown    -> ask for the number, or look up the order
    order known      -> the disposition's look-ups, then one question about the state of the items
    items described  -> judge, look up stock if a replacement is due, propose with figures
    customer replies -> insist or concede once; then act
    check failed     -> put the system's questions; judge again with the answer; twice failed: escalate
    writes done      -> declare the outcome

A few cases hold one blunder of the kind that models commit: a repeated look-up, a tool that does not exist,
or a declaration without the write that it needs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from policysweep.models.rehearsal import draws
from policysweep.models.rehearsal.consulting import consult
from policysweep.models.rehearsal.dispositions import (
    DENY,
    DISPOSITIONS,
    ESCALATE,
    EXCHANGE,
    Disposition,
)
from policysweep.models.rehearsal.draft import Draft, ToolUse
from policysweep.models.rehearsal.request import Json, ParsedRequest
from policysweep.models.rehearsal.returns import acting, texts
from policysweep.models.rehearsal.returns.case_file import ORDER_TOOL, CaseFile, read_case
from policysweep.models.rehearsal.returns.deciding import STOCK_TOOL, Deliberation
from policysweep.models.rehearsal.returns.judgement import Decision, Judge, is_worse, priced
from policysweep.models.rehearsal.returns.order import Order
from policysweep.models.rehearsal.returns.statements import accepts, wants_person
from policysweep.models.rehearsal.returns.wording import Speech, persona_of, resolution

DECLARE = "declare_resolution"
_INVENTED = "get_shipping_insurance"
_CURRENT = "current"
_MOST_ASKED = 2
_MOST_FAILED_CHECKS = 1
_MOST_REFUSALS = 1
_GIVES_UP = re.compile(
    r"withdraw my request|request is hereby withdrawn|forget it|drop the matter|rather let it be",
    re.IGNORECASE,
)


def returns_agent(request: ParsedRequest) -> Draft:
    """The agent's next message or calls; a policy bank is read first, where there is one."""
    case = read_case(request.messages)
    if (consulting := consult(request, case.opening)) is not None:
        return consulting
    disposition = DISPOSITIONS[request.model]
    if case.order is None:
        return _find_order(request, case, disposition)
    return _Handling(request, case, case.order).next()


def _find_order(request: ParsedRequest, case: CaseFile, disposition: Disposition) -> Draft:
    number = case.order_number
    if not (number or disposition.asks_for_number or case.order_errors) and _knows_current(request):
        number = _CURRENT
    if number and ORDER_TOOL in request.functions:
        wanted = {"order_id": number, "detail_type": "full", "include_tracking": False}
        return Draft(tool_uses=(acting.use(request.functions, ORDER_TOOL, wanted),))
    if case.asked_number < _MOST_ASKED:
        speech = Speech(persona_of(request.system_text()), case.opening, case.asked_number)
        return Draft(speech.ask_number())
    return _declaration(request.functions, texts.ORDER_UNKNOWN)


def _declaration(functions: Mapping[str, Json], declared: Mapping[str, object]) -> Draft:
    return Draft(tool_uses=(acting.use(functions, DECLARE, declared),))


def _knows_current(request: ParsedRequest) -> bool:
    """Whether the order tool says that it finds the order of the conversation without its number."""
    return f'"{_CURRENT}"' in str(acting.properties_of(request.functions, ORDER_TOOL).get("order_id"))


class _Handling:
    """One step of a case whose order is known."""

    def __init__(self, request: ParsedRequest, case: CaseFile, order: Order) -> None:
        self._functions = request.functions
        self._case = case
        self._order = order
        persona = persona_of(request.system_text())
        judge = Judge(request.model, persona, case.opening, request.trial)
        self._disposition = judge.disposition
        self._matter = Deliberation(judge, case, order)
        self._speech = Speech(persona, case.opening, case.spoken)
        self._slip = _slip_of(judge)

    def next(self) -> Draft:
        """The next message or calls."""
        case = self._case
        if not self._order.lines:
            return _declaration(self._functions, texts.ORDER_UNKNOWN)
        if not case.clarified:
            return self._prepare()
        if case.replies and _GIVES_UP.search(case.replies[-1]):
            return _declaration(self._functions, texts.GAVE_UP)
        if case.questions:
            return self._after_failed_check()
        if case.answers and not case.revised:
            return self._after_answer()
        decision = self._matter.standing()
        return self._after_reply(decision) if case.proposals else self._propose(decision, revised=False)

    def _prepare(self) -> Draft:
        """Look things up, then ask about the items."""
        case = self._case
        if self._slip == "invented" and not case.has_called(_INVENTED):
            return Draft(tool_uses=(ToolUse.of(_INVENTED, {"order_id": self._order.order_id}),))
        for batch in self._disposition.reads:
            if missing := [name for name in batch if name in self._functions and not case.has_called(name)]:
                return Draft(tool_uses=tuple(self._look_up(name) for name in missing))
        orders = [ToolUse(*call) for call in case.called if call[0] == ORDER_TOOL]
        if self._slip == "repeated" and len(orders) == 1:
            return Draft(tool_uses=tuple(orders))
        paid = [line for line in self._order.lines if line.share > 0]
        return Draft(self._speech.clarify(paid or self._order.lines))

    def _look_up(self, name: str) -> ToolUse:
        return acting.use(self._functions, name, acting.read_arguments(name, self._order))

    # ----------------------------------------------------------- negotiation

    def _propose(self, decision: Decision, *, revised: bool) -> Draft:
        if self._lacks_stock_figure(decision):
            return self._check_stock(decision)
        new_item = self._new_item(decision)
        return Draft(self._speech.propose(self._order, decision, new_item, revised=revised))

    def _after_reply(self, decision: Decision) -> Draft:
        """Act on a yes; insist or concede once on a no; then settle it."""
        reply = self._case.replies[-1] if self._case.replies else ""
        if accepts(reply):
            return self._act(decision)
        if self._case.proposals == 1:
            return self._answer_objection(decision)
        if decision.outcome in (DENY, ESCALATE) and not wants_person(reply):
            return self._declare(decision)
        return self._act(self._unsettled(decision))

    def _answer_objection(self, decision: Decision) -> Draft:
        better = self._matter.improved(decision)
        say = self._speech.insist if better.outcome == decision.outcome else self._speech.concede
        return Draft(say(self._order, better, self._new_item(better)))

    def _unsettled(self, decision: Decision) -> Decision:
        """What becomes of a case in which the customer still does not agree: a refusal stays a refusal."""
        last_word = self._disposition.when_refused
        if decision.outcome == DENY and last_word != ESCALATE:
            return decision
        return priced(replace(decision, outcome=last_word))

    def _after_failed_check(self) -> Draft:
        if self._case.verifications > _MOST_FAILED_CHECKS:
            return self._declare(replace(self._matter.standing(), outcome=ESCALATE))
        return Draft(self._speech.verify(self._case.questions))

    def _after_answer(self) -> Draft:
        """Act as agreed, unless the answer calls for less than was agreed: then say so first."""
        agreed, fresh = self._agreed(), self._matter.after_answer()
        if is_worse(fresh.outcome, agreed.outcome):
            return self._propose(fresh, revised=True)
        return self._act(agreed)

    def _agreed(self) -> Decision:
        decision = self._matter.standing()
        reply = self._case.replies[-1] if self._case.replies else ""
        return decision if accepts(reply) else self._unsettled(decision)

    # ---------------------------------------------------------------- acting

    def _act(self, decision: Decision) -> Draft:
        """The next write that the outcome needs; the declaration once all are done."""
        outcome = decision.outcome
        if outcome in (DENY, ESCALATE) or self._slip == "unwritten":
            return self._declare(decision)
        if self._lacks_stock_figure(decision):
            return self._check_stock(decision)
        for name in acting.WRITES.get(outcome, ("process_return",)):
            if name in self._functions and self._case.executed(name) is None:
                if self._case.refusals(name) > _MOST_REFUSALS:
                    return self._declare(replace(decision, outcome=ESCALATE))
                return Draft(tool_uses=(acting.use(self._functions, name, self._arguments(name, decision)),))
        return self._declare(decision)

    def _arguments(self, name: str, decision: Decision) -> Json:
        checked = bool(self._case.verifications)
        if name == "process_return":
            return acting.process_return(decision, self._order, checked)
        if name == "issue_refund":
            returned = self._case.executed("process_return") or {}
            return acting.issue_refund(decision, self._order, returned.get("refundable_at_most"))
        product = self._matter.replacement(decision)
        waives = self._case.refusals(name) or self._disposition.when_refused != DENY
        difference = "waive_difference" if waives else "charge_customer"
        new = product[0] if product else decision.lines[0].product_id
        return acting.process_exchange(decision, self._order, new, difference, checked)

    def _lacks_stock_figure(self, decision: Decision) -> bool:
        return (
            decision.outcome == EXCHANGE
            and STOCK_TOOL in self._functions
            and not self._case.has_called(STOCK_TOOL)
        )

    def _check_stock(self, decision: Decision) -> Draft:
        line = decision.lines[0]
        wanted = {"product_id": line.product_id, "quantity": line.quantity, "suggest_alternatives": True}
        return Draft(tool_uses=(acting.use(self._functions, STOCK_TOOL, wanted),))

    def _new_item(self, decision: Decision) -> str:
        product = self._matter.replacement(decision) if decision.outcome == EXCHANGE else None
        return product[1] if product else ""

    def _declare(self, decision: Decision) -> Draft:
        return _declaration(self._functions, resolution(self._order, decision, self._new_item(decision)))


def _slip_of(judge: Judge) -> str:
    """The blunder of this case: invented, repeated, unwritten; "" in most cases."""
    chance, rate = draws.fraction("slip", judge.model, judge.opening), judge.disposition.slips
    return ("invented", "repeated", "unwritten")[int(3 * chance / rate)] if chance < rate else ""
