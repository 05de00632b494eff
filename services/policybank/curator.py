"""The curator: the model that writes entries, and the one bounded retry of answers that cannot be used.

A fault of the model server or of the way to it ends the question: whoever called the service owns that
retry. An answer that arrived in good order and is no use is asked for again here, at most `attempts` times in
all, with another seed and a word on what was wrong. When none can be used, the question fails as a whole and
the bank stays as it was. An OMIT in its place would claim that somebody had judged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from policysweep.errors import ContextOverflow, CuratorUnusable
from policysweep.models.chat import ChatModel, ChatReply, ChatRequest, Json, ResponseSchema
from policysweep.models.usage import add_usage
from policysweep.v1 import agent_pb2
from policysweep.v1 import policybank_pb2 as pb
from services.policybank import answers, prompt
from services.policybank.answers import Unusable

_SEEDS = 2**31

Read = TypeVar("Read")


@dataclass(frozen=True, slots=True)
class Work:
    """One piece of work: for which bank, with which seed, in what time, and what it has cost so far.

    `seconds_left` gives the seconds that the next model call may take. `cost` is a revision of which only the
    fields on the curator's calls are set.
    """

    bank_id: str
    seed: int
    seconds_left: Callable[[], float]
    cost: pb.Revision = field(default_factory=pb.Revision)

    def count(self, reply: ChatReply) -> None:
        """Add a call."""
        add_usage(self.cost.usage, reply.usage)
        self.cost.rehearsal = self.cost.rehearsal or reply.rehearsal


class Curator:
    """Asks one model. All methods raise CuratorUnusable, and what the model raises."""

    def __init__(self, model: ChatModel, sampling: agent_pb2.Sampling, attempts: int) -> None:
        self._model = model
        self._sampling = sampling
        self._attempts = attempts

    async def first_entries(self, request: pb.CreateBankRequest, work: Work) -> list[pb.Entry]:
        """The capabilities of every tool, and those that belong to none. Asked for at the same time."""
        tools = [*(tool.name for tool in request.tools), ""]
        tasks = [asyncio.create_task(self._capabilities(request, tool, work)) for tool in tools]
        try:
            parts = await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
        return _with_ids_of_their_own([entry for part in parts for entry in part])

    async def _capabilities(self, request: pb.CreateBankRequest, tool: str, work: Work) -> list[pb.Entry]:
        messages = prompt.first_bank(request, tool)
        return await self._ask(messages, answers.CAPABILITIES, answers.read_capabilities, work)

    async def lesson(
        self,
        request: pb.RecordFeedbackRequest,
        bank: pb.BankInfo,
        entries: Mapping[str, pb.Entry],
        work: Work,
    ) -> pb.Revision:
        """The one change that a feedback leads to, as the draft of a revision."""
        messages = prompt.feedback(bank.policy, entries.values(), request)
        return await self._ask(
            messages, answers.LESSON, lambda content: answers.read_lesson(content, entries), work
        )

    async def workflows(self, request: pb.RecordFeedbackRequest, work: Work) -> list[str]:
        """The workflows of a task that went well."""
        messages = prompt.workflows(request)
        return await self._ask(messages, answers.WORKFLOWS, answers.read_workflows, work)

    async def reasoning(
        self, request: pb.RecordFeedbackRequest, most: int, work: Work, *, success: bool
    ) -> list[str]:
        """At most `most` memory items from a task."""
        messages = prompt.reasoning(request, success=success)
        return await self._ask(
            messages,
            answers.reasoning_schema(most),
            lambda content: answers.read_reasoning(content, most),
            work,
        )

    async def _ask(
        self,
        messages: Sequence[Json],
        schema: ResponseSchema,
        read: Callable[[Mapping[str, Any]], Read],
        work: Work,
    ) -> Read:
        problem = ""
        for attempt in range(self._attempts):
            asked = ChatRequest(
                messages=_with_note(messages, problem),
                response_schema=schema,
                sampling=self._sampling,
                seed=(work.seed + attempt) % _SEEDS,
                session_id=f"{work.bank_id}-curator",
                timeout=work.seconds_left(),
            )
            reply = await self._complete(asked)
            work.count(reply)
            try:
                return read(answers.read_object(reply))
            except Unusable as unusable:
                problem = str(unusable)
                work.cost.unusable_answers += 1
        raise CuratorUnusable(
            f"the curator gave no usable answer in {self._attempts} attempts, the last because {problem}; "
            "nothing was recorded"
        )

    async def _complete(self, asked: ChatRequest) -> ChatReply:
        try:
            return await self._model.complete(asked)
        except ContextOverflow as overflow:
            raise CuratorUnusable(
                f"what the curator has to read does not fit into its context: {overflow}; nothing was "
                "recorded. Serve the curator's model with a longer context"
            ) from overflow


def _with_note(messages: Sequence[Json], problem: str) -> Sequence[Json]:
    if not problem:
        return messages
    last = messages[-1]
    return [*messages[:-1], {**last, "content": last["content"] + prompt.again(problem)}]


def _with_ids_of_their_own(entries: Sequence[pb.Entry]) -> list[pb.Entry]:
    """Two tools may have been given the same id; the later entry gets a number behind it."""
    found: dict[str, pb.Entry] = {}
    for entry in entries:
        stem, number = entry.capability_id, 2
        while entry.capability_id in found:
            entry.capability_id = f"{stem}_{number}"
            number += 1
        found[entry.capability_id] = entry
    return list(found.values())
