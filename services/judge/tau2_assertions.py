"""Has a judge model decide the assertions of a tau2-bench task: all in one question, each with its grounds.

The prompt is laid out for the prefix cache: rules, then the conversation, then the assertions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from policysweep.models.chat import ChatReply, Json, ResponseSchema
from policysweep.quoting import quoted
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2
from services.judge import prompt
from services.judge.answer import Absent, read_object
from services.judge.asking import Interrogator, Question, Tally
from services.judge.counting import ASSERTIONS, count_answers
from services.judge.transcript import LAYOUT, transcript

_RULES = Path(__file__).with_name("prompts").joinpath("assertions.md").read_text(encoding="utf-8")
_CONVERSATION = "# The conversation\n\n"
_ASSERTIONS = "\n\n# The assertions\n\n"
_ASK = "\n\nDecide each of them, by its number."

PROMPT_DIGEST = hashlib.sha256(
    "\0".join((_RULES, _CONVERSATION, _ASSERTIONS, _ASK, str(LAYOUT))).encode()
).hexdigest()
"""SHA-256 over all that the prompt is made of, hex."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What the judge says of one assertion. `met` is None when it said nothing usable."""

    met: bool | None = None
    justification: str = ""
    absent: Absent | None = None


@dataclass(frozen=True, slots=True)
class Decisions:
    """One a assertion, in order."""

    each: Sequence[Decision]

    @property
    def missing(self) -> Sequence[Absent]:
        """The reasons of those that are absent."""
        return [decision.absent for decision in self.each if decision.absent is not None]


async def judge_assertions(
    interrogator: Interrogator,
    assertions: Sequence[str],
    episode: ep.Episode,
    seed: int,
    seconds_left: Callable[[], float],
    tally: Tally,
) -> list[judge_pb2.Tau2AssertionCheck]:
    """Ask the judge about `assertions`, of which there is at least one. Raises what the model raises."""
    shared = _CONVERSATION + transcript(episode) + _ASSERTIONS + _numbered(assertions) + _ASK
    question = Question(
        messages=lambda addition: _messages(shared, addition),
        again=prompt.again,
        schema=_schema(len(assertions)),
        seed=seed,
        session_id=f"{episode.episode_id}-assertions",
        timeout=seconds_left,
        read=lambda reply: read_decisions(reply, len(assertions)),
        overflow=lambda absent: Decisions([Decision(absent=absent)] * len(assertions)),
    )
    decisions = await interrogator.ask(question, tally)
    count_answers(ASSERTIONS, tally)
    return [_check(text, decision) for text, decision in zip(assertions, decisions.each, strict=True)]


def _messages(shared: str, addition: str) -> Sequence[Json]:
    return [{"role": "system", "content": _RULES}, {"role": "user", "content": shared + addition}]


def _numbered(assertions: Sequence[str]) -> str:
    return "\n".join(f"{number}.\n{quoted(text)}" for number, text in enumerate(assertions, 1))


def _schema(count: int) -> ResponseSchema:
    properties: dict[str, Any] = {
        "assertion": {"type": "integer", "minimum": 1, "maximum": count},
        "justification": {"type": "string"},
        "met": {"type": "boolean"},
    }
    entry = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return ResponseSchema(
        "tau2_assertions",
        {
            "type": "object",
            "properties": {
                "assertions": {"type": "array", "items": entry, "minItems": count, "maxItems": count}
            },
            "required": ["assertions"],
            "additionalProperties": False,
        },
    )


def read_decisions(reply: ChatReply, count: int) -> Decisions:
    """What the reply says of each assertion. Never raises: a bad answer is a result."""
    content = read_object(reply)
    if isinstance(content, Absent):
        return Decisions([Decision(absent=content)] * count)
    entries = content.get("assertions")
    return Decisions(list(_read(entries if isinstance(entries, list) else [], count)))


def _read(entries: Sequence[Any], count: int) -> Iterator[Decision]:
    for number in range(1, count + 1):
        found = [
            entry
            for entry in entries
            if isinstance(entry, dict) and entry.get("assertion") == number and entry["assertion"] is not True
        ]
        met = found[0].get("met") if len(found) == 1 else None
        if isinstance(met, bool):
            grounds = found[0].get("justification")
            yield Decision(met, _sendable(grounds) if isinstance(grounds, str) else "")
            continue
        what = f"{len(found)} entries" if len(found) != 1 else "neither true nor false"
        yield Decision(absent=Absent(judge_pb2.ABSENT_REASON_UNPARSEABLE, f"{what} for assertion {number}"))


def _sendable(text: str) -> str:
    """Halves of surrogate pairs, which JSON can escape and no protobuf message can hold, become "?"."""
    return text.encode("utf-8", "replace").decode()


def _check(text: str, decision: Decision) -> judge_pb2.Tau2AssertionCheck:
    check = judge_pb2.Tau2AssertionCheck(assertion=text, justification=decision.justification)
    if decision.met is not None:
        check.met = decision.met
    elif decision.absent is not None:
        check.absent_reason, check.absent_detail = decision.absent.reason, decision.absent.detail
    return check
