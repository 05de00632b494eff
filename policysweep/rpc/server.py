"""The shell of every service: port, health, reflection, signals, drain.

    asyncio.run(run_service(config, [Service(full_name, register)]))

binds, prints one JSON line with the address on stdout, serves until SIGTERM or SIGINT (or the end of
stdin, for a child that has to end with its parent), then turns health to NOT_SERVING, lets calls in
flight finish within the grace, and returns. Until then the health of a service says whether what it needs
is there.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import grpc
import structlog
import uvloop
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from policysweep import telemetry
from policysweep.config import ServiceConfig
from policysweep.errors import InputError, PolicysweepError
from policysweep.process import announce, calm_collector, stop_event
from policysweep.rpc.client import MAX_MESSAGE_BYTES
from policysweep.rpc.interceptors import Gate
from policysweep.rpc.tls import Credentials, is_loopback

_log = structlog.get_logger(__name__)

_NEEDS_SECONDS = 5.0
"""Time between two looks at what a service needs and had the last time."""

_MISSING_SECONDS = 1.0
"""The same when it was away: services that start together wait for one another no longer than they must."""


@dataclass(frozen=True, slots=True)
class Service:
    """A gRPC service of this process: its full name and the call that adds its servicer to a server."""

    full_name: str
    register: Callable[[grpc.aio.Server], None]
    needs: Callable[[], Awaitable[None]] | None = None
    """Raises PolicysweepError while something is away without which the service can answer nothing."""


def _options(max_connection_age: float) -> tuple[tuple[str, int], ...]:
    return (
        ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
        ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
        # A port in use must be an error, not a second listener on it.
        ("grpc.so_reuseport", 0),
        # Clients then resolve their target again and find new replicas. Calls in flight go on.
        ("grpc.max_connection_age_ms", int(max_connection_age * 1000)),
        # Accept the keepalive pings that rpc/client.py sends, also on an idle stream.
        ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
        ("grpc.keepalive_permit_without_calls", 1),
    )


@asynccontextmanager
async def serving(
    listen: str,
    services: Sequence[Service],
    *,
    drain: float = 0.0,
    max_connection_age: float = 300.0,
    credentials: Credentials | None = None,
    health_listen: str = "",
) -> AsyncIterator[str]:
    """Serve while the block runs; gives the bound address. Leaving drains for `drain` seconds.

    With `credentials` the port speaks mutual TLS alone. `health_listen` is an address for health without TLS.
    """
    server = grpc.aio.server(interceptors=[Gate()], options=_options(max_connection_age))
    for service in services:
        service.register(server)
    names = [service.full_name for service in services]
    status = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(status, server)
    reflection.enable_server_reflection([*names, health.SERVICE_NAME, reflection.SERVICE_NAME], server)
    address = _bind(server, listen, credentials)
    probed = _health_server(status, health_listen)
    await server.start()
    await probed.start()
    readiness = [_Readiness(status, service) for service in services]
    for each in readiness:
        await each.look()
    following = [asyncio.create_task(each.follow()) for each in readiness]
    try:
        yield address
    finally:
        for task in following:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await status.enter_graceful_shutdown()
        await server.stop(drain)
        await probed.stop(None)


class _Readiness:
    """Keeps the health of one service: it serves while what it needs is there.

    The health of the process as a whole, which is asked for under no name, is not touched: it serves from its
    start to its drain, whatever is away.
    """

    def __init__(self, status: health.aio.HealthServicer, service: Service) -> None:
        self._status = status
        self._service = service
        self._ready = True

    async def look(self) -> None:
        """Ask once for what the service needs, and set its health."""
        ready = await self._has_its_needs()
        self._ready = ready
        answers = health_pb2.HealthCheckResponse
        await self._status.set(self._service.full_name, answers.SERVING if ready else answers.NOT_SERVING)

    async def follow(self) -> None:
        """Go on asking, if there is something to ask for."""
        while self._service.needs is not None:
            await asyncio.sleep(_NEEDS_SECONDS if self._ready else _MISSING_SECONDS)
            await self.look()

    async def _has_its_needs(self) -> bool:
        if self._service.needs is None:
            return True
        try:
            await self._service.needs()
        except PolicysweepError as error:
            if self._ready:
                _log.warning("not ready", service=self._service.full_name, reason=str(error))
            return False
        if not self._ready:
            _log.info("ready again", service=self._service.full_name)
        return True


def _health_server(status: health.aio.HealthServicer, listen: str) -> grpc.aio.Server:
    """Serves the health of this process, and nothing else, to who can show no certificate: the kubelet."""
    server = grpc.aio.server(options=_options(max_connection_age=300.0))
    if listen:
        health_pb2_grpc.add_HealthServicer_to_server(status, server)
        _bind(server, listen, None)
    return server


def _bind(server: grpc.aio.Server, listen: str, credentials: Credentials | None) -> str:
    host, _, _ = listen.rpartition(":")
    try:
        if credentials is None:
            port = server.add_insecure_port(listen)
        else:
            port = server.add_secure_port(listen, credentials.server())
    except RuntimeError as error:
        raise InputError(
            f"cannot listen on {listen}: the port is in use or the address is not of this machine; "
            "choose another with --listen HOST:PORT (port 0 takes a free one)"
        ) from error
    return f"{host}:{port}"


async def run_service(config: ServiceConfig, name: str, services: Sequence[Service]) -> None:
    """Serve until told to stop."""
    stop = stop_event(config.stop_on_stdin_eof)
    credentials = config.credentials()
    telemetry.serve_metrics(config.metrics_listen, name)
    async with serving(
        config.listen,
        services,
        drain=config.drain_seconds,
        max_connection_age=config.max_connection_age_seconds,
        credentials=credentials,
        health_listen=config.health_listen,
    ) as address:
        announce(name, address)
        if credentials is None and not is_loopback(address):
            _log.warning("serving without TLS to other machines, see --tls-cert", address=address)
        await stop.wait()
        draining = _Drain(name, config.drain_seconds)
    draining.over()


class _Drain:
    """Tells of a drain, for who wants to know what an upgrade cut off."""

    def __init__(self, service: str, seconds: float) -> None:
        self._service = service
        self._seconds = seconds
        self._began = time.monotonic()
        self._calls = telemetry.calls_in_flight()
        _log.info("draining", service=service, calls=self._calls, seconds=seconds)

    def over(self) -> None:
        took = time.monotonic() - self._began
        facts = {"service": self._service, "calls": self._calls, "seconds": round(took, 1)}
        if self._calls and took >= self._seconds:
            _log.warning("drained, calls that took longer were cut off", **facts)
        else:
            _log.info("drained", **facts)


def run_main(main: Coroutine[Any, Any, None]) -> None:
    """Run a service's main coroutine; bad input ends it with one line on stderr and exit code 2."""
    calm_collector()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(main)
    except InputError as error:
        sys.stderr.write(f"error: {error}\n")
        raise SystemExit(InputError.exit_code) from None
