"""The methods whose memory is a reading of the policy."""

from __future__ import annotations

from dataclasses import dataclass

from policysweep.errors import InputError
from policysweep.v1 import policybank_pb2 as pb
from services.policybank.strategies.strategy import Lesson


@dataclass(frozen=True, slots=True)
class PolicyBank:
    """Policy entries, made from the policy and refined by feedback (PolicyBank, arXiv 2604.15505).

    The bank begins with the written policy as capabilities, several a tool. Each feedback leads to exactly
    one of add, revise, omit, by a curator that knows the failure types and the gap classes. The agent reads
    it in two steps, headers and then specs; a recall, which the paper does not have, ranks the entries.
    """

    recall_limit: int
    starts_from_policy: bool = True

    async def learn(self, lesson: Lesson) -> pb.Revision:
        """The one change that the curator decides on."""
        return await lesson.curator.lesson(lesson.request, lesson.bank, lesson.state.entries, lesson.work)


@dataclass(frozen=True, slots=True)
class FullContext(PolicyBank):
    """The entries of PolicyBank, all of them in the agent's prompt (PolicyBank, ablation)."""

    recall_limit: int = 0


@dataclass(frozen=True, slots=True)
class HumanOracle:
    """The clarifications that a person would give, word for word (PolicyBank, human oracle).

    It learns from feedback under the oracle regime: the explanation is the clarification. A task without one
    has nothing to clarify.
    """

    starts_from_policy: bool = False
    recall_limit: int = 0

    async def learn(self, lesson: Lesson) -> pb.Revision:
        """The clarification, unless the bank holds it."""
        request = lesson.request
        if request.regime != pb.FEEDBACK_REGIME_ORACLE:
            raise InputError(
                f"RecordFeedback: regime is {pb.FeedbackRegime.Name(request.regime)}, but bank "
                f"{request.bank_id!r} is a human oracle, which learns under FEEDBACK_REGIME_ORACLE alone"
            )
        clarification = request.explanation.strip()
        if not clarification:
            return pb.Revision(rationale="There is nothing to clarify in this task.")
        if any(entry.text == clarification for entry in lesson.state.entries.values()):
            return pb.Revision(rationale="The bank holds this clarification already.")
        return pb.Revision(
            rationale="A clarification was given.",
            failure_type=pb.FAILURE_TYPE_POLICY_GAP,
            after=lesson.memory(clarification),
        )
