"""The manifest of a stream run: all that decides its results, written once and compared on every resume.

Addresses, concurrency, attempts and deadlines are not compared: they decide whether and when a task gets its
record, never what the record says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from google.protobuf.message import Message

from policysweep.sweep.manifest import decode_manifest_as, message_differences
from policysweep.v1 import policybank_pb2 as pb
from policysweep.v1 import stream_pb2

FORMAT = 1
"""Version of the layout of a stream run's folder."""

_NOT_COMPARED = frozenset(
    {"created_at", "version", "bank_namespace", "limits.agent_call_seconds", "bank.version"}
)


def decode_manifest(data: bytes, name: str) -> stream_pb2.StreamManifest:
    """Read a manifest file; InputError that starts with `name` when it is not one that we can use."""
    return decode_manifest_as(stream_pb2.StreamManifest(), FORMAT, data, name)


def describe_changes(old: stream_pb2.StreamManifest, new: stream_pb2.StreamManifest) -> list[str]:
    """What differs between two manifests, one phrase each with the old and the new value; [] when nothing.

    The order of domains, methods and agents is not compared: it decides no result.
    """
    changes = message_differences(old, new, skip=_NOT_COMPARED)
    if list(old.seeds) != list(new.seeds):
        changes.append(f"seeds were {_listed(old.seeds)} and are {_listed(new.seeds)}")
    changes += _bank_parameters(old.bank.parameters, new.bank.parameters)
    changes += _by_name(
        "domain", {each.domain: each for each in old.domains}, {each.domain: each for each in new.domains}
    )
    changes += _by_name("method", _methods(old), _methods(new))
    changes += _by_name("agent", _infos(old), _infos(new))
    for before in old.methods:
        for after in new.methods:
            if before.method == after.method and list(before.regimes) != list(after.regimes):
                changes.append(
                    f"method {_method(before)}: regimes were {_regimes(before)} and are {_regimes(after)}"
                )
    return changes


def _by_name(kind: str, before: Mapping[str, Message], after: Mapping[str, Message]) -> Iterator[str]:
    for name in [*before, *(name for name in after if name not in before)]:
        if name not in after:
            yield f"{kind} {name} was in the run and is not in the stream file"
        elif name not in before:
            yield f"{kind} {name} is new"
        else:
            yield from (f"{kind} {name}: {each}" for each in message_differences(before[name], after[name]))


def _methods(manifest: stream_pb2.StreamManifest) -> dict[str, Message]:
    return {_method(each): each for each in manifest.methods}


def _infos(manifest: stream_pb2.StreamManifest) -> dict[str, Message]:
    """What each agent says of itself, by its name and the way in which it uses its memory."""
    return {
        f"{agent.name} with memory {info.memory_mode}": info
        for agent in manifest.agents
        for info in agent.infos
    }


def _bank_parameters(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    for name in sorted({*before, *after}):
        old, new = before.get(name, "not there"), after.get(name, "not there")
        if old != new:
            yield f"bank.parameters.{name} was {old} and is {new}"


def _method(method: stream_pb2.StreamMethod) -> str:
    return pb.MemoryMethod.Name(method.method).removeprefix("MEMORY_METHOD_").lower()


def _regimes(method: stream_pb2.StreamMethod) -> str:
    return ", ".join(pb.FeedbackRegime.Name(each).removeprefix("FEEDBACK_REGIME_") for each in method.regimes)


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))
