"""What has happened in a returns conversation so far, read from its messages in one pass.

The script keeps no state: where it stands follows from what was said and called. Its own texts are told
apart by their place: before the order is known it asks for the number, then it asks about the state of
the items once, after that it proposes; a text that answers `verification_required` puts questions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import orjson

from policysweep.models.rehearsal.request import Json, text_of
from policysweep.models.rehearsal.returns.order import Order, read_order

ORDER_TOOL = "get_order_details"
_ORDERS_KEPT = 1024
_MOST_ORDER_ERRORS = 2
CASE_HEAD = "## This case"
OPENING_HEAD = "## The customer's first message"
WRITE_TOOLS = frozenset({"process_return", "process_exchange", "issue_refund"})

_ORDER_NUMBER = re.compile(r"\bORD(?:ER)?-[A-Z0-9]+(?:-[A-Z0-9]+)*\b", re.IGNORECASE)


@dataclass(slots=True)
class Result:
    """A tool's answer. `content` is empty when it is no JSON object."""

    name: str
    content: Json

    @property
    def status(self) -> str:
        """ok, error, verification_required or already_called."""
        status = str(self.content.get("status", "ok"))
        if status in ("verification_required", "already_called"):
            return status
        return "error" if status == "error" or "error" in self.content else "ok"


@dataclass(slots=True)
class CaseFile:
    """The conversation, sorted by what it means for the case.

    `statements` are the customer's messages before the first proposal, `replies` those to proposals,
    `answers` those to the questions of a failed check. `questions` are such questions that were not put yet.
    """

    opening: str = ""
    order_number: str = ""
    order: Order | None = None
    order_errors: int = 0
    asked_number: int = 0
    spoken: int = 0
    called: list[tuple[str, str]] = field(default_factory=list)
    raw_results: dict[str, str] = field(default_factory=dict)
    clarified: bool = False
    statements: list[str] = field(default_factory=list)
    proposals: int = 0
    replies: list[str] = field(default_factory=list)
    writes: list[Result] = field(default_factory=list)
    verifications: int = 0
    questions: list[str] = field(default_factory=list)
    awaiting_answer: bool = False
    answers: list[str] = field(default_factory=list)
    revised: bool = False

    def has_called(self, name: str) -> bool:
        """Whether the tool was called before."""
        return any(called == name for called, _ in self.called)

    def result(self, name: str) -> Json:
        """The last result of a read tool; {} when there is none or it failed."""
        content = _object(self.raw_results.get(name, ""))
        return {} if Result(name, content).status == "error" else content

    def executed(self, name: str) -> Json | None:
        """The result of the write that went through; None when none did."""
        done = (write.content for write in self.writes if write.name == name and write.status == "ok")
        return next(done, None)

    def refusals(self, name: str) -> int:
        """How often a write was refused, repeated refusals included."""
        refused = ("error", "already_called")
        return sum(write.name == name and write.status in refused for write in self.writes)


def read_case(messages: list[Json]) -> CaseFile:
    """Sort a conversation."""
    case = CaseFile()
    names: dict[str, str] = {}
    for message in messages:
        role = message["role"]
        if role == "user":
            _hear(case, _spoken(text_of(message)))
        elif role == "tool":
            _receive(case, names.get(message["tool_call_id"], ""), text_of(message))
        elif role == "assistant":
            _recall(case, message, names)
    return case


def _spoken(text: str) -> str:
    """What the customer wrote of a turn: the first one begins with what the agent is told of the case."""
    return text.rpartition(OPENING_HEAD)[2].lstrip() if text.startswith(CASE_HEAD) else text


def _hear(case: CaseFile, text: str) -> None:
    if not case.opening:
        case.opening = text
    if not case.order_number and (found := _ORDER_NUMBER.search(text)):
        case.order_number = found[0].upper()
    if case.awaiting_answer:
        case.answers.append(text)
        case.awaiting_answer = False
    elif case.proposals:
        case.replies.append(text)
    else:
        case.statements.append(text)


def _recall(case: CaseFile, message: Json, names: dict[str, str]) -> None:
    calls = message.get("tool_calls") or ()
    for call in calls:
        function = call["function"]
        names[call.get("id", "")] = function["name"]
        case.called.append((function["name"], function.get("arguments") or ""))
    if calls or not text_of(message):
        return
    case.spoken += 1
    if case.order is None:
        case.asked_number += 1
    elif case.questions:
        case.questions, case.awaiting_answer = [], True
    elif not case.clarified:
        case.clarified = True
    else:
        _count_proposal(case)


def _count_proposal(case: CaseFile) -> None:
    """A proposal after the customer's answer to a failed check starts the bargaining anew."""
    if case.answers and not case.revised:
        case.revised = True
        case.proposals, case.replies = 0, []
    case.proposals += 1


def _receive(case: CaseFile, name: str, text: str) -> None:
    if name == ORDER_TOOL:
        _receive_order(case, text)
    elif name in WRITE_TOOLS:
        result = Result(name, _object(text))
        case.writes.append(result)
        if result.status == "verification_required":
            case.verifications += 1
            case.questions = [str(question) for question in result.content.get("questions") or ()] or [""]
    else:
        case.raw_results[name] = text


def _receive_order(case: CaseFile, text: str) -> None:
    if case.order is not None:
        return
    case.order = order_of(text)
    if case.order is None:
        case.order_errors += 1
        if case.order_errors >= _MOST_ORDER_ERRORS:
            case.order_number = ""


@lru_cache(maxsize=_ORDERS_KEPT)
def order_of(text: str) -> Order | None:
    """The order in a get_order_details result, read once per text; None when it shows no order."""
    content = _object(text)
    if not content or Result(ORDER_TOOL, content).status != "ok":
        return None
    return read_order(content)


def _object(text: str) -> dict[str, Any]:
    try:
        content = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return content if isinstance(content, dict) else {}
