"""What the scenarios of a run tell of the cases: the groups to break figures down by, and the clauses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from policysweep.errors import InputError
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import scenario_pb2


@dataclass(frozen=True, slots=True)
class Group:
    """Units that share something, named by `key`. `order` sorts the groups of one kind, then `key` does."""

    key: str
    title: str = field(compare=False)
    order: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Case:
    """What the report needs of a scenario. Texts are the data set's own."""

    task_id: str
    summary: str
    issues: tuple[str, ...]
    complexity: Group | None
    ambiguity: tuple[Group, ...]
    customer: Group | None


class Design:
    """The scenarios of a run by id."""

    def __init__(self, scenarios: Iterable[scenario_pb2.Scenario]) -> None:
        self._cases = {scenario.scenario_id: _case(scenario) for scenario in scenarios}
        self.tasks = {case.task_id: case for case in self._cases.values()}
        """One case of each task, for what the scenarios of a task share."""

    def case(self, scenario_id: str) -> Case:
        """Raises InputError for a scenario that the run does not have."""
        if scenario_id not in self._cases:
            raise InputError(
                f"A record is of scenario {scenario_id!r}, which the run's scenarios do not have; "
                "run `policysweep verify` on the run."
            )
        return self._cases[scenario_id]


def agent_persona(number: int) -> Group:
    """The group of an agent persona."""
    if number not in ep.AgentPersona.values():
        return Group(str(number), str(number), number)
    key = ep.AgentPersona.Name(ep.AgentPersona.ValueType(number)).removeprefix("AGENT_PERSONA_")
    return Group(key, key.replace("_", " ").capitalize(), number)


def _case(scenario: scenario_pb2.Scenario) -> Case:
    task, persona = scenario.task, scenario.persona
    level = task.complexity_level
    return Case(
        task_id=scenario.task_id,
        summary=task.summary,
        issues=tuple(task.related_policy_issues),
        complexity=Group(level, level, -task.complexity_ordinal) if level else None,
        ambiguity=_named(task.all_ambiguity_types or [task.primary_ambiguity_type]),
        customer=Group(persona.persona_id, persona.name or persona.persona_id)
        if persona.persona_id
        else None,
    )


def _named(types: Sequence[str]) -> tuple[Group, ...]:
    return tuple(Group(name, name) for name in dict.fromkeys(types) if name)
