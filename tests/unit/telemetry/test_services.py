"""What services count: calls by code, verdicts, the bank's store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from prometheus_client import REGISTRY

from policysweep import errors
from policysweep.rpc.client import Channels
from policysweep.rpc.server import Service, serving
from policysweep.v1 import agent_pb2, agent_pb2_grpc, judge_pb2
from policysweep.v1 import policybank_pb2 as pb
from services.judge.asking import Tally
from services.judge.counting import count_answers, count_scores
from services.policybank.observed_store import ObservedStore, probed
from services.policybank.store import MemoryStore

METHOD = "policysweep.v1.AgentService/Respond"


def value(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


class Agent(agent_pb2_grpc.AgentServiceServicer):
    """Answers, hangs or fails, as the episode's id says."""

    def __init__(self) -> None:
        self.called = asyncio.Event()
        self.ended = asyncio.Event()

    async def Respond(self, request: agent_pb2.RespondRequest, context: Any) -> agent_pb2.RespondResponse:  # noqa: N802
        self.called.set()
        try:
            if request.episode_id == "hangs":
                await asyncio.sleep(60)
            if request.episode_id == "fails":
                raise errors.ModelServerBusy("come back later")
            if request.episode_id == "breaks":
                raise RuntimeError("nobody foresaw this")
            return agent_pb2.RespondResponse()
        finally:
            self.ended.set()

    async def GetAgentInfo(  # noqa: N802
        self, request: agent_pb2.GetAgentInfoRequest, context: Any
    ) -> agent_pb2.GetAgentInfoResponse:
        return agent_pb2.GetAgentInfoResponse()


@asynccontextmanager
async def served() -> AsyncIterator[tuple[Agent, Any]]:
    agent = Agent()
    name = agent_pb2.DESCRIPTOR.services_by_name["AgentService"].full_name
    service = Service(name, lambda server: agent_pb2_grpc.add_AgentServiceServicer_to_server(agent, server))
    async with serving("127.0.0.1:0", [service]) as address, Channels() as channels:
        yield agent, agent_pb2_grpc.AgentServiceStub(channels.get(address))


@pytest.mark.parametrize(
    ("episode", "code"), [("ends", "OK"), ("fails", "UNAVAILABLE"), ("breaks", "INTERNAL")]
)
async def test_calls_are_counted_by_the_code_that_they_ended_with(episode: str, code: str) -> None:
    before = value("policysweep_grpc_server_calls_total", method=METHOD, code=code)
    async with served() as (_, stub):
        call = stub.Respond(agent_pb2.RespondRequest(episode_id=episode), timeout=9)
        assert (await call.code()).name == code
    assert value("policysweep_grpc_server_calls_total", method=METHOD, code=code) == before + 1
    assert value("policysweep_grpc_server_calls_in_flight", method=METHOD) == 0


async def test_a_call_that_its_caller_gave_up_is_no_success() -> None:
    labels = {"method": METHOD, "code": "CANCELLED"}
    before = value("policysweep_grpc_server_calls_total", **labels)
    async with served() as (agent, stub):
        call = stub.Respond(agent_pb2.RespondRequest(episode_id="hangs"), timeout=9)
        await agent.called.wait()
        assert value("policysweep_grpc_server_calls_in_flight", method=METHOD) == 1
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await agent.ended.wait()
        await asyncio.sleep(0)
    assert value("policysweep_grpc_server_calls_total", **labels) == before + 1
    assert value("policysweep_grpc_server_calls_in_flight", method=METHOD) == 0


async def test_the_first_internal_error_of_a_method_is_an_increase() -> None:
    async with served() as (_, stub):
        await stub.Respond(agent_pb2.RespondRequest(), timeout=9)
    labels = {"method": METHOD, "code": "INTERNAL"}
    assert REGISTRY.get_sample_value("policysweep_grpc_server_calls_total", labels) is not None


# -------------------------------------------------------------------------------------------- judge


def test_answers_are_counted_as_usable_or_not() -> None:
    count_answers("p-answers", Tally(answers=3, unusable=1))
    assert value("policysweep_judge_answers_total", panel="p-answers", result="usable") == 2
    assert value("policysweep_judge_answers_total", panel="p-answers", result="unusable") == 1


def test_scores_are_counted_as_given_or_by_why_they_are_absent() -> None:
    absent = judge_pb2.Score(absent_reason=judge_pb2.ABSENT_REASON_UNPARSEABLE)
    zero = judge_pb2.Score(value=0.0)
    count_scores(judge_pb2.PanelVerdict(panel="p-scores", scores=[zero, absent, absent]))
    assert value("policysweep_judge_scores_total", panel="p-scores", result="given") == 1
    assert value("policysweep_judge_scores_total", panel="p-scores", result="unparseable") == 2


def test_a_panel_without_any_score_has_a_share_of_none() -> None:
    absent = judge_pb2.Score(absent_reason=judge_pb2.ABSENT_REASON_UNPARSEABLE)
    count_scores(judge_pb2.PanelVerdict(panel="p-none", scores=[absent]))
    labels = {"panel": "p-none", "result": "given"}
    assert REGISTRY.get_sample_value("policysweep_judge_scores_total", labels) == 0


# --------------------------------------------------------------------------------------------- bank


class Failing(MemoryStore):
    """A store that is away as long as it is told to be."""

    away = True

    async def history(self, bank_id: str, after: int = 0) -> list[pb.Revision]:
        if self.away:
            raise errors.StoreError("Qdrant is away")
        return await super().history(bank_id, after)


async def test_calls_of_the_store_are_counted_by_outcome() -> None:
    store = Failing()
    observed = ObservedStore(store)
    names = {"operation": "history", "outcome": "error"}
    before = value("policysweep_bank_store_calls_total", **names)
    with pytest.raises(errors.StoreError, match="Qdrant is away"):
        await observed.history("b")
    assert value("policysweep_bank_store_calls_total", **names) == before + 1
    store.away = False
    right = value("policysweep_bank_store_calls_total", operation="history", outcome="ok")
    assert await observed.history("b") == []
    assert value("policysweep_bank_store_calls_total", operation="history", outcome="ok") == right + 1


async def test_a_store_that_goes_and_comes_back_is_seen_to() -> None:
    store = Failing()

    async def until(up: float) -> None:
        store_up = {"store": "probe"}
        while REGISTRY.get_sample_value("policysweep_bank_store_up", store_up) != up:  # noqa: ASYNC110 - polls
            await asyncio.sleep(0.001)

    async with probed(store, "probe", seconds=0.001) as probe:
        await probe.check()  # it was there when the service began
        await asyncio.wait_for(until(0.0), 9)
        with pytest.raises(errors.StoreError, match="Qdrant is away"):
            await probe.check()
        store.away = False
        await asyncio.wait_for(until(1.0), 9)
        await probe.check()


def test_the_observed_store_has_every_method_of_a_store() -> None:
    methods = {name for name in vars(MemoryStore) if not name.startswith("_")}
    assert methods <= set(dir(ObservedStore))
