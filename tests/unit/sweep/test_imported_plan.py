"""The plan of an imported run: listed in its inputs, and proven like any other."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from policysweep.errors import InputError
from policysweep.sweep.inputs import (
    RunInputs,
    decode_inputs,
    describe_difference,
    encode_scenarios,
    encode_worlds,
)
from policysweep.sweep.ledger import RunLedger
from policysweep.sweep.plan import plan_units, planned_units, scenario_keys
from policysweep.sweep.verify import verify_run
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import run_pb2

from .samples import inputs, manifest, memory, record_of, scenario


def played(
    agent: str = "strict", persona: ep.AgentPersona.ValueType = ep.AGENT_PERSONA_FAIR, trial: int = 0
) -> run_pb2.Unit:
    return run_pb2.Unit(agent=agent, agent_persona=persona, trial=trial)


def imported(*of_s0: run_pb2.Unit) -> RunInputs:
    """Two scenarios, unevenly played: no rule of ours gives this plan."""
    units: dict[str, Sequence[run_pb2.Unit]] = {
        "s0": of_s0
        or (played(), played(trial=1), played(persona=ep.AGENT_PERSONA_DIRECT), played(agent="fair")),
        "s1": (played(),),
    }
    return RunInputs([scenario(0), scenario(1)], {}, units)


def its_manifest() -> run_pb2.RunManifest:
    """The manifest of a run that does not say how agent personas were assigned."""
    found = manifest()
    found.persona_assignment = run_pb2.PERSONA_ASSIGNMENT_UNSPECIFIED
    found.dataset.scenarios, found.dataset.tasks = 2, 2
    return found


def test_the_list_survives_its_file() -> None:
    again = decode_inputs(encode_scenarios(imported()), encode_worlds(imported()), "run")
    assert again.imported == {name: list(units) for name, units in imported().imported.items()}
    assert list(again.scenarios) == list(imported().scenarios)
    assert again.worlds == {}
    assert encode_scenarios(again) == encode_scenarios(imported())


def test_listed_units_have_the_ids_and_seeds_of_derived_ones() -> None:
    derived = {unit.unit_id: unit for unit in plan_units(manifest(), scenario_keys(inputs().scenarios))}
    some = next(unit for unit in derived.values() if unit.scenario_id == "s0" and unit.trial == 1)
    run = imported(run_pb2.Unit(agent=some.agent, agent_persona=some.agent_persona, trial=some.trial))
    assert [unit for unit in planned_units(its_manifest(), run) if unit.scenario_id == "s0"] == [some]


def test_trials_are_outermost_and_scenarios_keep_their_order() -> None:
    order = [(unit.trial, unit.scenario_id) for unit in planned_units(its_manifest(), imported())]
    assert order == [(0, "s0"), (0, "s0"), (0, "s0"), (0, "s1"), (1, "s0")]


def test_a_run_without_a_list_is_derived() -> None:
    derived = list(plan_units(manifest(), scenario_keys(inputs().scenarios)))
    assert list(planned_units(manifest(), inputs())) == derived


async def test_a_complete_imported_run_is_proven_without_worlds() -> None:
    ledger = RunLedger(memory())
    await ledger.begin(its_manifest(), imported())
    units = list(planned_units(its_manifest(), imported()))
    for unit in units:
        assert await ledger.write_record(record_of(unit))
    result = await verify_run(ledger)
    assert result.ok
    assert (result.planned, result.recorded) == (5, 5)


async def test_a_record_that_the_list_does_not_have_is_a_problem() -> None:
    ledger = RunLedger(memory())
    await ledger.begin(its_manifest(), imported(played()))
    for unit in planned_units(its_manifest(), imported()):
        await ledger.write_record(record_of(unit))
    result = await verify_run(ledger)
    assert (result.planned, result.recorded, len(result.problems)) == (2, 2, 3)


@pytest.mark.parametrize(
    ("units", "expected"),
    [
        ((played(), played()), "scenario s0 lists trial 0 of 'strict', which occurs twice"),
        ((played(agent="new"),), "trial 0 of 'new', an agent that the manifest does not have"),
    ],
)
def test_refuses_a_list_that_contradicts_itself(units: Sequence[run_pb2.Unit], expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        list(planned_units(its_manifest(), imported(*units)))


@pytest.mark.parametrize("line", [b'{"scenario_id": "a", "units": 3}', b'{"units": [{"agnet": "a"}]}'])
def test_names_the_line_of_a_damaged_list(line: bytes) -> None:
    with pytest.raises(InputError, match=r"inputs/scenarios\.jsonl:1: is damaged: "):
        decode_inputs(line, b"", "run")


def test_tells_that_the_list_changed() -> None:
    difference = describe_difference(imported(), imported(played()))
    assert difference == "changed: units of scenarios s0"
