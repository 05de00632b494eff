"""A stream run made by hand, with an effect that is known: a memory that learns the lesson of a family.

Seven families of a parent and three sisters, other originals, and controls. No memory fails parents and
sisters and passes the rest. The oracle passes all but what it draws badly. PolicyBank fails a parent, learns
its lesson, consults it in the sisters and passes them, and carries it too far on one control.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from policysweep.streams.inputs import StreamInputs, inputs_of
from policysweep.streams.ledger import StreamLedger
from policysweep.streams.manifest import FORMAT
from policysweep.streams.plan import has_bank, learns, planned_streams, stream_tasks
from policysweep.sweep.store import ResultStore
from policysweep.v1 import agent_pb2, judge_pb2, stream_pb2, tau2_pb2
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import policybank_pb2 as pb

EXPLANATION, REWARD, ORACLE = (
    pb.FEEDBACK_REGIME_EXPLANATION,
    pb.FEEDBACK_REGIME_REWARD,
    pb.FEEDBACK_REGIME_ORACLE,
)
METHODS: Mapping[pb.MemoryMethod.ValueType, Sequence[pb.FeedbackRegime.ValueType]] = {
    pb.MEMORY_METHOD_NONE: (),
    pb.MEMORY_METHOD_REASONING_BANK: (EXPLANATION,),
    pb.MEMORY_METHOD_POLICY_BANK: (EXPLANATION, REWARD),
    pb.MEMORY_METHOD_HUMAN_ORACLE: (ORACLE,),
}
FAMILIES, OTHERS, CONTROLS = 7, 6, 2

Skill = Mapping[str, float]
"""Chance of passing each group of tasks."""
_SKILLS: Mapping[pb.MemoryMethod.ValueType, Skill] = {
    pb.MEMORY_METHOD_NONE: {"parent": 0.02, "sister": 0.03, "other": 0.7, "control": 0.95},
    pb.MEMORY_METHOD_REASONING_BANK: {"parent": 0.05, "sister": 0.3, "other": 0.68, "control": 0.9},
    pb.MEMORY_METHOD_POLICY_BANK: {"parent": 0.05, "sister": 0.8, "other": 0.72, "control": 0.6},
    pb.MEMORY_METHOD_HUMAN_ORACLE: {"parent": 0.9, "sister": 0.93, "other": 0.7, "control": 0.95},
}


@dataclass
class SampleRun:
    """A stream run before it is written; tests change what they are about."""

    manifest: stream_pb2.StreamManifest
    inputs: StreamInputs
    records: list[stream_pb2.StreamRecord]
    failures: list[stream_pb2.StreamFailure] = field(default_factory=list)

    def streams(self) -> Iterator[stream_pb2.Stream]:
        """The planned streams."""
        return planned_streams(self.manifest)

    async def write(self, url: str) -> StreamLedger:
        """Keep the run in a store, as a driver would."""
        ledger = StreamLedger(ResultStore.from_url(url, create=True))
        await ledger.begin(self.manifest, self.inputs)
        for stream in self.streams():
            if has_bank(stream.method):
                await ledger.keep_initial_bank(stream, initial_bank(stream))
        for record in self.records:
            assert await ledger.write_record(record)
        for failure in self.failures:
            await ledger.write_failure(failure)
        return ledger


def sample_run(
    domain: str = "airline", *, seeds: int = 2, trials: int = 2, inputs: StreamInputs | None = None
) -> SampleRun:
    """A whole run in one domain. `inputs` are tasks to play instead of the made ones."""
    inputs = inputs or made_inputs(domain)
    manifest = stream_pb2.StreamManifest(
        format=FORMAT,
        run="sample",
        domains=[stream_domain(inputs, domain) for domain in dict.fromkeys(key[0] for key in inputs.tasks)],
        agents=[stream_pb2.StreamAgent(name="solo", infos=[agent_pb2.AgentInfo(model="made")])],
        methods=[stream_pb2.StreamMethod(method=method, regimes=found) for method, found in METHODS.items()],
        seeds=range(seeds),
        trials=trials,
        controls=stream_pb2.CONTROL_PLACEMENT_AFTER_FAMILY,
        bank_namespace="sample",
        rehearsal=True,
    )
    run = SampleRun(manifest, inputs, [])
    for stream in run.streams():
        run.records += play(manifest, inputs, stream)
    return run


def stream_domain(inputs: StreamInputs, domain: str) -> stream_pb2.StreamDomain:
    """What is played of a domain."""
    kinds = [task.kind for task in inputs.of_domain(domain)]
    return stream_pb2.StreamDomain(
        domain=domain,
        digest=f"digest of {domain}",
        originals=kinds.count(tau2_pb2.TAU2_TASK_KIND_ORIGINAL),
        sisters=kinds.count(tau2_pb2.TAU2_TASK_KIND_SISTER),
        controls=kinds.count(tau2_pb2.TAU2_TASK_KIND_CONTROL),
    )


# ------------------------------------------------------------------------- tasks


def made_inputs(domain: str = "airline") -> StreamInputs:
    """Tasks "1" to "13", sisters "1-1" to "7-3" and controls "c1" and "c2"."""
    tasks = []
    for number in range(1, FAMILIES + OTHERS + 1):
        gap = f"G-{number}" if number <= FAMILIES else ""
        tasks.append(_task(domain, str(number), tau2_pb2.TAU2_TASK_KIND_ORIGINAL, gap_id=gap))
        for sister in range(1, 4) if gap else ():
            kind, task_id = tau2_pb2.TAU2_TASK_KIND_SISTER, f"{number}-{sister}"
            tasks.append(_task(domain, task_id, kind, gap_id=gap, parent_task_id=str(number)))
    for number in range(1, CONTROLS + 1):
        tasks.append(_task(domain, f"c{number}", tau2_pb2.TAU2_TASK_KIND_CONTROL, gap_id=f"G-{number}"))
    gaps = [
        tau2_pb2.Tau2Gap(
            gap_id=f"G-{number}",
            domain=domain,
            dimension="ambiguous_scope",
            parent_task_ids=[str(number)],
            policy_sentence="Refunds are for whole orders.",
            clarification="A part of an order counts too.",
        )
        for number in range(1, FAMILIES + 1)
    ]
    return inputs_of(tasks, gaps)


def _task(
    domain: str, task_id: str, kind: tau2_pb2.Tau2TaskKind.ValueType, **fields: Any
) -> tau2_pb2.Tau2Task:
    return tau2_pb2.Tau2Task(
        task_id=task_id,
        domain=domain,
        kind=kind,
        user_scenario=tau2_pb2.Tau2UserScenario(
            reason_for_call=f"You want what task {task_id} is about.",
            known_info="Your name is Mia Li.",
            task_instructions="Be brief.",
        ),
        criteria=tau2_pb2.Tau2Criteria(communicate_info=["12"]),
        developer_explanation=f"What {task_id} teaches.",
        **fields,
    )


def _group(task: tau2_pb2.Tau2Task) -> str:
    if task.kind == tau2_pb2.TAU2_TASK_KIND_ORIGINAL:
        return "parent" if task.gap_id else "other"
    return "sister" if task.kind == tau2_pb2.TAU2_TASK_KIND_SISTER else "control"


# ----------------------------------------------------------------------- records


def initial_bank(stream: stream_pb2.Stream) -> pb.Revision:
    """The bank that streams of a method fork."""
    return pb.Revision(
        number=1,
        kind=pb.REVISION_KIND_CREATE,
        entries=[entry("refunds", 1, "Refund whole orders.")],
        bank=pb.BankInfo(method=stream.method),
        usage=usage(2000, 300),
    )


def entry(capability_id: str, revision: int, action: str) -> pb.Entry:
    """An entry of a bank."""
    spec = pb.Spec(trigger="A customer asks for it.", action=action, key_insight="Read the rule as meant.")
    return pb.Entry(
        capability_id=capability_id, header=f"About {capability_id}.", spec=spec, revision=revision
    )


def usage(prompt: int, written: int) -> ep.Usage:
    """Tokens of one model call."""
    return ep.Usage(
        prompt_tokens=prompt,
        cached_prompt_tokens=prompt // 2,
        completion_tokens=written,
        latency_seconds=0.5,
        model_calls=1,
    )


def play(
    manifest: stream_pb2.StreamManifest, inputs: StreamInputs, stream: stream_pb2.Stream
) -> Iterator[stream_pb2.StreamRecord]:
    """The records of a stream, equal in every process."""
    bank: dict[str, pb.Entry] = {}
    for task in stream_tasks(manifest, inputs, stream):
        known = inputs.tasks[stream.domain, task.task_id]
        skill = dict(_SKILLS[stream.method])
        if stream.regime == REWARD:
            skill["sister"] = 0.35
        draw = random.Random(f"{stream.stream_id} {task.task_id}").random()
        yield _record(stream, task, known, bank, passed=draw < skill[_group(known)])


def _record(
    stream: stream_pb2.Stream,
    task: stream_pb2.StreamTask,
    known: tau2_pb2.Tau2Task,
    bank: dict[str, pb.Entry],
    *,
    passed: bool,
) -> stream_pb2.StreamRecord:
    capability = f"lesson {known.gap_id}" if known.gap_id else "refunds"
    before = task.position + 1 if has_bank(stream.method) else 0
    made = stream_pb2.StreamRecord(
        task=task,
        episode=_episode(task, known, [capability] if capability in bank or not known.gap_id else []),
        grade=_grade(passed),
        bank_revision_before=before,
        bank_revision_after=before,
        attempts=1,
    )
    if not has_bank(stream.method):
        for call in made.episode.model_calls:
            del call.consulted_spec_ids[:]
    if learns(stream):
        made.bank_revision_after = before + 1
        made.revision.CopyFrom(_revision(task, known, capability, bank, before + 1, passed=passed))
    return made


def _revision(
    task: stream_pb2.StreamTask,
    known: tau2_pb2.Tau2Task,
    capability: str,
    bank: dict[str, pb.Entry],
    number: int,
    *,
    passed: bool,
) -> pb.Revision:
    made = pb.Revision(
        number=number,
        kind=pb.REVISION_KIND_OMIT,
        rationale="Nothing new.",
        request_id=task.unit_id,
        reward=float(passed),
        usage=usage(3000, 200),
        provenance=pb.Provenance(episode_id=task.unit_id, task_id=task.task_id, request_id=task.unit_id),
    )
    if passed or not known.gap_id:
        return made
    made.kind = pb.REVISION_KIND_REVISE if capability in bank else pb.REVISION_KIND_ADD
    made.capability_id = capability
    made.rationale = f"Task {task.task_id} failed though the agent kept to the written policy."
    made.failure_type = pb.FAILURE_TYPE_POLICY_GAP
    made.gap_class = pb.GAP_CLASS_AMBIGUOUS_SCOPE
    if capability in bank:
        made.before.CopyFrom(bank[capability])
    bank[capability] = entry(capability, number, f"As task {task.task_id} shows, parts count too.")
    made.after.CopyFrom(bank[capability])
    made.diff = f"--- before\n+++ revision {number}\n@@ -1 +1 @@\n+ACTION: parts count too"
    return made


def _episode(task: stream_pb2.StreamTask, known: tau2_pb2.Tau2Task, consulted: Sequence[str]) -> ep.Episode:
    said = [
        (ep.ROLE_AGENT, "Hi! How can I help you today?"),
        (ep.ROLE_CUSTOMER, known.user_scenario.reason_for_call),
        (ep.ROLE_AGENT, ""),
        (ep.ROLE_TOOL, '{"order": "O-1", "total": 12}'),
        (ep.ROLE_AGENT, "The total is 12."),
        (ep.ROLE_CUSTOMER, "###STOP###"),
    ]
    messages = [ep.Message(role=role, content=text) for role, text in said]
    messages[2].tool_calls.append(ep.ToolCall(id="c", name="get_order", arguments_json='{"order_id": "O-1"}'))
    messages[3].tool_call_id, messages[3].tool_name = "c", "get_order"
    messages[3].tool_status = ep.TOOL_STATUS_OK
    calls = [
        ep.ModelCall(role=ep.ROLE_CUSTOMER, after_message=1, usage=usage(400, 30)),
        ep.ModelCall(
            role=ep.ROLE_AGENT, after_message=2, usage=usage(1500, 60), consulted_spec_ids=consulted
        ),
        ep.ModelCall(role=ep.ROLE_AGENT, after_message=4, usage=usage(1700, 40)),
    ]
    return ep.Episode(
        episode_id=task.unit_id,
        task_id=task.task_id,
        seed=task.seed,
        messages=messages,
        model_calls=calls,
        end=ep.EpisodeEnd(reason=ep.END_REASON_USER_STOP),
        turns=2,
        duration_seconds=1.5,
        rehearsal=True,
    )


def _grade(passed: bool) -> judge_pb2.Tau2Grade:
    db, communicate = tau2_pb2.TAU2_CRITERION_DB, tau2_pb2.TAU2_CRITERION_COMMUNICATE
    return judge_pb2.Tau2Grade(
        reward=float(passed),
        strict_reward=float(passed),
        ended_by_participant=True,
        criteria=[
            judge_pb2.Tau2CriterionResult(criterion=db, value=float(passed), in_basis=True),
            judge_pb2.Tau2CriterionResult(criterion=communicate, value=1.0, in_basis=True),
        ],
        actions=[judge_pb2.Tau2ActionCheck(action_id="a1", name="refund", matched=passed)],
        information=[judge_pb2.Tau2InfoCheck(info="12", met=True, met_strictly=True, message_index=4)],
        database_hash="d" * 64 if passed else "0" * 64,
        gold_database_hash="d" * 64,
    )
