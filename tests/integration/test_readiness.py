"""Health says whether a service has what it needs; that of its process never does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from structlog.testing import capture_logs

from policysweep.errors import ServiceUnavailable, StoreError
from policysweep.rpc import server
from policysweep.rpc.client import Channels
from policysweep.rpc.server import Service, serving
from services.agent.bank_client import GrpcBank

SECONDS = 10.0
BANK = "policysweep.v1.PolicyBankService"
SERVING = health_pb2.HealthCheckResponse.SERVING


class Need:
    """Something that is there, or is not."""

    def __init__(self) -> None:
        self.away = False

    async def check(self) -> None:
        if self.away:
            raise StoreError("Qdrant is away")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_NEEDS_SECONDS", 0.005)
    monkeypatch.setattr(server, "_MISSING_SECONDS", 0.005)


def service(need: Need | None = None) -> Service:
    return Service(BANK, lambda _: None, needs=need.check if need else None)


async def serves(channels: Channels, address: str, name: str = BANK) -> bool:
    stub: Any = health_pb2_grpc.HealthStub(channels.get(address))
    answer = await stub.Check(health_pb2.HealthCheckRequest(service=name), timeout=SECONDS)
    return bool(answer.status == SERVING)


async def until(condition: Callable[[], Any], wanted: bool) -> None:
    async with asyncio.timeout(SECONDS):
        while await condition() is not wanted:  # noqa: ASYNC110 - polls
            await asyncio.sleep(0.005)


async def test_a_service_is_ready_while_what_it_needs_is_there() -> None:
    need = Need()
    with capture_logs() as logs:
        async with serving("127.0.0.1:0", [service(need)]) as address, Channels() as channels:
            assert await serves(channels, address)
            need.away = True
            await until(lambda: serves(channels, address), False)
            assert await serves(channels, address, ""), "the process itself needs nothing: liveness"
            need.away = False
            await until(lambda: serves(channels, address), True)
    assert [each["event"] for each in logs] == ["not ready", "ready again"]
    assert logs[0]["reason"] == "Qdrant is away"


async def test_a_service_that_begins_without_its_needs_is_alive_and_not_ready() -> None:
    need = Need()
    need.away = True
    async with serving("127.0.0.1:0", [service(need)]) as address, Channels() as channels:
        assert not await serves(channels, address)
        assert await serves(channels, address, "")


async def test_a_service_without_needs_is_ready_from_its_start() -> None:
    async with serving("127.0.0.1:0", [service()]) as address, Channels() as channels:
        assert await serves(channels, address)


async def test_an_agent_with_a_memory_needs_a_bank_that_is_ready() -> None:
    """The chain of a cluster: store, bank, agent."""
    need = Need()
    async with serving("127.0.0.1:0", [service(need)]) as bank_address, Channels() as channels:
        bank = GrpcBank(channels, bank_address)
        await bank.check(SECONDS)
        need.away = True
        await until(lambda: serves(channels, bank_address), False)
        with pytest.raises(ServiceUnavailable, match="not serving"):
            await bank.check(SECONDS)
