"""How a judge's model is asked: the calls, the one bounded retry of answers that cannot be used, the counts.

A fault of the model server or of the way to it ends the question: the driver owns that retry. An answer
that arrived in good order and is no use (prose, a score off the scale, half an object) is this module's:
it asks again, at most `parse_attempts` times in all, with another seed and a word on what was wrong, and
keeps the answer that has most of what was asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from policysweep.errors import ContextOverflow, ModelServerRejected, PolicysweepError
from policysweep.models.chat import ChatModel, ChatReply, ChatRequest, Json, ResponseSchema
from policysweep.models.usage import add_usage
from policysweep.v1 import agent_pb2, judge_pb2
from policysweep.v1 import episode_pb2 as ep
from services.judge.answer import Absent, problem

_SEEDS = 2**31
_PROBE_SCHEMA = ResponseSchema(
    "judge_probe",
    {
        "type": "object",
        "properties": {"score": {"type": "integer", "enum": [1, 2, 3, 4, 5]}},
        "required": ["score"],
        "additionalProperties": False,
    },
)


class Readable(Protocol):
    """An answer as read."""

    @property
    def missing(self) -> Sequence[Absent]:
        """All that was asked for and is absent."""
        ...


Read = TypeVar("Read", bound=Readable)


@dataclass(frozen=True, slots=True)
class Question(Generic[Read]):
    """What to ask and how to read the answer.

    `messages` gives the prompt with an addition at its end, "" at first. `overflow` makes the answer when the
    prompt does not fit into the model's context. `timeout` gives the seconds that the next call may take.
    """

    messages: Callable[[str], Sequence[Json]]
    again: Callable[[str], str]
    schema: ResponseSchema
    seed: int
    session_id: str
    timeout: Callable[[], float]
    read: Callable[[ChatReply], Read]
    overflow: Callable[[Absent], Read]


@dataclass(slots=True)
class Tally:
    """What a question cost: tokens and time over all calls, and how many answers were of no full use.

    A prompt that does not fit counts as an answer of no use.
    """

    usage: ep.Usage = field(default_factory=ep.Usage)
    answers: int = 0
    unusable: int = 0
    rehearsal: bool = False

    def count(self, reply: ChatReply) -> None:
        """Add a call."""
        add_usage(self.usage, reply.usage)
        self.answers += 1
        self.rehearsal = self.rehearsal or reply.rehearsal

    def refused(self) -> None:
        """Count a call whose prompt the server found too long: no answer, and none that could be used."""
        self.usage.model_calls += 1
        self.answers += 1
        self.unusable += 1


class Interrogator:
    """Asks one judge model. `top_logprobs` alternatives are asked for when token probabilities are used."""

    def __init__(
        self,
        model: ChatModel,
        sampling: agent_pb2.Sampling,
        *,
        use_logprobs: str,
        top_logprobs: int,
        samples: int,
        parse_attempts: int,
    ) -> None:
        self._model = model
        self._sampling = sampling
        self._top_logprobs = top_logprobs
        self._samples = samples
        self._parse_attempts = parse_attempts
        self._logprobs = {"on": True, "off": False}.get(use_logprobs)
        self._probing = asyncio.Lock()

    async def uses_logprobs(self, seconds: float) -> bool:
        """Whether scores are weighted. In "auto", one call of at most `seconds` finds out, once and for all.

        Raises what the model raises.
        """
        async with self._probing:
            if self._logprobs is None:
                self._logprobs = await self._probe(seconds)
        return self._logprobs

    async def _probe(self, seconds: float) -> bool:
        def probe(top_logprobs: int) -> ChatRequest:
            return ChatRequest(
                messages=[{"role": "user", "content": "Give the score 3 as JSON."}],
                response_schema=_PROBE_SCHEMA,
                sampling=agent_pb2.Sampling(max_tokens=16),
                top_logprobs=top_logprobs,
                timeout=seconds,
            )

        try:
            return bool((await self._model.complete(probe(self._top_logprobs))).logprobs)
        except ModelServerRejected:
            # Either probabilities are what it rejects, or this raises for the true reason.
            await self._model.complete(probe(0))
            return False

    async def ask(self, question: Question[Read], tally: Tally) -> Read:
        """One answer to a question without scores. Raises what the model raises, but ContextOverflow."""
        return await self._sample(question, tally, 0, weighted=False)

    async def ask_scores(self, question: Question[Read], tally: Tally, *, weighted: bool) -> Sequence[Read]:
        """One answer with token probabilities if `weighted`, else as many as samples are configured.

        Raises what the model raises, but ContextOverflow.
        """
        if weighted or self._samples == 1:
            return [await self._sample(question, tally, 0, weighted=weighted)]
        tasks = [
            asyncio.create_task(self._sample(question, tally, sample, weighted=False))
            for sample in range(self._samples)
        ]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()

    async def _sample(self, question: Question[Read], tally: Tally, sample: int, *, weighted: bool) -> Read:
        best: Read | None = None
        addition = ""
        for attempt in range(self._parse_attempts):
            seed = question.seed + sample * self._parse_attempts + attempt
            try:
                reply = await self._model.complete(self._request(question, addition, seed % _SEEDS, weighted))
            except ContextOverflow as overflow:
                if overflow.sent:
                    tally.refused()
                absent = Absent(judge_pb2.ABSENT_REASON_CONTEXT_OVERFLOW, str(overflow))
                return best if best is not None else question.overflow(absent)
            tally.count(reply)
            read = question.read(reply)
            if best is None or len(read.missing) < len(best.missing):
                best = read
            if not read.missing:
                break
            tally.unusable += 1
            addition = question.again(problem(read.missing))
        assert best is not None  # there is at least one attempt
        return best

    def _request(self, question: Question[Read], addition: str, seed: int, weighted: bool) -> ChatRequest:
        return ChatRequest(
            messages=question.messages(addition),
            response_schema=question.schema,
            sampling=self._sampling,
            seed=seed,
            session_id=question.session_id,
            top_logprobs=self._top_logprobs if weighted else 0,
            timeout=question.timeout(),
        )


def failure(panel: str, error: PolicysweepError) -> judge_pb2.PanelFailure:
    """A panel's failure on the wire."""
    return judge_pb2.PanelFailure(
        panel=panel,
        party=error.party,
        reason=error.reason,
        message=str(error),
        retryable=error.retryable,
        retry_after_seconds=error.retry_after,
    )
