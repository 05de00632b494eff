"""What the agent stands for at the present stage: judged, conceded, revised, and feasible."""

from __future__ import annotations

from dataclasses import dataclass, replace

from policysweep.models.rehearsal import draws
from policysweep.models.rehearsal.dispositions import ESCALATE, EXCHANGE, FULL, PARTIAL
from policysweep.models.rehearsal.returns import acting
from policysweep.models.rehearsal.returns.case_file import CaseFile
from policysweep.models.rehearsal.returns.judgement import Decision, Judge, conceded, decide, priced
from policysweep.models.rehearsal.returns.order import Order
from policysweep.models.rehearsal.returns.statements import FAULTS, read_statements, worse

STOCK_TOOL = "check_inventory"
FREQUENCY_TOOL = "get_return_frequency_assessment"
_WARY = 0.8


@dataclass(frozen=True, slots=True)
class Deliberation:
    """One case before one judge."""

    judge: Judge
    case: CaseFile
    order: Order

    def standing(self) -> Decision:
        """The decision that was or is to be proposed, with the items' state as it is known by now."""
        case = self.case
        decision = self._judged(answered=case.revised)
        if case.proposals >= 2 and self.judge.concedes(self.order):
            decision = conceded(decision)
        if case.answers:
            decision = replace(decision, conditions=self._conditions())
        return decision

    def after_answer(self) -> Decision:
        """The decision that the answer to a failed check calls for."""
        return replace(self._judged(answered=True), conditions=self._conditions())

    def improved(self, decision: Decision) -> Decision:
        """What is offered after an objection."""
        return conceded(decision) if self.judge.concedes(self.order) else decision

    def replacement(self, decision: Decision) -> tuple[str, str] | None:
        """Number and name of the product to send out; None when nothing fitting is in stock."""
        inventory = self.case.result(STOCK_TOOL)
        return acting.stocked(inventory, decision.lines[0].quantity) if inventory else None

    def _judged(self, *, answered: bool) -> Decision:
        case = self.case
        frequency = case.result(FREQUENCY_TOOL)
        percent = frequency.get("recommended_deduction_percentage")
        decision = decide(
            self.judge,
            self.order,
            tuple(case.statements + (case.answers if answered else [])),
            str(frequency.get("abuse_risk_level", "LOW")),
            int(percent) if isinstance(percent, int | float) else 0,
        )
        return self._feasible(decision)

    def _conditions(self) -> dict[str, str]:
        """The items' state after a failed check.

        A fault counts only if the answer repeats it, and what was not said to be sealed is mostly taken for
        used from now on.
        """
        case, lines = self.case, self.order.lines
        said = read_statements(case.statements, lines).conditions
        answered = read_statements(case.answers, lines).conditions
        found = {
            item: answered[item] if state in FAULTS else worse(state, answered[item])
            for item, state in said.items()
        }
        wary = draws.fraction("wary", self.judge.model, self.judge.opening) < _WARY
        return {
            item: "opened_used" if wary and state == "opened_unused" else state
            for item, state in found.items()
        }

    def _feasible(self, decision: Decision) -> Decision:
        """A replacement is for one item and needs stock; without, money or a colleague has to do."""
        if decision.outcome != EXCHANGE:
            return decision
        main = max(
            decision.lines, key=lambda line: (decision.conditions.get(line.item_id) in FAULTS, line.share)
        )
        exchange = priced(replace(decision, lines=(main,)))
        if not self.case.result(STOCK_TOOL) or self.replacement(exchange) is not None:
            return exchange
        fallback = draws.choose((FULL, PARTIAL, ESCALATE), "no stock", self.judge.model, self.order.order_id)
        return priced(replace(decision, outcome=fallback))
