"""The agent service over real gRPC and HTTP: faults keep their class on the way, and the process behaves."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from aiohttp import web
from grpc_health.v1 import health_pb2, health_pb2_grpc

from policysweep import errors
from policysweep.models.openai_api import OpenAIChatModel
from policysweep.rpc import status
from policysweep.rpc.client import Channels
from policysweep.rpc.server import serving
from policysweep.v1 import agent_pb2, agent_pb2_grpc, scenario_pb2
from policysweep.v1 import episode_pb2 as ep
from services.agent.service import agent_service
from services.agent.variants.baseline import BaselineAgent

ROOT = Path(__file__).parents[2]
REQUEST = agent_pb2.RespondRequest(
    episode_id="ep-1",
    policy=scenario_pb2.Policy(primary=scenario_pb2.PolicyDocument(text="policy")),
    messages=[ep.Message(role=ep.ROLE_CUSTOMER, content="hi")],
)
HELLO = {"choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}]}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def says(body: Any, code: int = 200, **headers: str) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        return web.json_response(body, status=code, headers=headers)

    return handler


@asynccontextmanager
async def model_server(chat: Handler, served: str = "m") -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    app.router.add_get("/v1/models", says({"data": [{"id": served, "owned_by": "somebody"}]}))
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


class Client:
    """Calls an agent and turns its statuses back into errors, as the simulator does."""

    def __init__(self, channels: Channels, address: str) -> None:
        self.address = address
        self.channel = channels.get(address)
        self.stub: agent_pb2_grpc.AgentServiceAsyncStub = agent_pb2_grpc.AgentServiceStub(self.channel)

    async def respond(self, request: Any = REQUEST, timeout: float | None = 10) -> Any:  # noqa: ASYNC109 - as in gRPC
        try:
            return await self.stub.Respond(request, timeout=timeout)
        except grpc.aio.AioRpcError as error:
            raise status.error_from(error, status.AGENT, self.address) from error

    async def info(self) -> agent_pb2.AgentInfo:
        try:
            return (await self.stub.GetAgentInfo(agent_pb2.GetAgentInfoRequest(), timeout=10)).info
        except grpc.aio.AioRpcError as error:
            raise status.error_from(error, status.AGENT, self.address) from error


@asynccontextmanager
async def agent_at(url: str, *, model_timeout: float = 5.0) -> AsyncIterator[Client]:
    """The baseline agent in this process, over the model server at `url`."""
    async with OpenAIChatModel(base_url=url, model="m") as model, Channels() as channels:
        agent = BaselineAgent(model, agent_pb2.Sampling(max_tokens=8))
        async with serving("127.0.0.1:0", [agent_service(agent, model_timeout)]) as address:
            yield Client(channels, address)


class TestFaultsKeepTheirClass:
    @pytest.mark.parametrize(
        ("chat", "kind"),
        [
            (says({}, 500), errors.ModelServerUnavailable),
            (says({}, 404), errors.ModelServerRejected),
            (says({}), errors.ModelServerGarbled),
        ],
        ids=["500", "404", "no completion"],
    )
    async def test_of_the_model_server(self, chat: Handler, kind: type[errors.PolicysweepError]) -> None:
        async with model_server(chat) as url, agent_at(url) as agent:
            with pytest.raises(errors.PolicysweepError) as caught:
                await agent.respond()
        assert type(caught.value) is kind
        assert url in str(caught.value)

    async def test_a_busy_server_with_its_wait(self) -> None:
        async with model_server(says({}, 429, **{"Retry-After": "7"})) as url, agent_at(url) as agent:
            with pytest.raises(errors.ModelServerBusy) as caught:
                await agent.respond()
        assert caught.value.retry_after == 7

    @pytest.mark.parametrize(("deadline", "model_timeout"), [(0.5, 5.0), (10.0, 0.2)])
    async def test_a_slow_model_fails_before_the_callers_deadline(
        self, deadline: float, model_timeout: float
    ) -> None:
        async def stall(request: web.Request) -> web.StreamResponse:
            await asyncio.sleep(30)
            return web.Response()

        async with model_server(stall) as url, agent_at(url, model_timeout=model_timeout) as agent:
            with pytest.raises(errors.ModelServerTimeout):
                await agent.respond(timeout=deadline)

    async def test_a_bank(self) -> None:
        async with model_server(says(HELLO)) as url, agent_at(url) as agent:
            with pytest.raises(grpc.aio.AioRpcError, match="no memory") as caught:
                await agent.stub.Respond(agent_pb2.RespondRequest(bank_id="b"), timeout=5)
        assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION


async def test_an_overflow_is_an_answer() -> None:
    overflow = says({"error": {"message": "too long", "code": "context_length_exceeded"}}, 400)
    async with model_server(overflow) as url, agent_at(url) as agent:
        response = await agent.respond()
    assert response.finish_reason == ep.FINISH_REASON_CONTEXT_OVERFLOW


async def test_cancelling_the_call_cancels_the_model() -> None:
    arrived, cancelled = asyncio.Event(), asyncio.Event()

    async def stall(request: web.Request) -> web.StreamResponse:
        arrived.set()
        try:
            await asyncio.sleep(30)
        finally:
            cancelled.set()
        return web.Response()

    async with model_server(stall) as url, agent_at(url) as agent:
        call = asyncio.ensure_future(agent.respond())
        await arrived.wait()
        call.cancel()
        async with asyncio.timeout(5):
            await asyncio.gather(call, cancelled.wait(), return_exceptions=True)
        assert call.cancelled()


@asynccontextmanager
async def process(*flags: str) -> AsyncIterator[Process]:
    """`python -m services.agent` as it is deployed."""
    started = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "services.agent", *flags, cwd=ROOT, stdout=PIPE, stderr=PIPE
    )
    try:
        yield started
    finally:
        if started.returncode is None:
            started.kill()
        await started.communicate()


async def address_of(started: Process) -> str:
    assert started.stdout is not None
    line = json.loads(await started.stdout.readline())
    assert (line["event"], line["service"]) == ("listening", "agent")
    address: str = line["address"]
    return address


class TestProcess:
    async def test_it_serves_while_the_model_is_away_and_says_so(self) -> None:
        async with (
            process(
                "--model-url", "http://127.0.0.1:9", "--model", "m", "--listen", "127.0.0.1:0"
            ) as started,
            Channels() as channels,
        ):
            agent = Client(channels, await address_of(started))
            health: Any = health_pb2_grpc.HealthStub(agent.channel)
            check = await health.Check(health_pb2.HealthCheckRequest(), timeout=10)
            assert check.status == health_pb2.HealthCheckResponse.SERVING
            for call in (agent.info, agent.respond):
                with pytest.raises(errors.ModelServerUnavailable, match="cannot be reached"):
                    await call()

    async def test_info_names_the_models_that_are_served(self) -> None:
        async with model_server(says(HELLO), served="other") as url, agent_at(url) as agent:
            with pytest.raises(errors.ModelServerRejected, match="does not serve 'm'; it serves other"):
                await agent.info()

    async def test_sigterm_lets_the_call_in_flight_finish(self) -> None:
        arrived, go_on = asyncio.Event(), asyncio.Event()

        async def slow(request: web.Request) -> web.StreamResponse:
            arrived.set()
            await go_on.wait()
            return web.json_response(HELLO)

        async with (
            model_server(slow) as url,
            process("--model-url", url, "--model", "m") as started,
            Channels() as channels,
        ):
            agent = Client(channels, await address_of(started))
            call = asyncio.ensure_future(agent.respond())
            await arrived.wait()
            health: Any = health_pb2_grpc.HealthStub(agent.channel)
            watch = health.Watch(health_pb2.HealthCheckRequest(), timeout=10)
            async for update in watch:
                if update.status == health_pb2.HealthCheckResponse.NOT_SERVING:
                    break
                started.send_signal(signal.SIGTERM)
            watch.cancel()  # it would hold the drain until the grace ends
            go_on.set()
            assert (await call).message.content == "hello"
            assert await asyncio.wait_for(started.wait(), 10) == 0

    @pytest.mark.parametrize(
        ("flags", "said"),
        [
            (["--model-url", "nowhere", "--model", "m"], "model URL 'nowhere' is not one"),
            (["--model-url", "http://h", "--model", "m", "--listen", "256.0.0.1:1"], "listen on 256.0.0.1:1"),
        ],
    )
    async def test_bad_settings_end_with_one_line(self, flags: list[str], said: str) -> None:
        async with process(*flags) as started:
            output, message = await started.communicate()
        assert started.returncode == 2
        assert output == b""
        assert said in message.decode()
        assert message.decode().count("\n") == 1
