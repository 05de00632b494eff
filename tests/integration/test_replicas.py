"""Replicas behind one name come and go, as pods behind a headless Service do.

A name server of the test stands for the cluster's: it answers with the addresses of the ready pods. Servers
and channels are the product's.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any

import grpc
import pytest

from policysweep.errors import AgentUnavailable
from policysweep.rpc import client, status
from policysweep.rpc.server import Service, serving
from policysweep.v1 import agent_pb2, agent_pb2_grpc
from tests.cluster.names import NameServer, name_server

SECONDS = 20.0
_NAME = agent_pb2.DESCRIPTOR.services_by_name["AgentService"].full_name


class Replica(agent_pb2_grpc.AgentServiceServicer):
    """An agent that counts its calls; it answers when `release` is set."""

    def __init__(self) -> None:
        self.calls = 0
        self.called = asyncio.Event()
        self.release = asyncio.Event()
        self.release.set()

    async def GetAgentInfo(  # noqa: N802 - the contract's name
        self, request: agent_pb2.GetAgentInfoRequest, context: Any
    ) -> agent_pb2.GetAgentInfoResponse:
        self.calls += 1
        self.called.set()
        await self.release.wait()
        return agent_pb2.GetAgentInfoResponse()

    async def Respond(self, request: Any, context: Any) -> Any:  # noqa: N802 - the contract's name
        raise NotImplementedError


class Cluster:
    """Replicas behind one name, on loopback addresses that differ and one port."""

    def __init__(self, names: NameServer) -> None:
        self._names = names
        self._port = 0

    def pod(self, replica: Replica, number: int, drain: float = 0.0) -> AbstractAsyncContextManager[str]:
        """A server for a replica; it is not ready yet."""

        def register(server: grpc.aio.Server) -> None:
            agent_pb2_grpc.add_AgentServiceServicer_to_server(replica, server)

        service = Service(_NAME, register)
        listen = f"127.0.0.{number}:{self._port}"
        return serving(listen, [service], drain=drain, max_connection_age=0.5)

    def ready(self, *addresses: str) -> None:
        """From now on the name means these pods."""
        self._names.ready["agent"] = {address.rpartition(":")[0] for address in addresses}
        self._port = int(addresses[0].rpartition(":")[2])

    def channel(self) -> grpc.aio.Channel:
        """The product's channel, which asks for the name more often than every five seconds."""
        target = self._names.target("agent.policysweep.test", self._port)
        often = {**dict(client._OPTIONS), "grpc.dns_min_time_between_resolutions_ms": 100}
        return grpc.aio.insecure_channel(target, options=[*often.items()])


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with name_server() as names:
        yield Cluster(names)


def caller(channel: grpc.aio.Channel) -> Callable[[], Awaitable[Any]]:
    stub: agent_pb2_grpc.AgentServiceAsyncStub = agent_pb2_grpc.AgentServiceStub(channel)
    return lambda: stub.GetAgentInfo(agent_pb2.GetAgentInfoRequest(), timeout=SECONDS)


async def until(reached: Callable[[], bool], call: Callable[[], Awaitable[Any]]) -> None:
    """Call again and again until something is reached."""
    async with asyncio.timeout(SECONDS):
        while not reached():
            await call()
            await asyncio.sleep(0.01)


async def test_a_replica_that_is_added_gets_work(cluster: Cluster) -> None:
    first, second = Replica(), Replica()
    async with AsyncExitStack() as pods:
        one = await pods.enter_async_context(cluster.pod(first, 1))
        cluster.ready(one)
        async with cluster.channel() as channel:
            call = caller(channel)
            await until(lambda: first.calls >= 10, call)
            two = await pods.enter_async_context(cluster.pod(second, 2))
            cluster.ready(one, two)
            await until(lambda: second.calls >= 10, call)


async def test_what_a_rollout_cuts_off_can_be_tried_again(cluster: Cluster) -> None:
    """The old pod drains while the new one is ready, and eight callers never stop."""
    first, second = Replica(), Replica()
    async with AsyncExitStack() as pods:
        old = AsyncExitStack()
        one = await old.enter_async_context(cluster.pod(first, 1, drain=SECONDS))
        cluster.ready(one)
        two = await pods.enter_async_context(cluster.pod(second, 2))
        cluster.ready(one, two)
        async with cluster.channel() as channel:
            call = caller(channel)
            await until(lambda: min(first.calls, second.calls) >= 5, call)
            callers = [asyncio.create_task(fifty_answers(call)) for _ in range(8)]
            cluster.ready(two)
            await old.aclose()
            failed = [error for errors in await asyncio.gather(*callers) for error in errors]
    assert all(status.error_from(error, status.AGENT, "agent").retryable for error in failed), failed


async def fifty_answers(call: Callable[[], Awaitable[Any]]) -> list[grpc.aio.AioRpcError]:
    """Call until 50 answers are there; what failed meanwhile."""
    failed: list[grpc.aio.AioRpcError] = []
    answered = 0
    async with asyncio.timeout(SECONDS):
        while answered < 50:
            try:
                await call()
                answered += 1
            except grpc.aio.AioRpcError as error:
                failed.append(error)
    return failed


async def test_a_call_in_flight_is_finished_before_its_server_ends(cluster: Cluster) -> None:
    replica = Replica()
    replica.release.clear()
    pod = AsyncExitStack()
    cluster.ready(await pod.enter_async_context(cluster.pod(replica, 1, drain=SECONDS)))
    async with cluster.channel() as channel:
        call = asyncio.ensure_future(caller(channel)())
        await asyncio.wait_for(replica.called.wait(), SECONDS)
        ending = asyncio.create_task(pod.aclose())
        await asyncio.sleep(0.05)
        assert not ending.done()
        replica.release.set()
        await call
        await ending


async def test_a_call_that_outlasts_the_drain_fails_as_the_infrastructure_does(cluster: Cluster) -> None:
    replica = Replica()
    replica.release.clear()
    pod = AsyncExitStack()
    cluster.ready(await pod.enter_async_context(cluster.pod(replica, 1, drain=0.1)))
    async with cluster.channel() as channel:
        call = asyncio.ensure_future(caller(channel)())
        await asyncio.wait_for(replica.called.wait(), SECONDS)
        await pod.aclose()
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await call
    assert isinstance(status.error_from(failed.value, status.AGENT, "agent"), AgentUnavailable)
