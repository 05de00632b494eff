"""The categories that a scored unit can fall into, their names and the coarse map over them.

A category is a small integer: the number of the Outcome, or 0 for "no outcome, the agent failed". So an
agent's faults are counted in the same table as its outcomes, and never vanish from the denominator.
"""

from __future__ import annotations

from policysweep.v1 import episode_pb2 as ep

NO_OUTCOME = 0
"""Category of a unit that the agent's own fault ended before any outcome."""

_NAMES = {
    ep.OUTCOME_RETURN_REFUND_FULL_BANK: "Full Refund",
    ep.OUTCOME_RETURN_REFUND_PARTIAL_BANK: "Partial Refund",
    ep.OUTCOME_RETURN_REFUND_GIFT_CARD: "Refund with Gift Card",
    ep.OUTCOME_DENY_REFUND: "Deny Refund",
    ep.OUTCOME_REPLACEMENT_EXCHANGE: "Replacement",
    ep.OUTCOME_ESCALATE_HUMAN_AGENT: "Escalate to Human",
    ep.OUTCOME_USER_ABORT: "User Abort",
}

KEYS = ("NO_OUTCOME_AGENT_FAULT", *(ep.Outcome.Name(number).removeprefix("OUTCOME_") for number in _NAMES))
"""Key of each category in report.json, indexed by category."""

DISPLAY = {**dict(zip(KEYS[1:], _NAMES.values(), strict=True)), KEYS[NO_OUTCOME]: "No outcome: agent fault"}
"""What a reader calls each key, in reading order; the outcomes as the DRIP-R paper names them."""

COARSE_KEYS = (KEYS[NO_OUTCOME], "GRANT", "DENY", "OTHER")
"""Key of each coarse category: money, credit or goods granted; all of them denied; neither was decided."""

COARSE = (NO_OUTCOME, 1, 1, 1, 2, 1, 3, 3)
"""The coarse category of each category."""
