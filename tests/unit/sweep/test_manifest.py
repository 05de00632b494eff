"""The manifest: what it freezes, how it is written, and how a change is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

import policysweep
from policysweep.errors import InputError
from policysweep.sweep.manifest import (
    build_manifest,
    decode_manifest,
    describe_changes,
    encode_manifest,
    version_note,
)
from policysweep.sweep.spec import SweepSpec
from policysweep.v1 import agent_pb2, run_pb2, simulator_pb2
from policysweep.v1 import episode_pb2 as ep

from .samples import manifest

SPEC = SweepSpec.model_validate(
    {
        "name": "small",
        "agents": [{"name": "b", "target": "h:1"}, {"name": "a", "model": "rehearsal-fair"}],
        "agent_persona": {"assignment": "fixed", "persona": "HELPFUL"},
        "trials": 3,
        "seed": 5,
    }
)
DATASET = run_pb2.DatasetInfo(name="builtin", digest="ab", scenarios=400, tasks=40)
INFOS = {"a": agent_pb2.AgentInfo(model="m-a", rehearsal=True), "b": agent_pb2.AgentInfo(model="m-b")}


def test_builds_from_what_the_services_say() -> None:
    info = simulator_pb2.SimulatorInfo(customer_model="c")
    now = Timestamp(seconds=1)
    built = build_manifest(SPEC, DATASET, INFOS, {"s:1": info, "s:2": info}, {}, now)
    assert built == run_pb2.RunManifest(
        format=1,
        run="small",
        dataset=DATASET,
        agents=[run_pb2.AgentEntry(name=name, info=INFOS[name]) for name in ("b", "a")],
        simulator=info,
        trials=3,
        persona_assignment=run_pb2.PERSONA_ASSIGNMENT_FIXED,
        fixed_persona=ep.AGENT_PERSONA_HELPFUL,
        limits=SPEC.limits.message(),
        seed=5,
        rehearsal=True,
        version=policysweep.__version__,
        created_at=now,
    )


def test_is_marked_as_rehearsal_when_any_part_is() -> None:
    plain = {name: agent_pb2.AgentInfo(model="m") for name in ("a", "b")}
    for simulated in (True, False):
        info = simulator_pb2.SimulatorInfo(rehearsal=simulated)
        assert build_manifest(SPEC, DATASET, plain, {"s": info}, {}, Timestamp()).rehearsal is simulated


def test_refuses_simulators_that_differ() -> None:
    simulators = {
        "s:1": simulator_pb2.SimulatorInfo(customer_model="c", version="1"),
        "s:2": simulator_pb2.SimulatorInfo(customer_model="d", version="2"),
    }
    expected = "simulators s:1 and s:2 differ: customer_model was c and is d; version was 1 and is 2"
    with pytest.raises(InputError, match=expected):
        build_manifest(SPEC, DATASET, INFOS, simulators, {}, Timestamp())


def test_file_is_readable_complete_and_deterministic() -> None:
    data = encode_manifest(manifest())
    assert data == encode_manifest(manifest())
    assert decode_manifest(data, "m") == manifest()
    content = orjson.loads(data)
    assert content["created_at"] == "2026-05-28T20:26:40Z"
    assert content["agents"][0]["info"]["sampling"]["temperature"] == 0.0
    assert content["fixed_persona"] == "AGENT_PERSONA_UNSPECIFIED"
    assert data.endswith(b"\n}\n")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "m: is not a manifest: "),
        (b"{", "m: is not a manifest: "),
        (b"[]", "m: format None, but this version of policysweep reads 1"),
        (b'{"format": 2}', "m: format 2, but this version of policysweep reads 1"),
        (b'{"format": 1, "trails": 2}', "m: is not a manifest: "),
    ],
)
def test_refuses_what_it_cannot_use(data: bytes, expected: str) -> None:
    with pytest.raises(InputError) as raised:
        decode_manifest(data, "m")
    assert str(raised.value).startswith(expected)


def _set_digest(changed: run_pb2.RunManifest) -> None:
    changed.dataset.digest = "00"


def _set_temperature(changed: run_pb2.RunManifest) -> None:
    changed.agents[1].info.sampling.temperature = 0.7


def _set_prompt(changed: run_pb2.RunManifest) -> None:
    changed.agents[0].info.prompt_digest = "ff"


def _set_agent_version(changed: run_pb2.RunManifest) -> None:
    changed.agents[0].info.version = "2"


def _set_simulator(changed: run_pb2.RunManifest) -> None:
    changed.simulator.sampling.top_p = 0.5


def _set_assignment(changed: run_pb2.RunManifest) -> None:
    changed.persona_assignment = run_pb2.PERSONA_ASSIGNMENT_FIXED
    changed.fixed_persona = ep.AGENT_PERSONA_DIRECT


def _set_turns(changed: run_pb2.RunManifest) -> None:
    changed.limits.max_turns = 30


def _swap_agent(changed: run_pb2.RunManifest) -> None:
    changed.agents[0].name = "lenient"


BANK = run_pb2.AgentBank(bank_id="b", revision=3, digest="aa", recall_limit=5)


def test_the_bank_of_an_agent_is_frozen_with_it() -> None:
    info = simulator_pb2.SimulatorInfo(customer_model="c")
    real = {name: agent_pb2.AgentInfo(model="m") for name in INFOS}
    built = build_manifest(SPEC, DATASET, real, {"s": info}, {"a": BANK}, Timestamp())
    assert [(agent.name, agent.HasField("bank")) for agent in built.agents] == [("b", False), ("a", True)]
    assert built.agents[1].bank == BANK
    assert not built.rehearsal
    rehearsed = run_pb2.AgentBank(rehearsal=True)
    assert build_manifest(SPEC, DATASET, real, {"s": info}, {"a": rehearsed}, Timestamp()).rehearsal


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({}, {"bank_id": "b", "revision": 3, "digest": "aa"}, ["bank was none and is 'b' at revision 3"]),
        ({"bank_id": "b", "revision": 3}, {}, ["bank was 'b' at revision 3 and is none"]),
        (
            {"bank_id": "b", "revision": 3, "digest": "aa"},
            {"bank_id": "b", "revision": 4, "digest": "bb"},
            ["bank was 'b' at revision 3 and is 'b' at revision 4"],
        ),
        (
            {"bank_id": "b", "revision": 3, "digest": "aa", "recall_limit": 5},
            {"bank_id": "b", "revision": 3, "digest": "bb", "recall_limit": 8},
            [
                "bank 'b' at revision 3 holds other entries than when the run began: let bank.target name "
                "the service that has the bank of then, or bring that bank back with policysweep bank import",
                "bank.recall_limit was 5 and is 8",
            ],
        ),
    ],
)
def test_names_a_change_of_a_bank(old: dict[str, Any], new: dict[str, Any], expected: list[str]) -> None:
    before, after = manifest(), manifest()
    if old:
        before.agents[0].bank.CopyFrom(run_pb2.AgentBank(**old))
    if new:
        after.agents[0].bank.CopyFrom(run_pb2.AgentBank(**new))
    assert describe_changes(before, after) == [f"agent strict: {each}" for each in expected]
    assert describe_changes(after, after) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (_set_digest, [f"dataset.digest was {'ab' * 32} and is 00"]),
        (_set_temperature, ["agent fair: sampling.temperature was 0.0 and is 0.7"]),
        (_set_prompt, ["agent strict: prompt_digest was empty and is ff"]),
        (_set_agent_version, ["agent strict: version was 1 and is 2"]),
        (_set_simulator, ["simulator.sampling.top_p was 0.0 and is 0.5"]),
        (
            _set_assignment,
            [
                "persona_assignment was PERSONA_ASSIGNMENT_BALANCED and is PERSONA_ASSIGNMENT_FIXED",
                "fixed_persona was AGENT_PERSONA_UNSPECIFIED and is AGENT_PERSONA_DIRECT",
            ],
        ),
        (_set_turns, ["limits.max_turns was 20 and is 30"]),
        (_swap_agent, ["agent strict was in the run and is not in the sweep", "agent lenient is new"]),
    ],
)
def test_names_every_change(change: Callable[[run_pb2.RunManifest], None], expected: list[str]) -> None:
    changed = manifest()
    change(changed)
    assert describe_changes(manifest(), changed) == expected


def test_ignores_what_changes_no_result() -> None:
    other = manifest()
    other.created_at.seconds += 1
    other.version = "9.9.9"
    other.limits.agent_call_seconds = 600
    agents = list(other.agents)
    del other.agents[:]
    other.agents.extend(reversed(agents))
    assert describe_changes(manifest(), other) == []
    assert (
        version_note(manifest().version, other.version)
        == "the run was begun by policysweep 0.1.0, this is 9.9.9"
    )
    assert version_note("0.1.0", "0.1.0") is None
