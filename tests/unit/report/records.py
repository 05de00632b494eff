"""Records for the tests of the report, built by hand or drawn from a small model of a sweep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from policysweep.report.rows import Row, row
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import run_pb2

FULL = ep.OUTCOME_RETURN_REFUND_FULL_BANK
PARTIAL = ep.OUTCOME_RETURN_REFUND_PARTIAL_BANK
GIFT = ep.OUTCOME_RETURN_REFUND_GIFT_CARD
DENY = ep.OUTCOME_DENY_REFUND
ESCALATE = ep.OUTCOME_ESCALATE_HUMAN_AGENT


def record(
    agent: str = "fair",
    task: int = 0,
    scenario: int = 0,
    trial: int = 0,
    outcome: ep.Outcome.ValueType = FULL,
    fault: ep.FaultParty.ValueType = ep.FAULT_PARTY_UNSPECIFIED,
    reason: ep.EndReason.ValueType = ep.END_REASON_RESOLVED,
    persona: ep.AgentPersona.ValueType = ep.AGENT_PERSONA_FAIR,
) -> run_pb2.UnitRecord:
    made = run_pb2.UnitRecord(attempts=1)
    made.unit.unit_id = f"{agent}-{task}-{scenario}-{persona}-{trial}"
    made.unit.scenario_id = f"scenario_{task:03}_{scenario}"
    made.unit.task_id = f"task_{task:03}"
    made.unit.agent = agent
    made.unit.agent_persona = persona
    made.unit.trial = trial
    made.episode.outcome = outcome
    made.episode.end.reason = reason
    made.episode.end.fault = fault
    made.episode.turns = 4
    made.episode.duration_seconds = 2.5
    return made


def agent_fault(**where: object) -> run_pb2.UnitRecord:
    return record(
        outcome=ep.OUTCOME_UNSPECIFIED,
        fault=ep.FAULT_PARTY_AGENT,
        reason=ep.END_REASON_TURN_LIMIT,
        **where,  # type: ignore[arg-type]  # the keywords of `record`, passed through
    )


def failure(agent: str, unit_id: str, party: ep.FaultParty.ValueType, *reasons: str) -> run_pb2.UnitFailure:
    made = run_pb2.UnitFailure(unit=run_pb2.Unit(unit_id=unit_id, agent=agent))
    for reason in reasons:
        made.attempts.add(party=party, reason=reason)
    return made


def manifest(
    *agents: str,
    trials: int = 1,
    rehearsal: bool = False,
    assignment: run_pb2.PersonaAssignment.ValueType = run_pb2.PERSONA_ASSIGNMENT_BALANCED,
) -> run_pb2.RunManifest:
    made = run_pb2.RunManifest(
        format=1, run="demo", trials=trials, persona_assignment=assignment, seed=7, rehearsal=rehearsal
    )
    made.dataset.name, made.dataset.digest = "builtin", "ab" * 32
    made.dataset.scenarios, made.dataset.tasks = 400, 40
    for name in agents:
        made.agents.add(name=name).info.model = f"model-of-{name}"
    return made


def rows_of(outcomes: Mapping[str, Sequence[int]], per_task: int = 1) -> list[Row]:
    """One row per agent and scenario; consecutive `per_task` scenarios share a task. 0 is an agent fault."""
    rows = []
    for agent, listed in outcomes.items():
        for number, outcome in enumerate(listed):
            task, scenario = divmod(number, per_task)
            if outcome:
                made = record(agent, task, scenario, outcome=ep.Outcome.ValueType(outcome))
            else:
                made = agent_fault(agent=agent, task=task, scenario=scenario)
            rows.append(row(made))
    return rows


def sweep(
    agents: Sequence[str], tasks: int = 40, per_task: int = 10, trials: int = 1, seed: int = 0
) -> Iterator[run_pb2.UnitRecord]:
    """A drawn sweep: tasks pull all agents their way, each agent has its own leaning, some units go wrong."""
    generator = np.random.default_rng(seed)
    leanings = generator.dirichlet(np.full(7, 1.2), size=len(agents))
    for task in range(tasks):
        pull = generator.dirichlet(np.full(7, 0.5))
        for scenario in range(per_task):
            for position, agent in enumerate(agents):
                for trial in range(trials):
                    chances = 0.55 * leanings[position] + 0.45 * pull
                    drawn = int(generator.choice(7, p=chances / chances.sum())) + 1
                    made = record(agent, task, scenario, trial, ep.Outcome.ValueType(drawn))
                    _go_wrong(made, float(generator.random()))
                    _calls(made, generator)
                    yield made


def _go_wrong(made: run_pb2.UnitRecord, luck: float) -> None:
    end = made.episode.end
    if luck < 0.02:
        end.fault, end.reason = ep.FAULT_PARTY_AGENT, ep.END_REASON_TURN_LIMIT
    elif luck < 0.025:
        end.fault, end.reason = ep.FAULT_PARTY_AGENT, ep.END_REASON_CONTEXT_OVERFLOW
    elif luck < 0.03:
        end.fault, end.reason = ep.FAULT_PARTY_CUSTOMER, ep.END_REASON_ERROR_LIMIT
    elif luck < 0.05:
        made.episode.errors.agent_malformed_calls = 1
        made.episode.reconciliation.mismatch = True
        made.episode.reconciliation.declared = DENY
        made.episode.reconciliation.executed = FULL
    if end.fault:
        made.episode.outcome = ep.OUTCOME_UNSPECIFIED


def _calls(made: run_pb2.UnitRecord, generator: np.random.Generator) -> None:
    for step in range(6):
        for role in (ep.ROLE_AGENT, ep.ROLE_CUSTOMER):
            call = made.episode.model_calls.add(role=role)
            call.usage.model_calls = 1
            call.usage.prompt_tokens = 3000 + 200 * step
            call.usage.completion_tokens = int(generator.integers(20, 200))
            if role == ep.ROLE_AGENT:
                call.usage.cached_prompt_tokens = 2800 + 190 * step
