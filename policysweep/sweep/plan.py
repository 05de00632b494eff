"""The plan: which units a run consists of. Pure, lazy, and the same on every machine.

A plan is a function of the manifest and the scenarios, never stored. What a unit meets (seed, agent persona)
comes from its scenario and trial and never from the agent, so that all agents meet the same customer, persona
and order. Hashes are SHA-256 over a JSON array, so no choice of names can make two units collide.

Order: trials outermost, then scenarios in the order of the data set, then agent personas, then agents. All
agents progress together, units of one scenario are neighbours, and a sweep that is stopped early holds
complete comparisons.

The exception is a run that was played elsewhere and imported: which agent persona met which scenario how
often is a fact there and follows from nothing, so the run's inputs list it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import orjson

from policysweep.errors import InputError
from policysweep.sweep.inputs import RunInputs
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import run_pb2, scenario_pb2

PERSONAS: tuple[ep.AgentPersona.ValueType, ...] = (
    ep.AGENT_PERSONA_DIRECT,
    ep.AGENT_PERSONA_FAIR,
    ep.AGENT_PERSONA_AGREEABLE,
    ep.AGENT_PERSONA_HELPFUL,
    ep.AGENT_PERSONA_VERY_HELPFUL,
)
"""The five agent personas of DRIP-R, in the order in which a balanced assignment deals them out."""


class ScenarioKey(NamedTuple):
    """What the plan needs to know of a scenario."""

    scenario_id: str
    task_id: str
    persona_id: str


@dataclass(frozen=True, slots=True)
class Shard:
    """The `index`-th of `count` disjoint parts of a plan, counted from 0 as a Kubernetes Indexed Job does."""

    index: int
    count: int


WHOLE = Shard(0, 1)
"""The shard that holds every unit."""


def scenario_keys(scenarios: Iterable[scenario_pb2.Scenario]) -> list[ScenarioKey]:
    """The keys of scenarios, in their order."""
    return [ScenarioKey(each.scenario_id, each.task_id, each.persona.persona_id) for each in scenarios]


def planned_units(manifest: run_pb2.RunManifest, inputs: RunInputs) -> Iterator[run_pb2.Unit]:
    """All units of a run from what lies in its folder: derived, or listed when the run was imported.

    Raises InputError for inputs that contradict themselves or the manifest.
    """
    keys = scenario_keys(inputs.scenarios)
    return _imported_units(manifest, keys, inputs) if inputs.imported else plan_units(manifest, keys)


def _imported_units(
    manifest: run_pb2.RunManifest, scenarios: Sequence[ScenarioKey], inputs: RunInputs
) -> Iterator[run_pb2.Unit]:
    _refuse_repetitions(scenarios)
    agents = {agent.name for agent in manifest.agents}
    listed = [(key, unit) for key in scenarios for unit in inputs.imported.get(key.scenario_id, ())]
    seen: set[str] = set()
    # Sorting is stable: scenarios keep their order.
    for key, each in sorted(listed, key=lambda pair: pair[1].trial):
        unit = _unit(manifest, key, each.agent, each.agent_persona, each.trial)
        if unit.agent not in agents or unit.unit_id in seen:
            why = "which occurs twice" if unit.unit_id in seen else "an agent that the manifest does not have"
            raise InputError(f"scenario {key.scenario_id} lists trial {unit.trial} of {unit.agent!r}, {why}")
        seen.add(unit.unit_id)
        yield unit


def plan_units(manifest: run_pb2.RunManifest, scenarios: Sequence[ScenarioKey]) -> Iterator[run_pb2.Unit]:
    """All units of a run, in the order in which they are started. InputError for a repeated scenario id."""
    _refuse_repetitions(scenarios)
    tasks = _ranks(key.task_id for key in scenarios)
    customers = _ranks(key.persona_id for key in scenarios)
    for trial in range(manifest.trials):
        for key in scenarios:
            turn = tasks[key.task_id] + customers[key.persona_id] + trial
            for persona in _personas(manifest, turn):
                for agent in manifest.agents:
                    yield _unit(manifest, key, agent.name, persona, trial)


def _unit(
    manifest: run_pb2.RunManifest,
    key: ScenarioKey,
    agent: str,
    persona: ep.AgentPersona.ValueType,
    trial: int,
) -> run_pb2.Unit:
    digest = manifest.dataset.digest
    return run_pb2.Unit(
        unit_id=unit_id(digest, key.scenario_id, agent, persona, trial),
        scenario_id=key.scenario_id,
        task_id=key.task_id,
        agent=agent,
        agent_persona=persona,
        trial=trial,
        seed=unit_seed(digest, manifest.seed, key.scenario_id, trial),
    )


def unit_id(
    dataset_digest: str, scenario_id: str, agent: str, persona: ep.AgentPersona.ValueType, trial: int
) -> str:
    """The id of a unit: 32 hex digits."""
    return _digest("unit", dataset_digest, scenario_id, agent, ep.AgentPersona.Name(persona), trial)[:32]


def unit_seed(dataset_digest: str, sweep_seed: int, scenario_id: str, trial: int) -> int:
    """The seed of a unit, 31 bits, equal for all agents and agent personas."""
    return int(_digest("seed", dataset_digest, sweep_seed, scenario_id, trial)[:8], 16) & 0x7FFFFFFF


def in_shard(unit_id: str, shard: Shard) -> bool:
    """Whether a unit belongs to a shard: the id is a hash, so its remainder spreads evenly."""
    return int(unit_id, 16) % shard.count == shard.index


def parse_shard(text: str) -> Shard:
    """Read `i/N`, i counted from 0; InputError when it is not that."""
    index, slash, count = text.partition("/")
    if not (slash and index.isdecimal() and count.isdecimal() and int(count) > 0):
        raise InputError(f"shard {text!r}: must be i/N with whole numbers, such as 0/8 for the first of 8")
    if int(index) >= int(count):
        raise InputError(f"shard {text}: counts from 0, so the last of {count} is {int(count) - 1}/{count}")
    return Shard(int(index), int(count))


def _personas(manifest: run_pb2.RunManifest, turn: int) -> Sequence[ep.AgentPersona.ValueType]:
    """The personas that a scenario and trial is played with.

    Balanced deals (task rank + customer rank + trial) mod 5: with 40 tasks and 10 customers each persona
    meets each task twice and each customer 8 times in every trial.
    """
    if manifest.persona_assignment == run_pb2.PERSONA_ASSIGNMENT_FIXED:
        return [manifest.fixed_persona]
    if manifest.persona_assignment == run_pb2.PERSONA_ASSIGNMENT_BALANCED:
        return [PERSONAS[turn % len(PERSONAS)]]
    if manifest.persona_assignment == run_pb2.PERSONA_ASSIGNMENT_SWEPT:
        return PERSONAS
    raise InputError("the manifest does not state how agent personas are assigned")


def _ranks(names: Iterable[str]) -> dict[str, int]:
    """Each distinct name's place in sorted order, so that the order of a data set's lines does not matter."""
    return {name: rank for rank, name in enumerate(sorted(set(names)))}


def _refuse_repetitions(scenarios: Sequence[ScenarioKey]) -> None:
    seen: set[str] = set()
    for key in scenarios:
        if key.scenario_id in seen:
            raise InputError(f"scenario {key.scenario_id} occurs twice: scenario ids must be unique")
        seen.add(key.scenario_id)


def _digest(*parts: str | int) -> str:
    return hashlib.sha256(orjson.dumps(parts)).hexdigest()
