"""The declared outcome held against what the write tools really did.

Every executed write carries the outcome that the order amounted to right after it (see
`OrderState.settled`), so the last write that moved goods or money speaks for all of them. Case notes
(a recorded denial, escalation or withdrawal) speak only where nothing moved.

Rules:
* Nothing declared: no contradiction.
* A grant is declared (refund, gift card, replacement): the writes must amount to the same one.
* No grant is declared (denial, escalation, withdrawal): neither goods nor money may have moved. That
  holds for an escalation after a partial refund too: who hands a decision over has not settled it.
* A case note contradicts a declaration of another kind, except that a customer may give up after any note.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from policysweep.domains.returns.resolution import outcome_name
from policysweep.v1 import episode_pb2

Outcome: TypeAlias = episode_pb2.Outcome.ValueType

GRANTS = frozenset(
    {
        episode_pb2.OUTCOME_RETURN_REFUND_FULL_BANK,
        episode_pb2.OUTCOME_RETURN_REFUND_PARTIAL_BANK,
        episode_pb2.OUTCOME_RETURN_REFUND_GIFT_CARD,
        episode_pb2.OUTCOME_REPLACEMENT_EXCHANGE,
    }
)
"""Outcomes that move goods or money."""


def reconcile(declared: Outcome, writes: Sequence[episode_pb2.ExecutedWrite]) -> episode_pb2.Reconciliation:
    """Compare the declared outcome with the executed writes, given in order. See the module docstring."""
    executed = executed_outcome(writes)
    explanation = _contradiction(declared, executed)
    return episode_pb2.Reconciliation(
        declared=declared,
        executed=executed,
        writes=writes,
        mismatch=bool(explanation),
        explanation=explanation,
    )


def executed_outcome(writes: Sequence[episode_pb2.ExecutedWrite]) -> Outcome:
    """What the writes amount to; unspecified when none of them settles anything."""
    implied = [write.implied_outcome for write in writes if write.implied_outcome]
    moved = [outcome for outcome in implied if outcome in GRANTS]
    return (moved or implied or [episode_pb2.OUTCOME_UNSPECIFIED])[-1]


def _contradiction(declared: Outcome, executed: Outcome) -> str:
    """One sentence, or "" when the two agree."""
    if declared in (episode_pb2.OUTCOME_UNSPECIFIED, executed):
        return ""
    said, did = outcome_name(declared), outcome_name(executed)
    if declared in GRANTS and executed in GRANTS:
        return f"The agent declared {said}, but the executed writes amount to {did}."
    if declared in GRANTS:
        return f"The agent declared {said}, but no write moved any goods or money."
    if executed in GRANTS:
        return f"The outcome is {said}, but goods or money moved: the executed writes amount to {did}."
    if executed and declared != episode_pb2.OUTCOME_USER_ABORT:
        return f"The agent declared {said}, but recorded {did} on the order."
    return ""
