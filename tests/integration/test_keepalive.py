"""A stream on which nothing happens for long is still there, in a sixtieth of the time.

Pings, the patience of servers with them and the age of connections are sixty times shorter. A server ends the
connection at the third ping that comes too early, so six minutes of silence stand for any number.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

import grpc
import pytest

from policysweep.rpc import client, server
from policysweep.rpc.client import open_channel
from policysweep.rpc.server import Service, serving
from policysweep.v1 import simulator_pb2, simulator_pb2_grpc

FASTER = 60
IDLE_SECONDS = 6.0
_NAME = simulator_pb2.DESCRIPTOR.services_by_name["SimulatorService"].full_name
_PATIENCE = "grpc.http2.min_ping_interval_without_data_ms"
_HURRIED = (_PATIENCE, "grpc.keepalive_time_ms", "grpc.max_connection_age_ms")
_CORE_PATIENCE_MS = 300_000
"""What gRPC's core bears if it is not told otherwise: a ping in five minutes."""

Options = Iterable[tuple[str, Any]]


class Silent(simulator_pb2_grpc.SimulatorServiceServicer):
    """Says something, then nothing for long, then something again."""

    async def RunEpisode(self, request: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802
        yield simulator_pb2.RunEpisodeResponse()
        await asyncio.sleep(IDLE_SECONDS)
        yield simulator_pb2.RunEpisodeResponse()

    def RunTau2Episode(self, request: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802
        raise NotImplementedError

    async def GetSimulatorInfo(self, request: Any, context: Any) -> Any:  # noqa: N802
        raise NotImplementedError


def hurried(options: Options) -> tuple[tuple[str, Any], ...]:
    """Options with what decides over idle streams at another pace. How long a pong may take stays."""
    return tuple((name, value // FASTER if name in _HURRIED else value) for name, value in options)


async def heard(monkeypatch: pytest.MonkeyPatch, replaced: Mapping[str, int] = {}) -> int:
    """Messages of an idle stream, with the product's options but for some of the server's."""
    options = server._options
    monkeypatch.setattr(client, "_OPTIONS", hurried(client._OPTIONS))
    monkeypatch.setattr(
        server,
        "_options",
        lambda max_connection_age: hurried({**dict(options(max_connection_age)), **replaced}.items()),
    )

    def register(added_to: grpc.aio.Server) -> None:
        simulator_pb2_grpc.add_SimulatorServiceServicer_to_server(Silent(), added_to)

    async with (
        serving("127.0.0.1:0", [Service(_NAME, register)]) as address,
        open_channel(address) as channel,
    ):
        stub: Any = simulator_pb2_grpc.SimulatorServiceStub(channel)
        messages = itertools.count()
        async for _ in stub.RunEpisode(simulator_pb2.RunEpisodeRequest(), timeout=10 * IDLE_SECONDS):
            next(messages)
        return next(messages)


async def test_a_stream_survives_silence_and_the_age_of_its_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert await heard(monkeypatch) == 2


async def test_a_server_without_our_patience_would_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await heard(monkeypatch, {_PATIENCE: _CORE_PATIENCE_MS})
    assert failed.value.code() is grpc.StatusCode.UNAVAILABLE
    assert "pings" in str(failed.value.details())
