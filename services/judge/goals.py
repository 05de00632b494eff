"""Extracts the customer's goals of a task, once, so that every agent is judged against the same goals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from policysweep.models.chat import ChatReply, Json, ResponseSchema
from policysweep.v1 import judge_pb2, scenario_pb2
from services.judge import prompt
from services.judge.answer import Absent, read_object
from services.judge.asking import Interrogator, Question, Tally
from services.judge.counting import GOALS, count_answers

LEAST, MOST = 2, 8
"""How many goals a task has."""

_GOAL: Json = {
    "type": "object",
    "properties": {"goal": {"type": "string"}, "explicit": {"type": "boolean"}},
    "required": ["goal", "explicit"],
    "additionalProperties": False,
}
_SCHEMA = ResponseSchema(
    "judge_goals",
    {
        "type": "object",
        "properties": {"goals": {"type": "array", "items": _GOAL, "minItems": LEAST, "maxItems": MOST}},
        "required": ["goals"],
        "additionalProperties": False,
    },
)


@dataclass(frozen=True, slots=True)
class GoalList:
    """Goals as read; empty with a reason."""

    goals: Sequence[judge_pb2.Goal] = ()
    absent: Absent | None = None

    @property
    def missing(self) -> Sequence[Absent]:
        """The reason, if there are no goals."""
        return () if self.absent is None else (self.absent,)


async def extract_goals(
    interrogator: Interrogator, scenario: scenario_pb2.Scenario, seed: int, seconds_left: Callable[[], float]
) -> judge_pb2.ExtractGoalsResponse:
    """Ask the judge for the goals of the scenario's task."""
    tally = Tally()
    question = Question(
        messages=lambda addition: prompt.goals_messages(scenario.task, addition),
        again=prompt.again,
        schema=_SCHEMA,
        seed=seed,
        session_id=f"{scenario.task_id}-goals",
        timeout=seconds_left,
        read=read_goals,
        overflow=lambda absent: GoalList(absent=absent),
    )
    found = await interrogator.ask(question, tally)
    count_answers(GOALS, tally)
    response = judge_pb2.ExtractGoalsResponse(
        goals=found.goals, usage=tally.usage, rehearsal=tally.rehearsal, unusable_answers=tally.unusable
    )
    if found.absent is not None:
        response.absent_reason, response.absent_detail = found.absent.reason, found.absent.detail
    return response


def read_goals(reply: ChatReply) -> GoalList:
    """The goals in an answer. A list with one unusable entry is none: the goals belong together."""
    content = read_object(reply)
    if isinstance(content, Absent):
        return GoalList(absent=content)
    entries = content.get("goals")
    if not isinstance(entries, list) or not LEAST <= len(entries) <= MOST:
        count = len(entries) if isinstance(entries, list) else "no list of"
        return _unusable(f"{count} goals instead of {LEAST} to {MOST}")
    goals = [_goal(entry) for entry in entries]
    if None in goals:
        return _unusable(f"goal {goals.index(None) + 1} is not a text with true or false for explicit")
    usable = [goal for goal in goals if goal is not None]
    if len({goal.text.casefold() for goal in usable}) < len(usable):
        return _unusable("a goal is listed twice")
    return GoalList(usable)


def _goal(entry: object) -> judge_pb2.Goal | None:
    text, explicit = (entry.get("goal"), entry.get("explicit")) if isinstance(entry, dict) else (None, None)
    if not isinstance(text, str) or not text.strip() or not isinstance(explicit, bool):
        return None
    return judge_pb2.Goal(text=" ".join(text.split()), explicit=explicit)


def _unusable(detail: str) -> GoalList:
    return GoalList(absent=Absent(judge_pb2.ABSENT_REASON_UNPARSEABLE, detail))
