"""A judge's answer, read once: every slot of the sheet gets a value or the reason why there is none.

What counts as a score is strict: a JSON number that equals 1, 2, 3, 4 or 5 (`4.0` is the same number as
`4`). Nothing is clamped, rounded or converted:

    7, 0, -1, 4.5, NaN              out of scale: a number that is none of the five
    "4", true, null, [4], missing   unparseable: not the JSON that was asked for
    prose, half an object, ""       unparseable, all slots
    cut at the token limit          truncated, all slots
    withheld by the server, or a
    refusal instead of JSON         refused, all slots
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import orjson

from policysweep.models.chat import ChatReply
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2
from services.judge.rubric import SCALE
from services.judge.score_sheet import NO_OUTCOME, OUTCOMES, TURN_LISTS, ScoreSheet, Slot
from services.judge.score_tokens import Path, ScoreTokens

Reason: TypeAlias = judge_pb2.AbsentReason.ValueType

_UNPARSEABLE = judge_pb2.ABSENT_REASON_UNPARSEABLE
_SHOWN_CHARACTERS = 120

# Open models refuse in plain words; the wire format's own field for it is theirs too seldom.
_REFUSAL = re.compile(
    r"\W*(?:sorry,|as an AI"
    r"|(?:I['\u2019]?m|I am) (?:(?:very |so |really )?sorry|unable|not able)"
    r"|I (?:can['\u2019]?t|cannot|can not|won['\u2019]?t|will not))",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Absent:
    """Why something is missing, and what came instead."""

    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True)
class Reading:
    """One score as read. `written` is the integer, `value` the same or weighted; both None when absent."""

    written: int | None = None
    value: float | None = None
    mass: float | None = None
    justification: str = ""
    absent: Absent | None = None


@dataclass(frozen=True, slots=True)
class OutcomeReading:
    """The outcome as read; unspecified is the judge's "none"."""

    outcome: ep.Outcome.ValueType = ep.OUTCOME_UNSPECIFIED
    justification: str = ""
    absent: Absent | None = None


@dataclass(frozen=True, slots=True)
class GoalReading:
    """Whether one goal was met, as read."""

    met: bool | None = None
    justification: str = ""
    absent: Absent | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: scores in the order of the sheet's slots, goals in theirs, the outcome if asked for."""

    scores: Sequence[Reading]
    outcome: OutcomeReading | None
    goals: Sequence[GoalReading]

    @property
    def missing(self) -> list[Absent]:
        """All that was asked for and is absent."""
        readings = (*self.scores, *self.goals, *((self.outcome,) if self.outcome else ()))
        return [reading.absent for reading in readings if reading.absent is not None]


def absent_answer(sheet: ScoreSheet, reason: Reason, detail: str) -> Answer:
    """An answer of which nothing can be used."""
    absent = Absent(reason, detail)
    return Answer(
        scores=[Reading(absent=absent)] * len(sheet.slots),
        outcome=OutcomeReading(absent=absent) if sheet.panel.outcome else None,
        goals=[GoalReading(absent=absent)] * len(sheet.goals),
    )


def read_answer(reply: ChatReply, sheet: ScoreSheet) -> Answer:
    """What `reply` says about each slot of `sheet`. Never raises: a bad answer is a result."""
    content = read_object(reply)
    if isinstance(content, Absent):
        return absent_answer(sheet, content.reason, content.detail)
    tokens = ScoreTokens(reply.text, reply.logprobs)
    turns = {
        side: _entries_by(content.get(name), "turn") for side, name in TURN_LISTS.items() if name in content
    }
    return Answer(
        scores=[_read_slot(slot, content, turns, tokens) for slot in sheet.slots],
        outcome=_read_outcome(content.get("outcome")) if sheet.panel.outcome else None,
        goals=list(_read_goals(content.get("goals"), len(sheet.goals))),
    )


def read_object(reply: ChatReply) -> Mapping[str, Any] | Absent:
    """The JSON object that the reply consists of, or why there is none."""
    if reply.finish_reason == ep.FINISH_REASON_CONTENT_FILTER:
        return Absent(judge_pb2.ABSENT_REASON_REFUSED, "the server withheld the answer")
    if reply.finish_reason == ep.FINISH_REASON_LENGTH:
        detail = f"cut at the token limit after {len(reply.text)} characters"
        return Absent(judge_pb2.ABSENT_REASON_TRUNCATED, detail)
    try:
        content = _loads(reply.text)
    except (ValueError, RecursionError):
        if _REFUSAL.match(reply.text):
            return Absent(judge_pb2.ABSENT_REASON_REFUSED, f"the model refused: {_shown(reply.text)}")
        return Absent(_UNPARSEABLE, f"not JSON: {_shown(reply.text)}")
    if not isinstance(content, dict):
        return Absent(_UNPARSEABLE, f"not a JSON object: {_shown(reply.text)}")
    return content


