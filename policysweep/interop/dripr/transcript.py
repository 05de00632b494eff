"""`conversation_1` of a record <-> messages, and the customer's private tool traffic.

The public layout has one list of turns for all: what customer and agent say, each tool call, each result.
Only `tool_interactions_1` and `customer_tool_interactions_1` tell whose call it was; both list calls in the
order of the turns.

In an episode a call belongs to the agent's message that makes it. So a call that follows an agent turn
directly joins that message, as do calls that follow one another before any result. Written the other way,
a message gives one turn for its text and one for each of its calls; reading that gives the message back.

Ids of calls repeat in the public code's records (`process_return_1` is used again after a verification).
Here they are unique: the second of a kind gets `#2`, and so on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from policysweep.datasets.problems import FieldPath, Finding
from policysweep.errors import InputError
from policysweep.v1 import episode_pb2 as ep

Json = Mapping[str, Any]

CONVERSATION = "conversation_1"
AGENT_CALLS = "tool_interactions_1"
CUSTOMER_CALLS = "customer_tool_interactions_1"

_STATUS = {
    "already_called": ep.TOOL_STATUS_ALREADY_CALLED,
    "error": ep.TOOL_STATUS_ERROR,
    "failed": ep.TOOL_STATUS_ERROR,
    "verification_required": ep.TOOL_STATUS_VERIFICATION_REQUIRED,
}
_SPEAKERS = {ep.ROLE_CUSTOMER: "customer", ep.ROLE_AGENT: "agent"}
_DEEPEST = 16
"""Levels that a record puts around a call's arguments, and some room."""


@dataclass(slots=True)
class _Open:
    """A call that waits for its result."""

    written: str
    """The id in the record."""
    call: ep.ToolCall
    event: ep.CustomerToolEvent | None
    """Set for a customer's call."""


@dataclass(slots=True)
class Transcript:
    """What a record's turns amount to. `findings` tells what contradicts itself in them."""

    messages: list[ep.Message] = field(default_factory=list)
    events: list[ep.CustomerToolEvent] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    _open: list[_Open] = field(default_factory=list)
    _ids: set[str] = field(default_factory=set)
    _agent: deque[tuple[str, str]] = field(default_factory=deque)
    _customer: deque[tuple[str, str]] = field(default_factory=deque)

    @property
    def customer_turns(self) -> int:
        """Messages of the customer."""
        return sum(message.role == ep.ROLE_CUSTOMER for message in self.messages)

    def read(self, record: Json) -> None:
        """Take in a record whose form is right."""
        for key, calls in ((AGENT_CALLS, self._agent), (CUSTOMER_CALLS, self._customer)):
            calls.extend(_key(call) for call in record[key])
        for position, turn in enumerate(record[CONVERSATION]):
            self._turn(turn, (CONVERSATION, position))
            if self.findings:  # what follows from the first would only repeat it
                return
        for key, calls in ((AGENT_CALLS, self._agent), (CUSTOMER_CALLS, self._customer)):
            if calls:
                told = f"has no turn in {CONVERSATION}, or one in another order"
                self.findings.append(Finding((key, len(record[key]) - len(calls)), told))

    def _turn(self, turn: Json, path: FieldPath) -> None:
        match turn["turn"]:
            case "customer":
                self.messages.append(ep.Message(role=ep.ROLE_CUSTOMER, content=turn["message"]))
            case "agent":
                self.messages.append(ep.Message(role=ep.ROLE_AGENT, content=turn["message"]))
            case "tool_call":
                for position, call in enumerate(turn["tool_calls"]):
                    self._call(call, (*path, "tool_calls", position))
            case _:
                self._result(turn["tool_result"], (*path, "tool_result"))

    def _call(self, record: Json, path: FieldPath) -> None:
        key = _key(record)
        call = ep.ToolCall(
            id=self._unique(record["tool_call_id"]),
            name=record["tool_name"],
            arguments_json=_text(record, "arguments"),
        )
        if self._agent and self._agent[0] == key:
            self._agent.popleft()
            if not self.messages or self.messages[-1].role != ep.ROLE_AGENT:
                self.messages.append(ep.Message(role=ep.ROLE_AGENT))
            self.messages[-1].tool_calls.append(call)
            self._open.append(_Open(record["tool_call_id"], call, None))
        elif self._customer and self._customer[0] == key:
            self._customer.popleft()
            self.events.append(ep.CustomerToolEvent(after_message=len(self.messages), call=call))
            self._open.append(_Open(record["tool_call_id"], call, self.events[-1]))
        else:
            told = f"{key[1]} with id {key[0]!r} is the next call neither of {AGENT_CALLS}"
            self.findings.append(
                Finding(path, f"{told} nor of {CUSTOMER_CALLS}, so nobody knows who made it")
            )

    def _result(self, record: Json, path: FieldPath) -> None:
        key = _key(record)
        answered = next((each for each in self._open if (each.written, each.call.name) == key), None)
        if answered is None:
            told = f"{key[1]} with id {key[0]!r} was not called, or has its result already"
            self.findings.append(Finding(path, told))
            return
        self._open.remove(answered)
        text, status = _text(record, "result"), _status(record["result"])
        if answered.event is not None:
            answered.event.result_json, answered.event.status = text, status
            return
        self.messages.append(
            ep.Message(
                role=ep.ROLE_TOOL,
                content=text,
                tool_call_id=answered.call.id,
                tool_name=answered.call.name,
                tool_status=status,
            )
        )

    def _unique(self, written: str) -> str:
        found, count = written or "call", 1
        while found in self._ids:
            count += 1
            found = f"{written or 'call'}#{count}"
        self._ids.add(found)
        return found


