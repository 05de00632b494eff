"""A small run that the tests of this folder share: 4 scenarios x 2 agents x 2 trials."""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf.timestamp_pb2 import Timestamp

from policysweep.sweep.inputs import RunInputs
from policysweep.sweep.ledger import RunLedger
from policysweep.sweep.plan import plan_units, scenario_keys
from policysweep.sweep.store import ResultStore
from policysweep.v1 import agent_pb2, run_pb2, scenario_pb2, simulator_pb2, world_pb2
from policysweep.v1 import episode_pb2 as ep


def scenario(number: int) -> scenario_pb2.Scenario:
    return scenario_pb2.Scenario(
        scenario_id=f"s{number}",
        task_id=f"t{number % 2}",
        persona=scenario_pb2.Persona(persona_id=f"p{number // 2}", personality={"openness": 3, "zeal": 1}),
        first_customer_message="Grüße,\nzwei Zeilen \u2028 und mehr",
    )


def inputs() -> RunInputs:
    worlds = {f"t{task}": world_pb2.OrderWorld(today=f"2026-03-0{task + 1}") for task in range(2)}
    return RunInputs([scenario(number) for number in range(4)], worlds)


def manifest() -> run_pb2.RunManifest:
    return run_pb2.RunManifest(
        format=1,
        run="small",
        dataset=run_pb2.DatasetInfo(name="builtin", digest="ab" * 32, scenarios=4, tasks=2),
        agents=[
            run_pb2.AgentEntry(
                name=name,
                info=agent_pb2.AgentInfo(
                    model=f"rehearsal-{name}",
                    sampling=agent_pb2.Sampling(temperature=0.0, top_p=1.0, max_tokens=1024),
                    rehearsal=True,
                    version="1",
                ),
            )
            for name in ("strict", "fair")
        ],
        simulator=simulator_pb2.SimulatorInfo(customer_model="rehearsal-customer", prompt_digest="cd" * 32),
        trials=2,
        persona_assignment=run_pb2.PERSONA_ASSIGNMENT_BALANCED,
        limits=simulator_pb2.EpisodeLimits(max_turns=20, agent_call_seconds=120),
        seed=7,
        version="0.1.0",
        created_at=Timestamp(seconds=1_780_000_000),
    )


def units() -> Sequence[run_pb2.Unit]:
    return list(plan_units(manifest(), scenario_keys(inputs().scenarios)))


def record_of(unit: run_pb2.Unit) -> run_pb2.UnitRecord:
    return run_pb2.UnitRecord(
        unit=unit,
        episode=ep.Episode(
            episode_id=unit.unit_id,
            scenario_id=unit.scenario_id,
            task_id=unit.task_id,
            agent_persona=unit.agent_persona,
            seed=unit.seed,
            messages=[ep.Message(role=ep.ROLE_CUSTOMER, content="Hello")],
            end=ep.EpisodeEnd(reason=ep.END_REASON_RESOLVED),
            outcome=ep.OUTCOME_DENY_REFUND,
        ),
        attempts=1,
    )


def failure_of(unit: run_pb2.Unit, *messages: str) -> run_pb2.UnitFailure:
    return run_pb2.UnitFailure(
        unit=unit,
        attempts=[
            run_pb2.FailedAttempt(
                party=ep.FAULT_PARTY_INFRASTRUCTURE, reason="AGENT_TIMEOUT", message=message
            )
            for message in messages
        ],
    )


def memory() -> ResultStore:
    return ResultStore.from_url("memory://")


async def complete_run(store: ResultStore) -> RunLedger:
    """A run in which every unit has its record."""
    ledger = RunLedger(store)
    await ledger.begin(manifest(), inputs())
    for unit in units():
        assert await ledger.write_record(record_of(unit))
    return ledger
