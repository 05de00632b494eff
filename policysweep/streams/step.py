"""One task of a stream: played, graded, learnt from, made into a record.

    RunTau2Episode -> JudgeTau2 -> RecordFeedback -> StreamRecord

What is missing at the end says why. A judge without a grade and a curator without a usable answer are results
that the stream goes on after; a fault of the infrastructure is none, and ends the step.
"""

from __future__ import annotations

from collections.abc import Mapping

from policysweep.clock import now
from policysweep.errors import ContextOverflow, CuratorUnusable, PolicysweepError, ServiceContractError
from policysweep.streams.banks import RunBanks
from policysweep.streams.inputs import StreamInputs
from policysweep.streams.patience import Patience
from policysweep.streams.plan import bank_id, learns
from policysweep.streams.records import record_problems
from policysweep.streams.spec import StreamLimitsSpec
from policysweep.sweep.judge_client import JudgeClient
from policysweep.sweep.runner import Simulators
from policysweep.sweep.verdicts import is_judged
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2, simulator_pb2, stream_pb2, tau2_pb2
from policysweep.v1 import policybank_pb2 as pb

_UNUSABLE = (CuratorUnusable, ContextOverflow)
_SILENT = "The customer said nothing."


class Step:
    """Takes the tasks of a run, one at a time per stream."""

    def __init__(
        self,
        *,
        manifest: stream_pb2.StreamManifest,
        inputs: StreamInputs,
        agents: Mapping[tuple[str, str], str],
        simulators: Simulators,
        judge: JudgeClient,
        banks: RunBanks | None,
        limits: StreamLimitsSpec,
    ) -> None:
        """`agents` are gRPC targets by name and memory mode; `banks` is None when no method has one."""
        self._manifest = manifest
        self._inputs = inputs
        self._agents = agents
        self._simulators = simulators
        self._judge = judge
        self._banks = banks
        self._limits = limits
        self._modes = {method.method: method.memory_mode for method in manifest.methods}
        self._clarifications = {gap.gap_id: gap.clarification for gap in inputs.gaps}

    async def take(
        self, stream: stream_pb2.Stream, planned: stream_pb2.StreamTask, before: int, patience: Patience
    ) -> stream_pb2.StreamRecord:
        """The record of a task, played with the bank at revision `before`.

        Raises the error after which no further attempt was made.
        """
        task = self._inputs.tasks[stream.domain, planned.task_id]
        record = stream_pb2.StreamRecord(
            task=planned, bank_revision_before=before, bank_revision_after=before
        )
        request = self._episode_request(stream, planned, task)
        record.episode.CopyFrom(
            await patience.until_done(lambda: self._simulators.play(request, self._limits.episode_seconds))
        )
        grading = judge_pb2.JudgeTau2Request(task=task, episode=record.episode, seed=planned.seed)
        record.grade.CopyFrom(
            await patience.until_done(lambda: self._judge.grade(grading, self._limits.judge_seconds))
        )
        if learns(stream):
            await self._learn(stream, task, record, patience)
        record.attempts = len(patience.failures) + 1
        record.recorded_at.CopyFrom(now())
        if problems := record_problems(record):
            raise ServiceContractError(f"what the services gave is refused: {'; '.join(problems)}")
        return record

    async def _learn(
        self,
        stream: stream_pb2.Stream,
        task: tau2_pb2.Tau2Task,
        record: stream_pb2.StreamRecord,
        patience: Patience,
    ) -> None:
        if (missing := nothing_to_learn(record)) is not None:
            record.missing_feedback.CopyFrom(missing)
            return
        assert self._banks is not None
        banks, request = self._banks, self._feedback(stream, task, record)
        try:
            revision = await patience.until_done(lambda: banks.learn(request))
        except _UNUSABLE as error:
            record.missing_feedback.CopyFrom(_missing(error, ep.FAULT_PARTY_CURATOR))
        else:
            record.revision.CopyFrom(revision)
            record.bank_revision_after = revision.number

    def _episode_request(
        self, stream: stream_pb2.Stream, planned: stream_pb2.StreamTask, task: tau2_pb2.Tau2Task
    ) -> simulator_pb2.RunTau2EpisodeRequest:
        return simulator_pb2.RunTau2EpisodeRequest(
            episode_id=planned.unit_id,
            domain=task.domain,
            task_id=task.task_id,
            user_scenario=task.user_scenario,
            agent_target=self._agents[stream.agent, self._modes[stream.method]],
            bank_id=bank_id(self._manifest, stream),
            seed=planned.seed,
            limits=self._manifest.limits,
        )

    def _feedback(
        self, stream: stream_pb2.Stream, task: tau2_pb2.Tau2Task, record: stream_pb2.StreamRecord
    ) -> pb.RecordFeedbackRequest:
        return pb.RecordFeedbackRequest(
            request_id=record.task.unit_id,
            bank_id=bank_id(self._manifest, stream),
            expected_revision=record.bank_revision_before,
            episode=record.episode,
            task_id=task.task_id,
            task_query=task_query(record.episode),
            reward=record.grade.reward,
            explanation=self._explanation(stream.regime, task),
            regime=stream.regime,
            seed=record.task.seed,
        )

    def _explanation(self, regime: pb.FeedbackRegime.ValueType, task: tau2_pb2.Tau2Task) -> str:
        if regime == pb.FEEDBACK_REGIME_ORACLE:
            return self._clarifications.get(task.gap_id, "")
        return task.developer_explanation if regime == pb.FEEDBACK_REGIME_EXPLANATION else ""


def task_query(episode: ep.Episode) -> str:
    """What a task asked for, in the customer's first words: what the agent was told, and nothing else."""
    for message in episode.messages:
        if message.role == ep.ROLE_CUSTOMER and message.content.strip():
            return message.content
    return _SILENT


def nothing_to_learn(record: stream_pb2.StreamRecord) -> stream_pb2.MissingFeedback | None:
    """Why a task gives no feedback; None when it does.

    A conversation that the customer, the tools or the budget spoilt has a reward of 0 that teaches nothing.
    """
    end = record.episode.end
    if not is_judged(record.episode):
        return stream_pb2.MissingFeedback(
            party=end.fault,
            reason=ep.EndReason.Name(end.reason).removeprefix("END_REASON_"),
            message=end.detail or "The conversation did not end by the agent's doing.",
        )
    if not record.grade.HasField("reward"):
        reason = judge_pb2.AbsentReason.Name(record.grade.absent_reason).removeprefix("ABSENT_REASON_")
        return stream_pb2.MissingFeedback(
            party=ep.FAULT_PARTY_JUDGE, reason=reason, message="The judge gave no reward."
        )
    return None


def _missing(error: PolicysweepError, party: ep.FaultParty.ValueType) -> stream_pb2.MissingFeedback:
    return stream_pb2.MissingFeedback(party=party, reason=error.reason, message=str(error))
