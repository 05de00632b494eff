"""The memory methods that PolicyBank is compared with (arXiv 2604.15505, baselines)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from policysweep.v1 import policybank_pb2 as pb
from services.policybank.answers import LEAST_STEPS
from services.policybank.strategies.strategy import Lesson
from services.policybank.transcript import transcript

_FAILED = "The task was not solved, and this method learns from solved tasks only."


@dataclass(frozen=True, slots=True)
class NoMemory:
    """Remembers nothing: the agent has the policy in its prompt and that is all."""

    starts_from_policy: bool = False
    recall_limit: int = 0

    async def learn(self, lesson: Lesson) -> pb.Revision:
        """Nothing."""
        return pb.Revision(rationale="This method remembers nothing.")


@dataclass(frozen=True, slots=True)
class Synapse:
    """Solved tasks as exemplars, recalled by the similarity of the task (Synapse, arXiv 2306.07863).

    The original shows k = 3 exemplars, later comparisons k = 1. A trajectory that is longer than
    `characters` is cut there; tool results are cut short as everywhere.
    """

    recall_limit: int
    characters: int
    starts_from_policy: bool = False

    async def learn(self, lesson: Lesson) -> pb.Revision:
        """The trajectory itself, if the task was solved."""
        if not lesson.success:
            return pb.Revision(rationale=_FAILED)
        steps = transcript(lesson.request.episode)
        if len(steps) > self.characters:
            steps = f"{steps[: self.characters]}\n(cut here)"
        text = f"A task that was solved: {lesson.request.task_query}\n{steps}"
        return pb.Revision(rationale="The task was solved.", after=lesson.memory(text))


@dataclass(frozen=True, slots=True)
class AgentWorkflowMemory:
    """Workflows induced from solved tasks, with variables for what is particular (AWM, arXiv 2409.07429).

    A workflow has at least two steps. All workflows are injected unless `recall_limit` says otherwise. One
    that the bank holds word for word is not added again.
    """

    recall_limit: int
    starts_from_policy: bool = False

    async def learn(self, lesson: Lesson) -> pb.Revision:
        """The new workflows of a solved task, as one entry."""
        if not lesson.success:
            return pb.Revision(rationale=_FAILED)
        calls = sum(len(message.tool_calls) for message in lesson.request.episode.messages)
        if calls < LEAST_STEPS:
            return pb.Revision(rationale=f"The task took {calls} tool calls, too few for a workflow.")
        found = await lesson.curator.workflows(lesson.request, lesson.work)
        known = {text for entry in lesson.state.entries.values() for text in entry.text.split("\n\n")}
        if not (new := [text for text in dict.fromkeys(found) if text not in known]):
            return pb.Revision(rationale="The task holds no workflow that the bank does not hold.")
        return pb.Revision(
            rationale=f"{_counted(new, 'workflow')} induced from a solved task.",
            after=lesson.memory("\n\n".join(new)),
        )


@dataclass(frozen=True, slots=True)
class ReasoningBank:
    """Reasoning items {title, description, content} from solved and failed tasks (arXiv 2509.25140).

    At most `items` a task. A recall gives the items of the past tasks whose queries are nearest, one by
    default.
    """

    recall_limit: int
    items: int
    starts_from_policy: bool = False

    async def learn(self, lesson: Lesson) -> pb.Revision:
        """The items of a task, as one entry."""
        found = await lesson.curator.reasoning(
            lesson.request, self.items, lesson.work, success=lesson.success
        )
        if not found:
            return pb.Revision(rationale="The curator saw nothing in the task that carries over.")
        outcome = "solved" if lesson.success else "failed"
        return pb.Revision(
            rationale=f"{_counted(found, 'reasoning item')} from a {outcome} task.",
            after=lesson.memory("\n\n".join(found)),
        )


def _counted(things: Iterable[str], name: str) -> str:
    number = len(list(things))
    return f"{number} {name}{'s' if number > 1 else ''}"
