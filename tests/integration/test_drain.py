"""What a service says when it ends: an operator must see whether an upgrade cut calls off."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, MutableMapping, Sequence
from typing import Any

import grpc
import orjson
import pytest
from structlog.testing import capture_logs

from policysweep.config import ServiceConfig, load_config
from policysweep.rpc.client import open_channel
from policysweep.rpc.server import Service, run_service
from policysweep.v1 import agent_pb2, agent_pb2_grpc

SECONDS = 20.0
_NAME = agent_pb2.DESCRIPTOR.services_by_name["AgentService"].full_name


class Slow(agent_pb2_grpc.AgentServiceServicer):
    """An agent that answers when it is let."""

    def __init__(self) -> None:
        self.called = asyncio.Event()
        self.release = asyncio.Event()

    async def GetAgentInfo(self, request: Any, context: Any) -> Any:  # noqa: N802 - the contract's name
        self.called.set()
        await self.release.wait()
        return agent_pb2.GetAgentInfoResponse()

    async def Respond(self, request: Any, context: Any) -> Any:  # noqa: N802 - the contract's name
        raise NotImplementedError


async def until(reached: Callable[[], bool]) -> None:
    while True:
        if reached():
            return
        await asyncio.sleep(0.01)


async def drained(
    output: pytest.CaptureFixture[bytes], *, drain: float, release: bool, calls: int
) -> Sequence[MutableMapping[str, Any]]:
    """What is logged by a service that is told to stop with `calls` in flight, which end only if released."""
    agent = Slow()
    service = Service(_NAME, lambda server: agent_pb2_grpc.add_AgentServiceServicer_to_server(agent, server))
    config = load_config(ServiceConfig, "agent", ["--drain-seconds", str(drain)])
    with capture_logs() as logs:
        running = asyncio.create_task(run_service(config, "agent", [service]))
        async with asyncio.timeout(SECONDS):
            written = b""
            while b"\n" not in written:
                await asyncio.sleep(0.01)
                written += output.readouterr().out
            async with open_channel(orjson.loads(written)["address"]) as channel:
                stub: Any = agent_pb2_grpc.AgentServiceStub(channel)
                asked = [
                    stub.GetAgentInfo(agent_pb2.GetAgentInfoRequest(), timeout=SECONDS) for _ in range(calls)
                ]
                answers = [asyncio.ensure_future(call) for call in asked]
                if calls:
                    await agent.called.wait()
                os.kill(os.getpid(), signal.SIGTERM)
                await until(lambda: any(each["event"] == "draining" for each in logs))
                if release:
                    agent.release.set()
                ends = await asyncio.gather(*answers, return_exceptions=True)
                await running
    assert all(isinstance(end, grpc.aio.AioRpcError) != release for end in ends)
    return [each for each in logs if "drain" in each["event"]]


async def test_calls_that_finish_are_told(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    begun, over = await drained(capsysbinary, drain=SECONDS, release=True, calls=1)
    assert (begun["event"], begun["calls"], begun["seconds"]) == ("draining", 1, SECONDS)
    assert (over["event"], over["log_level"], over["calls"]) == ("drained", "info", 1)
    assert over["seconds"] < SECONDS


async def test_calls_that_are_cut_off_are_a_warning(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    _, over = await drained(capsysbinary, drain=0.2, release=False, calls=1)
    assert over["log_level"] == "warning"
    assert "cut off" in over["event"]


async def test_an_idle_service_ends_at_once(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    _, over = await drained(capsysbinary, drain=SECONDS, release=True, calls=0)
    assert (over["event"], over["calls"]) == ("drained", 0)
    assert over["seconds"] < SECONDS
