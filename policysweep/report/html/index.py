"""What the page holds of every unit: enough to filter, to list and to find its transcript, and no text of it.

The index is plain JSON, written here and read by app/data.js:

    tasks       by id: summary, issues (the policy clauses behind it), complexity, ambiguity
    personas    customer personas by id: name
    scenarios   in the order of the data set: id, task, persona, file (its transcripts)
    units       see `index_entry`; sorted by scenario, agent, agent persona and trial
    dimensions  what `scores` of a unit are: key, title; empty when nothing is judged
    metrics     by key: title, dimension
    min_scale_mass  a score with less probability mass on the scale is flagged
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from policysweep.report.criteria import Criteria
from policysweep.report.html.unit_scores import unit_scores
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import run_pb2, scenario_pb2

Json = dict[str, Any]


def chunk_name(position: int) -> str:
    """The file of a scenario's transcripts, beside report.html; `position` is the scenario's in the data set.

    Never made from a name, because names come from outside.
    """
    return f"report-data/{position:04}.js"


def index_head(scenarios: Sequence[scenario_pb2.Scenario], criteria: Criteria | None) -> Json:
    """The index without units. `criteria` is what the run is judged by, None when it is not."""
    return {
        "tasks": {scenario.task_id: _task(scenario.task) for scenario in scenarios},
        "personas": {scenario.persona.persona_id: scenario.persona.name for scenario in scenarios},
        "scenarios": [_scenario(position, scenario) for position, scenario in enumerate(scenarios)],
        "dimensions": _titles(criteria.rubric.dimensions) if criteria else [],
        "metrics": _metrics(criteria) if criteria else {},
        "min_scale_mass": criteria.rubric.min_scale_mass if criteria else 0.0,
        "units": [],
    }


def index_entry(
    record: run_pb2.UnitRecord,
    position: int,
    verdicts: Iterable[run_pb2.VerdictRecord] = (),
    criteria: Criteria | None = None,
) -> Json:
    """One unit: id, scenario (its position), agent, stance (its persona), trial, outcome, end, fault,
    mismatch, turns and scores by dimension. What is empty, 0 or false is left out.
    """
    unit, episode = record.unit, record.episode
    entry = {
        "id": unit.unit_id,
        "scenario": position,
        "agent": unit.agent,
        "stance": ep.AgentPersona.Name(unit.agent_persona).removeprefix("AGENT_PERSONA_"),
        "trial": unit.trial,
        "outcome": episode.outcome and ep.Outcome.Name(episode.outcome).removeprefix("OUTCOME_"),
        "end": ep.EndReason.Name(episode.end.reason).removeprefix("END_REASON_"),
        "fault": episode.end.fault and ep.FaultParty.Name(episode.end.fault).removeprefix("FAULT_PARTY_"),
        "mismatch": episode.reconciliation.mismatch,
        "turns": episode.turns,
        "scores": unit_scores(verdicts, criteria) if criteria else None,
    }
    # The scenario's position may be 0, which is a value.
    return {key: value for key, value in entry.items() if value or key == "scenario"}


def _task(task: scenario_pb2.Task) -> Json:
    return {
        "summary": task.summary,
        "issues": list(task.related_policy_issues),
        "complexity": task.complexity_level,
        "ambiguity": task.primary_ambiguity_type,
    }


def _scenario(position: int, scenario: scenario_pb2.Scenario) -> Json:
    return {
        "id": scenario.scenario_id,
        "task": scenario.task_id,
        "persona": scenario.persona.persona_id,
        "file": chunk_name(position),
    }


def _titles(entries: Iterable[Any]) -> list[Json]:
    return [{"key": entry.key, "title": entry.title or entry.key} for entry in entries]


def _metrics(criteria: Criteria) -> Json:
    return {
        metric.key: {"title": metric.title or metric.key, "dimension": metric.dimension}
        for metric in criteria.rubric.metrics
    }
