"""A small stream run, made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from policysweep.streams.inputs import StreamInputs, inputs_of
from policysweep.streams.ledger import StreamLedger
from policysweep.streams.manifest import FORMAT
from policysweep.streams.plan import has_bank, initial_bank_id, learns, planned_streams, stream_tasks
from policysweep.sweep.store import ResultStore
from policysweep.v1 import agent_pb2, judge_pb2, stream_pb2, tau2_pb2
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import policybank_pb2 as pb

DOMAIN = "airline"
GAP = tau2_pb2.Tau2Gap(gap_id="A-1", domain=DOMAIN, parent_task_ids=["2"], clarification="Do it after all.")


def tasks() -> list[tau2_pb2.Tau2Task]:
    """Four originals; the second is the parent of two sisters, and there is one control of its gap."""
    originals = [_task(str(number), tau2_pb2.TAU2_TASK_KIND_ORIGINAL) for number in range(1, 5)]
    originals[1].gap_id = "A-1"
    sisters = [
        _task(f"2-{number}", tau2_pb2.TAU2_TASK_KIND_SISTER, parent_task_id="2", gap_id="A-1")
        for number in (1, 2)
    ]
    return [*originals, *sisters, _task("c1", tau2_pb2.TAU2_TASK_KIND_CONTROL, gap_id="A-1")]


def _task(task_id: str, kind: tau2_pb2.Tau2TaskKind.ValueType, **fields: Any) -> tau2_pb2.Tau2Task:
    return tau2_pb2.Tau2Task(
        task_id=task_id,
        domain=DOMAIN,
        kind=kind,
        user_scenario=tau2_pb2.Tau2UserScenario(reason_for_call=f"About {task_id}."),
        developer_explanation=f"What {task_id} teaches." if "gap_id" in fields else "",
        **fields,
    )


def inputs() -> StreamInputs:
    """The tasks and their gap."""
    return inputs_of(tasks(), [GAP])


def manifest(**changes: Any) -> stream_pb2.StreamManifest:
    """Two methods, one agent, two seeds, two trials, controls after their family."""
    fields: dict[str, Any] = {
        "format": FORMAT,
        "run": "small",
        "domains": [stream_pb2.StreamDomain(domain=DOMAIN, digest="d", originals=4, sisters=2, controls=1)],
        "agents": [
            stream_pb2.StreamAgent(
                name="fair",
                infos=[
                    agent_pb2.AgentInfo(model="m", memory_mode="none"),
                    agent_pb2.AgentInfo(model="m", memory_mode="retrieve"),
                ],
            )
        ],
        "methods": [
            stream_pb2.StreamMethod(method=pb.MEMORY_METHOD_NONE, memory_mode="none"),
            stream_pb2.StreamMethod(
                method=pb.MEMORY_METHOD_POLICY_BANK,
                memory_mode="retrieve",
                regimes=[pb.FEEDBACK_REGIME_EXPLANATION],
            ),
        ],
        "seeds": [0, 1],
        "trials": 2,
        "controls": stream_pb2.CONTROL_PLACEMENT_AFTER_FAMILY,
        "bank_namespace": "small-1",
        "bank": pb.BankServiceInfo(parameters={"policy_bank_limit": "5"}, version="1"),
        "rehearsal": True,
    }
    return stream_pb2.StreamManifest(**{**fields, **changes})


def initial_bank(stream: stream_pb2.Stream, of: stream_pb2.StreamManifest) -> pb.Revision:
    """The first revision of the bank that a stream's bank is forked from."""
    return pb.Revision(
        number=1,
        kind=pb.REVISION_KIND_CREATE,
        rationale=initial_bank_id(of, stream),
        entries=[pb.Entry(capability_id="refunds", header="Refunds.", revision=1)],
        bank=pb.BankInfo(method=stream.method),
    )


def record(
    stream: stream_pb2.Stream, task: stream_pb2.StreamTask, before: int | None = None
) -> stream_pb2.StreamRecord:
    """A sound record: solved, and read by the curator without a change when the stream learns."""
    start = (before or task.position + 1) if has_bank(stream.method) else 0
    made = stream_pb2.StreamRecord(
        task=task,
        episode=ep.Episode(
            episode_id=task.unit_id,
            task_id=task.task_id,
            seed=task.seed,
            messages=[ep.Message(role=ep.ROLE_CUSTOMER, content="Hello.")],
            end=ep.EpisodeEnd(reason=ep.END_REASON_USER_STOP),
        ),
        grade=judge_pb2.Tau2Grade(reward=1.0, ended_by_participant=True),
        bank_revision_before=start,
        bank_revision_after=start,
        attempts=1,
    )
    if learns(stream):
        made.bank_revision_after = start + 1
        made.revision.CopyFrom(
            pb.Revision(number=start + 1, kind=pb.REVISION_KIND_OMIT, request_id=task.unit_id, reward=1.0)
        )
    return made


def planned(
    of: stream_pb2.StreamManifest,
) -> list[tuple[stream_pb2.Stream, Sequence[stream_pb2.StreamTask]]]:
    """Every stream with its tasks."""
    return [(stream, stream_tasks(of, inputs(), stream)) for stream in planned_streams(of)]


async def complete_run(store: ResultStore, of: stream_pb2.StreamManifest | None = None) -> StreamLedger:
    """A run in which every task has its record."""
    of = of or manifest()
    ledger = StreamLedger(store)
    await ledger.begin(of, inputs())
    for stream, listed in planned(of):
        if has_bank(stream.method):
            await ledger.keep_initial_bank(stream, initial_bank(stream, of))
        for task in listed:
            assert await ledger.write_record(record(stream, task))
    return ledger
