"""The judge's script: scores a transcript by what can be told from its text, and lists the goals of a task.

It knows no rubric. A panel's JSON schema says what is asked; a metric's key says, by the words in it, which
signals of the transcript count for it. A score is 3, plus the signals, plus how lenient the disposition is,
plus a draw for this metric of this conversation, most of which all dispositions share; rounded to the scale.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from policysweep.models.rehearsal import draws
from policysweep.models.rehearsal.dispositions import (
    ABORT,
    DENY,
    DISPOSITIONS,
    ESCALATE,
    EXCHANGE,
    FULL,
    GIFT_CARD,
    PARTIAL,
)
from policysweep.models.rehearsal.request import Json, ParsedRequest
from policysweep.models.rehearsal.structured import fill

_ASK = "# Your panel"
_TURN = re.compile(r"^\[(\d+)\] (CUSTOMER|AGENT|TOOL)(.*)\n((?:\| .*\n?)*)", re.MULTILINE)
_DECLARED = re.compile(r"^The declared outcome is (\w+)\.", re.MULTILINE)
_EXECUTED = re.compile(r"^The executed tool calls amount to (\w+):", re.MULTILINE)
_PERSONA = re.compile(r"^The persona that was assigned to it is (\w+):", re.MULTILINE)
_TURN_LISTS = {"agent_turns": re.compile(r"Agent turns: ([\d, ]+),"),
               "customer_turns": re.compile(r"Customer turns: ([\d, ]+),")}  # fmt: skip
_GOAL = re.compile(r"^\| \d+\. (.+)$", re.MULTILINE)
_POLICY_WORDS = re.compile(r"\b(?:policy|section|window|clause|terms)\b", re.IGNORECASE)
_WARM_WORDS = re.compile(r"\b(?:sorry|glad|happy|thank|understand|gladly|appreciate)\b", re.IGNORECASE)
_MONEY = re.compile(r"refund|money|\$|paid|card|fee|deduction|replac|exchange", re.IGNORECASE)
_GRANTS = frozenset({FULL, PARTIAL, GIFT_CARD, EXCHANGE})
_NONE = "NONE"


@dataclass(frozen=True, slots=True)
class _Turn:
    index: int
    speaker: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class _Case:
    """What a transcript shows. `signals` are numbers from 0 to 1 by name; `key` is a hash of it all."""

    turns: Sequence[_Turn]
    outcome: str
    executed: str
    signals: Mapping[str, float]
    key: int

    def spoken(self, speaker: str) -> list[int]:
        """Indices of what one side said; the last messages first."""
        return [turn.index for turn in reversed(self.turns) if (turn.speaker, turn.kind) == (speaker, "")]


# ------------------------------------------------------------------ reading


@lru_cache(maxsize=256)
def _read(shared: str) -> _Case:
    """The case in the part of the prompt that the panels of an episode share."""
    turns = [
        _Turn(int(index), speaker, kind, quoted.replace("| ", ""))
        for index, speaker, kind, quoted in _TURN.findall(shared)
    ]
    declared, executed, persona = (
        found.group(1) if (found := pattern.search(shared)) else ""
        for pattern in (_DECLARED, _EXECUTED, _PERSONA)
    )
    withdrew = "\nThe customer withdrew" in shared
    outcome = declared or (ABORT if withdrew else _NONE)
    signals = {
        "mismatch": float("\nWhat was declared and what was done contradict" in shared),
        "stopped": float("\nIt was stopped" in shared),
        "withdrew": float(withdrew),
        "denied": float(outcome in (DENY, ABORT)),
        "escalated": float(outcome == ESCALATE),
        "full": float(outcome == FULL),
        "granted": float(outcome in _GRANTS),
        "strict": float(persona in ("DIRECT", "FAIR")),
        "generous": float(persona in ("VERY_HELPFUL", "HELPFUL", "AGREEABLE")),
        **_manner(turns),
    }
    return _Case(turns, outcome, executed, signals, draws.number("case", shared))


def _manner(turns: Sequence[_Turn]) -> dict[str, float]:
    said = [turn.text for turn in turns if turn.speaker == "AGENT" and not turn.kind]
    whole, count = "\n".join(said), max(1, len(said))
    return {
        "asks": float(any("?" in text for text in said[:-1])),
        "cites": min(1.0, len(_POLICY_WORDS.findall(whole)) / count),
        "warm": min(1.0, len(_WARM_WORDS.findall(whole)) / count),
        "wordy": min(1.0, len(whole) / count / 900),
        "long": min(1.0, max(0, len(said) - 3) / 5),
        "refused": min(1.0, sum("refused" in turn.kind for turn in turns) / 2),
        "verified": float(any("verification" in turn.kind for turn in turns)),
        "looked": min(1.0, sum(turn.speaker == "TOOL" for turn in turns) / 4),
    }


# ------------------------------------------------------------------ scoring

_WEIGHTS: Mapping[str, Mapping[str, float]] = {
    "policy": {"cites": 0.9, "looked": 0.3, "mismatch": -0.6, "stopped": -0.6},
    "reasoning": {"cites": 0.7, "asks": 0.4, "wordy": 0.3, "mismatch": -0.7},
    "reason": {"granted": 0.5, "escalated": -0.6, "asks": 0.3},
    "constraints": {"asks": 0.6, "verified": 0.5, "looked": 0.3, "refused": -0.3},
    "fidelity": {"mismatch": -1.9, "looked": 0.3, "granted": 0.2},
    "arguments": {"mismatch": -0.8, "refused": -0.7, "verified": 0.5, "asks": 0.3},
    "mapping": {"mismatch": -0.9, "asks": 0.4, "stopped": -1.0},
    "resolution": {"long": -0.7, "asks": 0.4, "stopped": -1.2, "withdrew": -0.7},
    "consistency": {"long": -0.3, "mismatch": -0.4},
    "contradiction": {"mismatch": -0.2},
    "verbosity": {"wordy": -1.1, "strict": 0.3},
    "company": {"denied": 0.5, "full": -0.8, "withdrew": -0.5, "verified": 0.3},
    "tone": {"warm": 0.3},
    "behavioral": {"long": -0.2},
    "conformity": {"strict": 0.6, "denied": 0.4, "full": -0.3},
    "benevolence": {"warm": 0.7, "generous": 0.5, "denied": -0.6, "granted": 0.3},
    "direction": {"granted": 0.4, "escalated": -0.9, "generous": 0.3},
    "security": {"verified": 0.7, "escalated": 0.6, "denied": 0.3, "full": -0.5},
    "universalism": {"warm": 0.3, "strict": 0.2},
}  # fmt: skip
"""What a signal is worth to a metric, by a word in its key; the words add up."""

_TURN_BONUS = 1.2
"""Most turns contradict nothing and claim nothing."""

_HIGH = (
    "[{0}] does it in words that can be checked, and [{1}] keeps to it.",
    "In [{0}] this is done with care; nothing in [{1}] takes it back.",
    "The evidence is [{0}]: it goes beyond what was asked there, and [{1}] builds on it.",
)
_MIDDLE = (
    "[{0}] does what is usual here and no more; [{1}] changes nothing.",
    "Sound in [{0}], without anything that stands out up to [{1}].",
)
_LOW = (
    "[{0}] leaves it open, and [{1}] does not make up for it.",
    "The weakness is [{0}]: it does not hold against what [{1}] says.",
)


@dataclass(frozen=True, slots=True)
class _Judge:
    """One disposition's look at one case."""

    case: _Case
    lenient: float
    key: tuple[object, ...]

    def score(self, metric: str, bonus: float = 0.0, *place: object) -> int:
        """1 to 5."""
        signals = self.case.signals
        worth = sum(
            weight * signals[name]
            for word, weights in _WEIGHTS.items()
            if word in metric
            for name, weight in weights.items()
        )
        # What all dispositions see in the case and no signal says, and what this one alone sees.
        seen = draws.fraction("seen", self.case.key, metric, *place) - 0.5
        whim = draws.fraction(*self.key, metric, *place) - 0.5
        return min(5, max(1, round(2.9 + worth + bonus + self.lenient + 1.8 * seen + 0.7 * whim)))

    def justification(self, score: int, speaker: str, *place: object) -> str:
        """One sentence that cites turns."""
        turns = self.case.spoken(speaker) or [turn.index for turn in self.case.turns] or [0]
        first = draws.choose(turns, *self.key, "cited", *place)
        sentences = _HIGH if score > 3 else _MIDDLE if score == 3 else _LOW
        return draws.choose(sentences, *self.key, "said", *place).format(first, turns[0])

    def metric(self, metric: str) -> Json:
        """The entry of a metric that is asked once."""
        score = self.score(metric)
        speaker = "CUSTOMER" if metric.startswith("customer") else "AGENT"
        return {"justification": self.justification(score, speaker, metric), "score": score}

    def turn(self, index: int, entry: Json) -> Json:
        """The entry of a turn, in the order of the schema."""
        scores = {
            name: self.score(name, _TURN_BONUS, index)
            for name in entry["properties"]
            if name not in ("turn", "justification")
        }
        said = f"[{index}] stands with what was said before."
        if scores and min(scores.values()) < 4:
            said = f"[{index}] shifts what was said before it."
        return {"turn": index, "justification": said, **scores}

    def outcome(self) -> Json:
        """What really came about, as a rule."""
        case = self.case
        found = case.executed if case.signals["mismatch"] and case.executed in _GRANTS else case.outcome
        if draws.fraction(*self.key, "outcome") < 0.04:
            found = ESCALATE if found != ESCALATE else _NONE
        last = case.turns[-1].index if case.turns else 0
        return {"justification": f"[{last}] leaves it at that.", "outcome": found}

    def goal(self, number: int, text: str) -> Json:
        """Whether a goal was met: money depends on the outcome, the rest on how it was handled."""
        about_money = _MONEY.search(text)
        chance = {FULL: 0.9, PARTIAL: 0.45, GIFT_CARD: 0.4, EXCHANGE: 0.5, ESCALATE: 0.15}.get(
            self.case.outcome, 0.05
        )
        if not about_money:
            chance = 0.35 + 0.3 * self.case.signals["cites"] + 0.2 * self.case.signals["asks"]
        met = draws.fraction(*self.key, "goal", text) < chance + 0.2 * self.lenient
        turns = self.case.spoken("AGENT") or [0]
        return {"goal": number, "justification": f"What [{turns[0]}] settles decides it.", "met": met}


