"""What a memory method is to the service around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from policysweep.v1 import policybank_pb2 as pb
from services.policybank.bank import State
from services.policybank.curator import Curator, Work

_CERTAIN = 1 - 1e-9


@dataclass(frozen=True, slots=True)
class Lesson:
    """A feedback, the bank that it is for, and the means to learn from it."""

    request: pb.RecordFeedbackRequest
    bank: pb.BankInfo
    state: State
    curator: Curator
    work: Work

    @property
    def success(self) -> bool:
        """Whether the task was solved in full: half a reward is none."""
        return self.request.reward >= _CERTAIN

    def memory(self, text: str) -> pb.Entry:
        """An entry that keeps `text` from this task, found again by the task's query."""
        query = self.request.task_query
        return pb.Entry(
            capability_id=f"memory:{self.request.request_id}",
            header=" ".join(query.split())[:200],
            text=text,
            query=query,
        )


class MemoryStrategy(Protocol):
    """A memory method. It keeps no state: what it learnt is in the bank."""

    @property
    def starts_from_policy(self) -> bool:
        """Whether a new bank begins with entries made from the policy."""
        ...

    @property
    def recall_limit(self) -> int:
        """Entries that a recall gives, the nearest to the query first; 0 for all, without ranking."""
        ...

    async def learn(self, lesson: Lesson) -> pb.Revision:
        """What a feedback leads to: a draft with the entry in `after`, or with none to change nothing.

        The draft says why in `rationale`. Raises CuratorUnusable, and what the curator's model raises.
        """
        ...
