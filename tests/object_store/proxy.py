"""Stands between a store's client and its server, and gets in the way of chosen requests.

Requests are passed on as they came, signature and Host header included. Whether a fault is met by the
server or only by the client decides everything for a conditional put, so each fault says which.
"""

from __future__ import annotations

import asyncio
import io
import socket
import struct
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from enum import Enum, auto

from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, web
from yarl import URL

SLOW_SECONDS = 1.5
_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding"}


class Fault(Enum):
    """What happens to a request."""

    SLOW = auto()
    """It is passed on late."""
    ERROR = auto()
    """500, and the server never saw it."""
    UNAVAILABLE = auto()
    """503, and the server never saw it."""
    IDLE = auto()
    """400 RequestTimeout, as S3 answers to a connection that is too slow for it."""
    CONFLICT = auto()
    """409, as S3 answers to one of two puts at the same moment, though nobody else writes."""
    RESET = auto()
    """The connection is reset in the middle of the body, and the server never saw it."""
    LOST = auto()
    """The server did it; the connection is reset instead of an answer."""
    LOST_BEHIND_ERROR = auto()
    """The server did it; the answer is 500."""
    CUT = auto()
    """The answer breaks off in the middle of its body."""


_ANSWERS = {
    Fault.ERROR: (500, "InternalError"),
    Fault.UNAVAILABLE: (503, "SlowDown"),
    Fault.IDLE: (400, "RequestTimeout"),
    Fault.CONFLICT: (409, "ConditionalRequestConflict"),
    Fault.LOST_BEHIND_ERROR: (500, "InternalError"),
}


class FaultyProxy:
    """A proxy of one server. `faults` says what happens to the next requests with `method`; then nothing."""

    def __init__(self, server: str, session: ClientSession) -> None:
        self._server = server
        self._session = session
        self.endpoint = ""
        self.method = "PUT"
        self.faults: Iterator[Fault | None] = iter(())
        self.injected: Counter[Fault] = Counter()
        self.requests: Counter[str] = Counter()
        """Requests that came, by method."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Pass a request on, or not."""
        self.requests[request.method] += 1
        fault = next(self.faults, None) if request.method == self.method else None
        if fault is None:
            return await self._passed_on(request)
        self.injected[fault] += 1
        if fault is Fault.RESET:
            await request.content.read(1)
            return _reset(request)
        if fault is Fault.SLOW:
            await asyncio.sleep(SLOW_SECONDS)
            return await self._passed_on(request)
        if fault in (Fault.LOST, Fault.LOST_BEHIND_ERROR, Fault.CUT):
            answer = await self._passed_on(request)
            if fault is Fault.LOST:
                return _reset(request)
            if fault is Fault.CUT:
                return await _cut(request, answer)
        status, code = _ANSWERS[fault]
        await request.read()
        return web.Response(status=status, text=f"<Error><Code>{code}</Code></Error>")

    async def _passed_on(self, request: web.Request) -> web.Response:
        url = URL(f"{self._server}{request.raw_path}", encoded=True)
        async with self._session.request(
            request.method,
            url,
            headers=request.headers,
            data=io.BytesIO(await request.read()),  # aiohttp warns of large bytes
            skip_auto_headers=("Content-Type", "User-Agent", "Accept", "Accept-Encoding"),
            allow_redirects=False,
        ) as answer:
            headers = {
                name: value for name, value in answer.headers.items() if name.lower() not in _HOP_BY_HOP
            }
            return web.Response(status=answer.status, headers=headers, body=await answer.read())


def _reset(request: web.Request) -> web.Response:
    """Close the connection so that the client sees a reset and not an end."""
    transport = request.transport
    assert transport is not None
    transport.get_extra_info("socket").setsockopt(
        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
    )
    transport.abort()
    return web.Response()


async def _cut(request: web.Request, answer: web.Response) -> web.StreamResponse:
    whole = answer.body
    assert isinstance(whole, bytes)
    response = web.StreamResponse(status=answer.status, headers=answer.headers)
    await response.prepare(request)
    await response.write(whole[: len(whole) // 2])
    _reset(request)
    return response


@asynccontextmanager
async def proxying(server: str) -> AsyncIterator[FaultyProxy]:
    """A proxy of the server at an address, itself at `endpoint`."""
    async with ClientSession(
        cookie_jar=DummyCookieJar(), timeout=ClientTimeout(total=60), auto_decompress=False
    ) as session:
        proxy = FaultyProxy(server, session)
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/{path:.*}", proxy.handle)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        proxy.endpoint = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield proxy
        finally:
            await runner.cleanup()