def _key(call: Json) -> tuple[str, str]:
    return call["tool_call_id"], call["tool_name"]


def _status(result: Json) -> ep.ToolStatus.ValueType:
    """What a call led to, from its result: there is no other place for it in the layout."""
    status = result.get("status")
    named = _STATUS.get(status.lower()) if isinstance(status, str) else None
    return named or (ep.TOOL_STATUS_ERROR if "error" in result else ep.TOOL_STATUS_OK)


def _text(record: Json, key: str) -> str:
    """The text of a JSON value: as kept beside it, or else written from it."""
    kept = record.get(f"{key}_json")
    return kept if isinstance(kept, str) else orjson.dumps(record[key]).decode()


def _value(text: str, key: str) -> dict[str, Any]:
    """A JSON object under its key; beside it the text, when the object does not give it back."""
    try:
        value = orjson.loads(text)
        nested = value
        for _ in range(_DEEPEST):
            nested = [nested]
        again = orjson.dumps(nested)[_DEEPEST:-_DEEPEST].decode()
    except (ValueError, TypeError):  # no JSON, or nested too deeply to be written inside of a record
        return {key: {}, f"{key}_json": text}
    if not isinstance(value, dict):
        return {key: {}, f"{key}_json": text}
    return {key: value} if again == text else {key: value, f"{key}_json": text}


# ------------------------------------------------------------------------------------------------ writing


def turns(episode: ep.Episode) -> Iterator[dict[str, Any]]:
    """The turns of an episode, the customer's tool traffic among them."""
    events = deque(episode.customer_tool_events)
    before = ep.ROLE_UNSPECIFIED
    for position, message in enumerate(episode.messages):
        while events and events[0].after_message <= position:
            yield from _event_turns(events.popleft())
        # Without a turn of its own an empty text would leave its calls to the agent's message before.
        yield from _message_turns(message, says=bool(message.content) or before == ep.ROLE_AGENT)
        before = message.role
    for event in events:
        yield from _event_turns(event)


def interactions(calls: Sequence[ep.ToolCall], caller: str) -> list[dict[str, Any]]:
    """Calls as the lists of a record have them."""
    return [_call_record(call) | {"caller": caller} for call in calls]


def _event_turns(event: ep.CustomerToolEvent) -> Iterator[dict[str, Any]]:
    yield _turn("tool_call", tool_calls=[_call_record(event.call)])
    if event.result_json:
        yield _turn(
            "tool_result", tool_result=_result_record(event.call.id, event.call.name, event.result_json)
        )


def _message_turns(message: ep.Message, *, says: bool) -> Iterator[dict[str, Any]]:
    if message.role == ep.ROLE_TOOL:
        result = _result_record(message.tool_call_id, message.tool_name, message.content)
        yield _turn("tool_result", tool_result=result)
        return
    if message.role not in _SPEAKERS:
        raise InputError(f"a message has role {message.role}, which no conversation has")
    if says or not message.tool_calls:
        yield _turn(_SPEAKERS[message.role], message=message.content)
    for call in message.tool_calls:
        yield _turn("tool_call", tool_calls=[_call_record(call)])


def _turn(kind: str, **parts: Any) -> dict[str, Any]:
    return {"turn": kind, "message": None, "tool_calls": None, "tool_result": None} | parts


def _call_record(call: ep.ToolCall) -> dict[str, Any]:
    return {"tool_name": call.name, "tool_call_id": call.id} | _value(call.arguments_json, "arguments")


def _result_record(call_id: str, name: str, text: str) -> dict[str, Any]:
    return {"tool_call_id": call_id, "tool_name": name} | _value(text, "result")
