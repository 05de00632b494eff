"""The plan of a stream run: which streams it consists of, and which tasks each has in which order. Pure.

A plan is a function of manifest and inputs, never stored, and the same on every machine. What a task meets
(its place, its seed) comes from domain, task, seed and trial and never from method or agent, so that all of
them meet the same. Hashes are SHA-256 over a JSON array: no choice of names can make two units collide, and
the shuffle of a seed needs no random generator.

Streams come trials first, then seeds, domains, methods, regimes and agents: methods progress together, and a
run that is stopped early holds complete comparisons.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import orjson

from policysweep.errors import InputError
from policysweep.streams.inputs import StreamInputs
from policysweep.v1 import policybank_pb2 as pb
from policysweep.v1 import stream_pb2, tau2_pb2


def planned_streams(manifest: stream_pb2.StreamManifest) -> Iterator[stream_pb2.Stream]:
    """All streams of a run, in the order in which they are started."""
    for trial in range(manifest.trials):
        for seed in manifest.seeds:
            for domain in manifest.domains:
                for method in manifest.methods:
                    for regime in method.regimes or (pb.FEEDBACK_REGIME_UNSPECIFIED,):
                        for agent in manifest.agents:
                            stream = stream_pb2.Stream(
                                domain=domain.domain,
                                method=method.method,
                                regime=regime,
                                agent=agent.name,
                                seed=seed,
                                trial=trial,
                            )
                            stream.stream_id = _stream_id(domain.digest, stream)
                            yield stream


def stream_tasks(
    manifest: stream_pb2.StreamManifest, inputs: StreamInputs, stream: stream_pb2.Stream
) -> list[stream_pb2.StreamTask]:
    """The tasks of a stream in their order. InputError for inputs that contradict themselves."""
    order = task_order(inputs.of_domain(stream.domain), stream.domain, stream.seed, manifest.controls)
    return [
        stream_pb2.StreamTask(
            unit_id=_digest("stream-unit", stream.stream_id, task.task_id)[:32],
            stream_id=stream.stream_id,
            position=position,
            task_id=task.task_id,
            seed=task_seed(stream.domain, task.task_id, stream.seed, stream.trial),
        )
        for position, task in enumerate(order)
    ]


def task_order(
    tasks: Sequence[tau2_pb2.Tau2Task],
    domain: str,
    seed: int,
    controls: stream_pb2.ControlPlacement.ValueType,
) -> list[tau2_pb2.Tau2Task]:
    """The tasks of a domain as a seed has them.

    Originals stand in the order of the hashes of seed, domain and task id, sisters right after their parent,
    controls where `controls` says. Raises InputError for a sister without its parent and for a control
    without a place.
    """
    kinds: dict[int, list[tau2_pb2.Tau2Task]] = {kind: [] for kind in tau2_pb2.Tau2TaskKind.values()}
    for task in sorted(tasks, key=lambda task: task.task_id):
        kinds[task.kind].append(task)
    order = []
    waiting = kinds[tau2_pb2.TAU2_TASK_KIND_CONTROL]
    sisters = kinds[tau2_pb2.TAU2_TASK_KIND_SISTER]
    for original in sorted(
        kinds[tau2_pb2.TAU2_TASK_KIND_ORIGINAL], key=lambda task: _digest("order", seed, domain, task.task_id)
    ):
        order.append(original)
        order.extend(sister for sister in sisters if sister.parent_task_id == original.task_id)
        if controls == stream_pb2.CONTROL_PLACEMENT_AFTER_FAMILY and original.gap_id:
            order.extend(control for control in waiting if control.gap_id == original.gap_id)
            waiting = [control for control in waiting if control.gap_id != original.gap_id]
    if controls == stream_pb2.CONTROL_PLACEMENT_END:
        order.extend(waiting)
    _check_placed(tasks, order, domain)
    return order


def task_seed(domain: str, task_id: str, seed: int, trial: int) -> int:
    """The seed of the models in a task, 31 bits, equal for all methods and agents."""
    return int(_digest("stream-seed", domain, task_id, seed, trial)[:8], 16) & 0x7FFFFFFF


def learns(stream: stream_pb2.Stream) -> bool:
    """Whether the stream gets feedback."""
    return stream.regime != pb.FEEDBACK_REGIME_UNSPECIFIED


def has_bank(method: pb.MemoryMethod.ValueType) -> bool:
    """Whether streams of a method have a bank."""
    return method != pb.MEMORY_METHOD_NONE


def bank_id(manifest: stream_pb2.StreamManifest, stream: stream_pb2.Stream) -> str:
    """The bank of a stream; "" for a method without one."""
    return f"{manifest.bank_namespace}/{stream.stream_id}" if has_bank(stream.method) else ""


def initial_bank_id(manifest: stream_pb2.StreamManifest, stream: stream_pb2.Stream) -> str:
    """The bank that a stream's bank is forked from; it depends on domain and method alone."""
    return f"{manifest.bank_namespace}/{stream.domain}/{method_name(stream.method)}/m0"


def initial_bank_name(stream: stream_pb2.Stream) -> str:
    """The name under which the folder of the run keeps the first revision of that bank."""
    return f"{stream.domain}-{method_name(stream.method)}"


def method_name(method: pb.MemoryMethod.ValueType) -> str:
    """A method as people write it, for example "policy_bank"."""
    return pb.MemoryMethod.Name(method).removeprefix("MEMORY_METHOD_").lower()


def regime_name(regime: pb.FeedbackRegime.ValueType) -> str:
    """A feedback regime as people write it, for example "explanation"; "none" for no feedback."""
    if regime == pb.FEEDBACK_REGIME_UNSPECIFIED:
        return "none"
    return pb.FeedbackRegime.Name(regime).removeprefix("FEEDBACK_REGIME_").lower()


def _stream_id(tasks_digest: str, stream: stream_pb2.Stream) -> str:
    return _digest(
        "stream",
        tasks_digest,
        stream.domain,
        pb.MemoryMethod.Name(stream.method),
        pb.FeedbackRegime.Name(stream.regime),
        stream.agent,
        stream.seed,
        stream.trial,
    )[:32]


def _check_placed(
    tasks: Sequence[tau2_pb2.Tau2Task], order: Sequence[tau2_pb2.Tau2Task], domain: str
) -> None:
    placed = [task.task_id for task in order]
    if lost := sorted({task.task_id for task in tasks} - set(placed)):
        raise InputError(
            f"{domain} tasks {', '.join(lost)} have no place in a stream: the task that they follow is not "
            "played, or the run has no controls"
        )
    if len(placed) != len(set(placed)):
        twice = sorted({task_id for task_id in placed if placed.count(task_id) > 1})
        raise InputError(f"{domain} tasks {', '.join(twice)} occur twice: task ids must be unique")


def _digest(*parts: str | int) -> str:
    return hashlib.sha256(orjson.dumps(parts)).hexdigest()
