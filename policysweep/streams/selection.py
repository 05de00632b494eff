"""Which tasks of the tau2-bench data a stream file plays."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from policysweep.datasets.tau2 import Tau2Dataset, load_tau2
from policysweep.domains.tau2 import INITIAL_HASHES, Domain, load_domain
from policysweep.errors import InputError
from policysweep.streams.inputs import StreamInputs, inputs_of
from policysweep.streams.spec import OriginalsSpec, StreamSpec
from policysweep.v1 import policybank_pb2 as pb
from policysweep.v1 import scenario_pb2, stream_pb2, tau2_pb2

_ORIGINAL = tau2_pb2.TAU2_TASK_KIND_ORIGINAL
_SISTER = tau2_pb2.TAU2_TASK_KIND_SISTER
_CONTROL = tau2_pb2.TAU2_TASK_KIND_CONTROL


@dataclass(frozen=True, slots=True)
class Played:
    """What a stream run plays, with what the manifest says of it."""

    domains: Sequence[stream_pb2.StreamDomain]
    inputs: StreamInputs


def load_played(spec: StreamSpec) -> Played:
    """The tasks that a stream file plays. Raises InputError."""
    datasets = [load_tau2(domain) for domain in spec.domains]
    if spec.originals.tasks is not None:
        _check_known(spec.originals.tasks, datasets)
    tasks: list[tau2_pb2.Tau2Task] = []
    gaps: list[tau2_pb2.Tau2Gap] = []
    domains = []
    for dataset in datasets:
        chosen = list(_chosen(dataset, spec))
        about = [gap for gap in dataset.gaps if any(task.gap_id == gap.gap_id for task in chosen)]
        domains.append(_domain(load_domain(dataset.domain), chosen, about))
        tasks += chosen
        gaps += about
    if empty := [each.domain for each in domains if not each.originals]:
        raise InputError(
            f"originals leaves {' and '.join(empty)} without a task: leave the domain out of domains"
        )
    return Played(domains, inputs_of(tasks, gaps))


def first_bank(domain: str, method: pb.MemoryMethod.ValueType, bank_id: str) -> pb.CreateBankRequest:
    """Asks for the bank that the streams of a domain and method begin with."""
    loaded = load_domain(domain)
    return pb.CreateBankRequest(
        bank_id=bank_id,
        method=method,
        policy=scenario_pb2.Policy(primary=scenario_pb2.PolicyDocument(text=loaded.policy)),
        tools=loaded.agent_box.definitions,
        database_schema=loaded.agent_box.database_schema(),
    )


def choose_originals(dataset: Tau2Dataset, spec: OriginalsSpec) -> list[tau2_pb2.Tau2Task]:
    """The originals that are played, in the order of the data set."""
    originals = dataset.of_kind(_ORIGINAL)
    if spec.tasks is not None:
        return [task for task in originals if _name(task) in spec.tasks]
    if spec.ordinary is None:
        return list(originals)
    others = [task for task in originals if not task.gap_id]
    count = min(spec.ordinary, len(others))
    spread = {others[number * len(others) // count].task_id for number in range(count)}
    return [task for task in originals if task.gap_id or task.task_id in spread]


def _chosen(dataset: Tau2Dataset, spec: StreamSpec) -> Iterator[tau2_pb2.Tau2Task]:
    originals = choose_originals(dataset, spec.originals)
    yield from originals
    played = {task.task_id for task in originals}
    if spec.sisters:
        yield from (task for task in dataset.of_kind(_SISTER) if task.parent_task_id in played)
    if spec.controls != "none":
        gaps = {task.gap_id for task in originals}
        yield from (task for task in dataset.of_kind(_CONTROL) if task.gap_id in gaps)


def _domain(
    domain: Domain, tasks: Sequence[tau2_pb2.Tau2Task], gaps: Sequence[tau2_pb2.Tau2Gap]
) -> stream_pb2.StreamDomain:
    digest = hashlib.sha256()
    for message in (*tasks, *gaps, *domain.agent_box.definitions):
        text = message.SerializeToString(deterministic=True)
        digest.update(len(text).to_bytes(4, "big") + text)
    digest.update(domain.policy.encode() + bytes.fromhex(INITIAL_HASHES[domain.name]))
    kinds = [task.kind for task in tasks]
    return stream_pb2.StreamDomain(
        domain=domain.name,
        digest=digest.hexdigest(),
        originals=kinds.count(_ORIGINAL),
        sisters=kinds.count(_SISTER),
        controls=kinds.count(_CONTROL),
    )


def _check_known(wanted: Sequence[str], datasets: Sequence[Tau2Dataset]) -> None:
    known = [_name(task) for dataset in datasets for task in dataset.of_kind(_ORIGINAL)]
    for name in wanted:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = (
                f"did you mean {close[0]}?" if close else "they are written DOMAIN-TASK, such as airline-39"
            )
            raise InputError(f"originals.tasks: the domains have no original {name!r}; {hint}")


def _name(task: tau2_pb2.Tau2Task) -> str:
    return f"{task.domain}-{task.task_id}"