def _loads(text: str) -> object:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return json.loads(text)  # also reads NaN and Infinity, so that one of them does not cost the others


# ------------------------------------------------------------------ scores

_Entries: TypeAlias = Mapping[float, Sequence[tuple[int, Mapping[str, Any]]]]


def _read_slot(
    slot: Slot, content: Mapping[str, Any], turns: Mapping[ep.Role.ValueType, _Entries], tokens: ScoreTokens
) -> Reading:
    if slot.message_index is None:
        entry = content.get(slot.metric)
        if not isinstance(entry, dict):
            return Reading(absent=_instead_of("an object", slot.metric in content, entry))
        return _read_score(entry, "score", (slot.metric, "score"), tokens)
    entries = turns.get(slot.subject, {}).get(slot.message_index, ())
    if len(entries) != 1:
        count = "no entry" if not entries else f"{len(entries)} entries"
        return Reading(absent=Absent(_UNPARSEABLE, f"{count} for turn {slot.message_index}"))
    position, entry = entries[0]
    path = (TURN_LISTS[slot.subject], position, slot.metric)
    return _read_score(entry, slot.metric, path, tokens)


def _read_score(entry: Mapping[str, Any], key: str, path: Path, tokens: ScoreTokens) -> Reading:
    justification = _text(entry.get("justification"))
    value = entry.get(key)
    # bool is an int to Python, and no number to JSON.
    if isinstance(value, bool) or not isinstance(value, int | float):
        absent = _instead_of("a number", key in entry, value)
        return Reading(justification=justification, absent=absent)
    if value not in SCALE:
        detail = f"{_shown(json.dumps(value))} is not on the scale"
        absent = Absent(judge_pb2.ABSENT_REASON_OUT_OF_SCALE, detail)
        return Reading(justification=justification, absent=absent)
    weighted = tokens.weighted(path)
    return Reading(
        written=int(value),
        value=float(value) if weighted is None else weighted.value,
        mass=None if weighted is None else weighted.mass,
        justification=justification,
    )


def _entries_by(entries: object, key: str) -> _Entries:
    """The objects of a list with their positions, by the number that each holds under `key`."""
    found: dict[float, list[tuple[int, Mapping[str, Any]]]] = {}
    for position, entry in enumerate(entries if isinstance(entries, list) else ()):
        number = entry.get(key) if isinstance(entry, dict) else None
        if isinstance(number, int | float) and not isinstance(number, bool):
            found.setdefault(number, []).append((position, entry))
    return found


# ------------------------------------------------------------------ outcome and goals


def _read_outcome(entry: object) -> OutcomeReading:
    if not isinstance(entry, dict):
        return OutcomeReading(absent=_instead_of("an object", entry is not None, entry))
    justification = _text(entry.get("justification"))
    name = entry.get("outcome")
    if name == NO_OUTCOME:
        return OutcomeReading(justification=justification)
    if not isinstance(name, str) or name not in OUTCOMES:
        absent = _instead_of("an outcome", "outcome" in entry, name)
        return OutcomeReading(justification=justification, absent=absent)
    return OutcomeReading(OUTCOMES[name], justification)


def _read_goals(entries: object, count: int) -> Iterator[GoalReading]:
    by_number = _entries_by(entries, "goal")
    for number in range(1, count + 1):
        found = by_number.get(number, ())
        if len(found) != 1:
            many = "no entry" if not found else f"{len(found)} entries"
            yield GoalReading(absent=Absent(_UNPARSEABLE, f"{many} for goal {number}"))
            continue
        entry = found[0][1]
        met, justification = entry.get("met"), _text(entry.get("justification"))
        if isinstance(met, bool):
            yield GoalReading(met, justification)
        else:
            absent = _instead_of("true or false", "met" in entry, met)
            yield GoalReading(justification=justification, absent=absent)


# ------------------------------------------------------------------ words


def _instead_of(wanted: str, present: bool, value: object) -> Absent:
    came = _shown(json.dumps(value, ensure_ascii=False)) if present else "nothing"
    return Absent(_UNPARSEABLE, f"{came} instead of {wanted}")


def _text(value: object) -> str:
    return _sendable(value) if isinstance(value, str) else ""


def _sendable(text: str) -> str:
    """Halves of surrogate pairs, which JSON can escape and no protobuf message can hold, become "?"."""
    return text.encode("utf-8", "replace").decode()


def _shown(text: str) -> str:
    line = _sendable(" ".join(text.split()))
    return line if len(line) <= _SHOWN_CHARACTERS else line[:_SHOWN_CHARACTERS] + "..."


def problem(missing: Sequence[Absent]) -> str:
    """The commonest reason in a few words, for the judge's next attempt."""
    reason = Counter(absent.reason for absent in missing).most_common(1)[0][0]
    return judge_pb2.AbsentReason.Name(reason).removeprefix("ABSENT_REASON_").replace("_", " ").lower()
