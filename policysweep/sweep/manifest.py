"""The manifest: all that decides a run's results, written once and compared whenever the run is resumed.

Addresses, concurrency, attempts and deadlines are not compared: they decide whether and when a unit gets its
record, never what the record says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import orjson
from google.protobuf import json_format
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

import policysweep
from policysweep.errors import InputError
from policysweep.sweep.spec import SweepSpec
from policysweep.v1 import agent_pb2, run_pb2, simulator_pb2

Manifest = TypeVar("Manifest", bound=Message)

FORMAT = 1
"""Version of the layout of a run's folder."""

# `version` alone never changes a result: what does is in the digests. It is noted, see `version_note`.
_NOT_COMPARED = frozenset({"created_at", "version", "limits.agent_call_seconds"})


def build_manifest(
    spec: SweepSpec,
    dataset: run_pb2.DatasetInfo,
    agents: Mapping[str, agent_pb2.AgentInfo],
    simulators: Mapping[str, simulator_pb2.SimulatorInfo],
    banks: Mapping[str, run_pb2.AgentBank],
    created_at: Timestamp,
) -> run_pb2.RunManifest:
    """The manifest of a sweep.

    `agents` is what each agent says of itself, by its name in the spec; `simulators` what each of them says,
    by target; `banks` those that agents read, by the agents' names. InputError when two simulators differ,
    since a unit may be played by any of them.
    """
    (first_target, simulator), *others = simulators.items()
    for target, info in others:
        if changes := list(_differences(simulator, info)):
            raise InputError(f"simulators {first_target} and {target} differ: {'; '.join(changes)}")
    return run_pb2.RunManifest(
        format=FORMAT,
        run=spec.name,
        dataset=dataset,
        agents=[
            run_pb2.AgentEntry(name=agent.name, info=agents[agent.name], bank=banks.get(agent.name))
            for agent in spec.agents
        ],
        simulator=simulator,
        trials=spec.trials,
        persona_assignment=spec.agent_persona.assignment_message(),
        fixed_persona=spec.agent_persona.persona_message(),
        limits=spec.limits.message(),
        seed=spec.seed,
        rehearsal=dataset.rehearsal
        or simulator.rehearsal
        or any(info.rehearsal for info in agents.values())
        or any(bank.rehearsal for bank in banks.values()),
        version=policysweep.__version__,
        created_at=created_at,
    )


def encode_manifest(manifest: Message) -> bytes:
    """The manifest as a file: protobuf JSON with the field names of the contract, indented."""
    data = json_format.MessageToDict(
        manifest, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    return orjson.dumps(data, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def decode_manifest(data: bytes, name: str) -> run_pb2.RunManifest:
    """Read a manifest file; InputError that starts with `name` when it is not one that we can use."""
    return decode_manifest_as(run_pb2.RunManifest(), FORMAT, data, name)


def decode_manifest_as(empty: Manifest, version: int, data: bytes, name: str) -> Manifest:
    """Read a manifest file of this kind and format version; InputError that starts with `name`."""
    try:
        content = orjson.loads(data)
        found = content.get("format") if isinstance(content, dict) else None
        if found != version:
            raise InputError(f"{name}: format {found}, but this version of policysweep reads {version}")
        return json_format.ParseDict(content, empty)
    except (orjson.JSONDecodeError, json_format.ParseError) as error:
        raise InputError(f"{name}: is not a manifest: {error}") from error


def describe_changes(old: run_pb2.RunManifest, new: run_pb2.RunManifest) -> list[str]:
    """What differs between two manifests, one phrase each with the old and the new value; [] when nothing.

    The order of the agents is not compared: it decides no result.
    """
    changes = list(_differences(old, new, skip=_NOT_COMPARED))
    before = {agent.name: agent for agent in old.agents}
    after = {agent.name: agent for agent in new.agents}
    for name in [*before, *(name for name in after if name not in before)]:
        if name not in after:
            changes.append(f"agent {name} was in the run and is not in the sweep")
        elif name not in before:
            changes.append(f"agent {name} is new")
        else:
            changes.extend(f"agent {name}: {each}" for each in _agent_changes(before[name], after[name]))
    return changes


def _agent_changes(old: run_pb2.AgentEntry, new: run_pb2.AgentEntry) -> Iterator[str]:
    yield from _differences(old.info, new.info)
    before, after = _bank_name(old.bank), _bank_name(new.bank)
    if before != after:
        yield f"bank was {before} and is {after}"
        return
    if old.bank.digest != new.bank.digest:
        yield (
            f"bank {after} holds other entries than when the run began: let bank.target name the service "
            "that has the bank of then, or bring that bank back with policysweep bank import"
        )
    yield from _differences(old.bank, new.bank, skip=frozenset({"bank.digest"}), path="bank.")


def _bank_name(bank: run_pb2.AgentBank) -> str:
    return f"{bank.bank_id!r} at revision {bank.revision}" if bank.revision else "none"


def message_differences(old: Message, new: Message, skip: frozenset[str] = frozenset()) -> list[str]:
    """Every field in which two messages of one type differ, one phrase each; repeated ones are not compared.

    `skip` names fields that are not compared either, those of messages in them as "field.field".
    """
    return list(_differences(old, new, skip=skip))


def version_note(old: str, new: str) -> str | None:
    """A remark when another version of policysweep began the run."""
    return None if old == new else f"the run was begun by policysweep {old}, this is {new}"


def _differences(
    old: Message, new: Message, *, skip: frozenset[str] = frozenset(), path: str = ""
) -> Iterator[str]:
    """Every field in which two messages differ; repeated ones (the agents) are left to the caller."""
    for field in old.DESCRIPTOR.fields:
        name = f"{path}{field.name}"
        if name in skip or field.is_repeated:
            continue
        before, after = getattr(old, field.name), getattr(new, field.name)
        if field.message_type:
            yield from _differences(before, after, skip=skip, path=f"{name}.")
        elif before != after:
            yield f"{name} was {_shown(before, field.enum_type)} and is {_shown(after, field.enum_type)}"


def _shown(value: Any, enum: Any) -> str:
    if enum and value in enum.values_by_number:
        return str(enum.values_by_number[value].name)
    return "empty" if value == "" else str(value)