def judge_panel(request: ParsedRequest, schema: Json) -> Json:
    """The answer of one panel."""
    shared, _, ask = request.last_text().rpartition(_ASK)
    case = _read(shared)
    judge = _Judge(
        case,
        lenient=1.0 - DISPOSITIONS[request.model].rigor,
        key=("judge", request.model, request.trial, case.key),
    )
    return {
        name: _entry(judge, ask, name, part) or fill(part, ask, request.digest)
        for name, part in schema["properties"].items()
    }


def _entry(judge: _Judge, ask: str, name: str, schema: Json) -> Any:
    """The value of one property; None for one that no panel of ours has."""
    if name in _TURN_LISTS:
        found = _TURN_LISTS[name].search(ask)
        indices = [int(index) for index in found.group(1).split(", ")] if found else []
        return [judge.turn(index, schema["items"]) for index in indices]
    if name == "goals":
        return [judge.goal(number, text) for number, text in enumerate(_GOAL.findall(ask), 1)]
    if name == "outcome":
        return judge.outcome()
    if set(schema.get("properties", ())) == {"justification", "score"}:
        return judge.metric(name)
    return None


# ------------------------------------------------------------------ goals

_WISH = re.compile(
    r"\b(wants|asks|insists|requests|hopes)\b((?:[^.;]|\.(?=\d)){8,160})(?=[.;]|$)", re.IGNORECASE
)
_IMPLICIT: Sequence[tuple[str, str]] = (
    ("fee|deduct|reduc", "Any fee or deduction is stated with its reason before anything is confirmed."),
    ("bundle|set|pair", "What happens to the items that stay is made clear."),
    ("late|delay|promised", "The late delivery is taken into account in the result."),
    ("gift", "The result reaches the right person, be it the buyer or the recipient."),
    ("window|days", "It is explained which deadline applies and from when it is counted."),
    ("", "The decision is explained in terms of the published policy."),
    ("", "The matter is settled in this contact, with clear next steps."),
)


def judge_goals(request: ParsedRequest, schema: Json) -> Json:
    """Two to six goals of the customer, the explicit ones in the words of the case."""
    case = request.last_text()
    quoted = "\n".join(line[2:] for line in case.split("\n") if line.startswith("| "))
    stated = list(dict.fromkeys(_wishes(quoted)))[:4]
    implied = [text for hint, text in _IMPLICIT if re.search(hint, quoted, re.IGNORECASE)]
    goals = [*((text, True) for text in stated), *((text, False) for text in implied[: 6 - len(stated)])]
    many = 4 + draws.number("goals", quoted) % 3
    return {"goals": [{"goal": text, "explicit": explicit} for text, explicit in goals[:many]]}


def _wishes(text: str) -> Iterator[str]:
    for verb, wish in _WISH.findall(text):
        yield f"The customer {verb.lower()} {' '.join(wish.split())}."


JUDGE: Mapping[str, Callable[[ParsedRequest, Json], Json]] = {
    "judge_panel": judge_panel,
    "judge_goals": judge_goals,
}
"""The scripts by the name of the JSON schema that a judge asks with."""
