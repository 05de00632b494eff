"""What judging will ask for and what that costs, as one plan that is made before anything is spent. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from policysweep.errors import InputError
from policysweep.sweep.verdicts import PanelKey
from policysweep.v1 import judge_pb2, run_pb2, scenario_pb2

_CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class JudgePlan:
    """What is missing, and what it will cost."""

    judging: run_pb2.Judging
    """What counts once the plan is begun."""
    missing: Mapping[tuple[str, str], Sequence[str]]
    """Panels without a verdict by judge and unit id, in the order of unit ids, then of judges."""
    units: Mapping[str, run_pb2.Unit]
    """The units that lack verdicts, by id."""
    goal_calls: int
    """Tasks whose goals are still to be extracted."""
    calls: int
    """Model calls when every answer can be used, those for goals included."""
    prompt_characters: int
    """Over all calls for verdicts, whether the model server has them in its cache or not."""
    changes: Sequence[str] = ()
    """How the rubric differs from the one that counted so far, one sentence each."""

    @property
    def verdicts(self) -> int:
        """Verdicts that are missing."""
        return sum(map(len, self.missing.values()))

    def describe(self) -> str:
        """What the user is told before anything is spent."""
        return "\n".join([*self.changes, self._cost()])

    def _cost(self) -> str:
        if not self.missing:
            return "Judging: every verdict is there."
        judges = list(dict.fromkeys(judge for judge, _ in self.missing))
        panels = list(dict.fromkeys(panel for asked in self.missing.values() for panel in asked))
        goals = f", {self.goal_calls:,} of them for the goals of tasks" if self.goal_calls else ""
        return (
            f"Judging {len(self.units):,} conversations by {', '.join(judges)}: {self.verdicts:,} verdicts "
            f"are missing on {', '.join(panels)}. They take {self.calls:,} model calls{goals}, with about "
            f"{self.prompt_characters // _CHARACTERS_PER_TOKEN:,} prompt tokens, cached ones included."
        )


def rubric_changes(was: judge_pb2.Rubric | None, now: judge_pb2.Rubric) -> Iterator[str]:
    """How `now` differs from the rubric that counted so far, one sentence each; nothing if none did."""
    if was is None:
        return
    if was.ref != now.ref:
        yield f"{rubric_name(now)} counts from now on, instead of {rubric_name(was)}."
    texts = {panel.key: panel.digest for panel in was.panels}
    if edited := [panel.key for panel in now.panels if texts.get(panel.key, panel.digest) != panel.digest]:
        yield (
            f"The text of panel {', '.join(edited)} was changed since the run was judged: the verdicts on "
            "the earlier text stay in the store and do not count."
        )


def rubric_name(rubric: judge_pb2.Rubric) -> str:
    """NAME@VERSION."""
    return f"{rubric.ref.name}@{rubric.ref.version}"


def goal_panels(rubric: judge_pb2.Rubric) -> set[str]:
    """Keys of the panels that judge the customer's goals: a score is derived from them."""
    return {metric.panel for metric in rubric.metrics if metric.derived}


class PlanBuilder:
    """Takes in the conversations of a run, one at a time, and adds up what they lack."""

    def __init__(
        self,
        judging: run_pb2.Judging,
        done: Mapping[PanelKey, set[str]],
        scenarios: Mapping[str, scenario_pb2.Scenario],
    ) -> None:
        """`done` holds the units that have a verdict, for each judge and panel that is to be judged."""
        self._judging = judging
        self._done = done
        self._scenarios = scenarios
        self._calls_of = _calls_by_key(judging, done)
        self._goal_panels = goal_panels(judging.rubric)
        self._missing: dict[tuple[str, str], list[str]] = {}
        self._units: dict[str, run_pb2.Unit] = {}
        self._tasks: set[str] = set()
        self._calls = 0
        self._characters = 0

    def lacks(self, unit_id: str) -> bool:
        """Whether a verdict on this unit is missing."""
        return any(unit_id not in units for units in self._done.values())

    def add(self, record: run_pb2.UnitRecord) -> None:
        """Take in a conversation that judges score. InputError when it is of none of the scenarios."""
        unit = record.unit
        if unit.scenario_id not in self._scenarios:
            raise InputError(
                f"the record of unit {unit.unit_id} is of scenario {unit.scenario_id}, which the run does "
                "not have: see policysweep verify"
            )
        keys = [key for key, units in self._done.items() if unit.unit_id not in units]
        calls = sum(self._calls_of[key] for key in keys)
        for key in keys:
            self._missing.setdefault((key.judge, unit.unit_id), []).append(key.panel)
        if not self._goal_panels.isdisjoint(key.panel for key in keys):
            self._tasks.add(unit.task_id)
        # A copy: a message that is a part of a record keeps all of the record in memory.
        self._units[unit.unit_id] = run_pb2.Unit.FromString(unit.SerializeToString())
        self._calls += calls
        self._characters += calls * self._prompt_characters(record)

    def _prompt_characters(self, record: run_pb2.UnitRecord) -> int:
        scenario = self._scenarios[record.unit.scenario_id]
        policy, task, persona = scenario.policy, scenario.task, scenario.persona
        texts = [policy.primary.text, *(document.text for document in policy.related)]
        texts += [task.detail, task.reason, *task.related_policy_issues, scenario.case_brief]
        texts += [
            persona.description,
            scenario.customer_brief.behavior,
            record.episode.resolution.description,
        ]
        for message in record.episode.messages:
            texts += [message.content, *(call.arguments_json for call in message.tool_calls)]
        return self._judging.rubric.prompt_characters + sum(map(len, texts))

    def plan(self, tasks_with_goals: set[str], changes: Sequence[str]) -> JudgePlan:
        """The plan, once all conversations are in."""
        goal_calls = len(self._tasks - tasks_with_goals)
        return JudgePlan(
            judging=self._judging,
            missing=self._missing,
            units=self._units,
            goal_calls=goal_calls,
            calls=self._calls + goal_calls,
            prompt_characters=self._characters,
            changes=changes,
        )


def _calls_by_key(judging: run_pb2.Judging, keys: Mapping[PanelKey, object]) -> dict[PanelKey, int]:
    """Model calls of one verdict: several where scores are not weighted and samples are repeated."""
    infos = {judge.name: judge.info for judge in judging.judges}
    weighted = {panel.key for panel in judging.rubric.panels if panel.weighted}
    return {
        key: 1 if key.panel in weighted and infos[key.judge].logprobs else max(1, infos[key.judge].samples)
        for key in keys
    }
