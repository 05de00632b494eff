"""The score sheet: what one panel asks about one episode.

A rubric says what is asked in general; an episode may have no resolution, no tool calls or no spoken turns.
The sheet settles it once: a slot for each score that the judge is asked for, and those that do not apply.
Prompt, JSON schema and the reading of the answer all follow the sheet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from policysweep.domains.returns.resolution import outcome_name
from policysweep.models.chat import Json
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2
from services.judge.rubric import SCALE, Metric, Panel, Requirement

NO_OUTCOME = "NONE"
"""What the judge calls it when nothing was settled."""

OUTCOMES = {
    outcome_name(outcome): outcome for outcome in ep.Outcome.values() if outcome != ep.OUTCOME_UNSPECIFIED
}
"""The seven outcomes by wire name."""

TURN_LISTS = {ep.ROLE_AGENT: "agent_turns", ep.ROLE_CUSTOMER: "customer_turns"}
"""The answer's list of each side's turns."""


@dataclass(frozen=True, slots=True)
class Slot:
    """The place of one score. `message_index` is None for a metric that does not look at a single turn."""

    metric: str
    subject: ep.Role.ValueType
    message_index: int | None = None


@dataclass(frozen=True, slots=True)
class ScoreSheet:
    """What `panel` asks about one episode.

    `turns` holds the message indices of the spoken turns of each side that a metric asks about. `derived` are
    the metrics that are computed.
    """

    panel: Panel
    slots: Sequence[Slot]
    turns: Mapping[ep.Role.ValueType, Sequence[int]]
    not_applicable: Sequence[Slot]
    derived: Sequence[Metric]
    goals: Sequence[judge_pb2.Goal]

    @property
    def empty(self) -> bool:
        """Whether there is nothing to ask the judge."""
        return not (self.slots or self.panel.outcome or self.goals)

    @property
    def single_metrics(self) -> list[str]:
        """Keys of the metrics that are asked once, in the rubric's order."""
        return [slot.metric for slot in self.slots if slot.message_index is None]

    def turn_metrics(self, side: ep.Role.ValueType) -> list[str]:
        """Keys of the metrics that are asked for each turn of one side, in the rubric's order."""
        keys = (s.metric for s in self.slots if s.message_index is not None and s.subject == side)
        return list(dict.fromkeys(keys))

    def schema(self) -> Json:
        """The JSON schema of the answer, in the subset that grammar backends compile: no references, no
        patterns. Justifications come before scores, so that the judge reasons before it commits itself.
        Turns and goals go by the numbers that they have: where any integer is allowed, a weak model writes
        digits to the token limit.
        """
        properties: dict[str, Json] = {}
        if self.goals:
            number = _one_of(range(1, len(self.goals) + 1))
            properties["goals"] = _list_of(_object({"goal": number, **_GOAL}), len(self.goals))
        for side, name in TURN_LISTS.items():
            if keys := self.turn_metrics(side):
                turns = self.turns[side]
                entry = {"turn": _one_of(turns), "justification": _TEXT, **dict.fromkeys(keys, _SCORE)}
                properties[name] = _list_of(_object(entry), len(turns))
        for key in self.single_metrics:
            properties[key] = _JUSTIFIED
        if self.panel.outcome:
            properties["outcome"] = _OUTCOME
        return _object(properties)


def score_sheet(panel: Panel, episode: ep.Episode, goals: Sequence[judge_pb2.Goal]) -> ScoreSheet:
    """The sheet of `panel` for `episode`. `goals` are the customer's, which one panel judges."""
    has = _features(episode)
    turns = {side: spoken_turns(episode, side) for side in TURN_LISTS}
    slots: list[Slot] = []
    missing: list[Slot] = []
    derived: list[Metric] = []
    for metric in panel.metrics:
        if not metric.needs <= has:
            missing += (Slot(metric.key, side) for side in metric.roles)
        elif metric.derived is not None:
            derived.append(metric)
        elif metric.level != "turn":
            slots.append(Slot(metric.key, metric.roles[0]))
        else:
            for side in metric.roles:
                slots += (Slot(metric.key, side, index) for index in turns[side])
                missing += () if turns[side] else (Slot(metric.key, side),)
    return ScoreSheet(panel, slots, turns, missing, derived, goals if panel.goals else ())


def spoken_turns(episode: ep.Episode, side: ep.Role.ValueType) -> list[int]:
    """Message indices of what one side said to the other; a message of tool calls alone is no turn."""
    return [
        index
        for index, message in enumerate(episode.messages)
        if message.role == side and message.content.strip()
    ]


def _features(episode: ep.Episode) -> set[Requirement]:
    return set(_features_of(episode))


def _features_of(episode: ep.Episode) -> Iterator[Requirement]:
    if episode.HasField("resolution"):
        yield "resolution"
    if any(message.tool_calls for message in episode.messages):
        yield "tool_calls"
    if episode.agent_persona != ep.AGENT_PERSONA_UNSPECIFIED:
        yield "agent_persona"


def _object(properties: Json) -> Json:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list_of(entry: Json, count: int) -> Json:
    return {"type": "array", "items": entry, "minItems": count, "maxItems": count}


def _one_of(numbers: Iterable[int]) -> Json:
    return {"type": "integer", "enum": list(numbers)}


_TEXT: Json = {"type": "string"}
_SCORE: Json = _one_of(SCALE)
_JUSTIFIED = _object({"justification": _TEXT, "score": _SCORE})
_GOAL: Json = {"justification": _TEXT, "met": {"type": "boolean"}}
_OUTCOME = _object({"justification": _TEXT, "outcome": {"type": "string", "enum": [*OUTCOMES, NO_OUTCOME]}})
