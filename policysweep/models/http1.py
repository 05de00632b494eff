"""HTTP/1.1 as a model call needs it: one request, the whole answer, over a connection that is kept.

    async with HttpClient(URL("http://host:8000"), {"Content-Type": "application/json"}) as client:
        answer = await client.exchange("POST", "/v1/chat/completions", body)

Hundreds of calls are under way at once, each with a large body out and a small one back. A general client
takes three times the CPU for one and keeps the body until the answer is there (docs/adr/0004). This one
follows no redirect, keeps no cookie, uses no proxy, asks for no compression and never sends a request twice.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self, cast

from yarl import URL

# Below the 5 s after which uvicorn, and so vLLM, closes an idle connection: otherwise a request and the
# server's close would cross on the way, and a healthy server would look dead.
_KEEPALIVE_SECONDS = 4.0

_MAX_HEAD_BYTES = 64 * 1024
MAX_BODY_BYTES = 16 * 1024 * 1024
"""No answer of a model is larger: it could not be passed on in one gRPC message."""
_VERSION = b"HTTP/1."
_NO_BODY = frozenset({204, 304})


class HttpError(Exception):
    """No complete answer came. One of the classes below says why, its text what happened."""


class Unreachable(HttpError):
    """There is no connection."""


class Untrusted(HttpError):
    """There is no trusted TLS connection."""


class BrokenOff(HttpError):
    """The connection ended before the answer did."""


class NotHttp(HttpError):
    """What came is no HTTP/1.1."""


class TooLarge(HttpError):
    """The body is larger than MAX_BODY_BYTES."""

    def __init__(self) -> None:
        super().__init__(f"the answer has more than {MAX_BODY_BYTES} bytes")


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A complete answer. Names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpClient:
    """Requests to one origin, each with `headers`. Any number of connections, kept while they are in use."""

    def __init__(self, origin: URL, headers: Mapping[str, str]) -> None:
        """`headers` must be such that a header can carry them; `origin` is scheme, host and port."""
        self._host, self._port = origin.host or "", origin.port or 0
        self._tls = ssl.create_default_context() if origin.scheme == "https" else None
        self._headers = _lines({"Host": origin.host_port_subcomponent or "", **headers})
        self._idle: deque[_Connection] = deque()
        """Open connections that no exchange uses, the one used last at the end."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for connection in self._idle:
            connection.close()
        await asyncio.gather(*(connection.gone for connection in self._idle))
        self._idle.clear()

    async def exchange(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> HttpAnswer:
        """Send one request and give the whole answer, whatever its status. Raises HttpError.

        Cancelling closes the connection, so that the server learns of it.
        """
        connection = self._take() or await self._connect()
        keep = False
        try:
            length = f"Content-Length: {len(body)}\r\n" if body else ""
            head = f"{method} {path} HTTP/1.1\r\n{self._headers}{_lines(headers or {})}{length}\r\n"
            connection.send(head.encode("ascii"), body)
            del body  # it is large, and the answer takes seconds
            answer, keep = await _read_answer(connection)
            return answer
        finally:
            if keep:
                self._idle.append(connection)
            else:
                connection.close()

    def _take(self) -> _Connection | None:
        """A kept connection; those that nobody has used for long are closed on the way."""
        now = asyncio.get_running_loop().time()
        while self._idle and (now - self._idle[0].last_used > _KEEPALIVE_SECONDS):
            self._idle.popleft().close()
        while self._idle:
            connection = self._idle.pop()
            if connection.usable:
                return connection
            connection.close()
        return None

    async def _connect(self) -> _Connection:
        loop = asyncio.get_running_loop()
        try:
            _, connection = await loop.create_connection(
                lambda: _Connection(loop), self._host, self._port, ssl=self._tls
            )
        except ssl.SSLError as error:
            raise Untrusted(str(error)) from error
        except OSError as error:
            raise Unreachable(error.strerror or str(error)) from error
        return connection


class _Connection(asyncio.Protocol):
    """One connection, with what has arrived on it and has not been read."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._transport: asyncio.Transport
        self._arrived = bytearray()
        self._waiter: asyncio.Future[None] | None = None
        self._ended: str | None = None
        """Why nothing more will come."""
        self.last_used = 0.0
        self.gone: asyncio.Future[None] = loop.create_future()

    @property
    def usable(self) -> bool:
        """Whether a request may be sent: the connection is up, and nothing came that nobody asked for."""
        return self._ended is None and not self._arrived

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # of TCP or TLS, which are always such

    def data_received(self, data: bytes) -> None:
        self._arrived += data
        self._wake()

    def eof_received(self) -> None:
        self._end("the server closed the connection")

    def connection_lost(self, error: Exception | None) -> None:
        self._end(str(error or "the connection was closed"))
        if not self.gone.done():
            self.gone.set_result(None)

    def _end(self, why: str) -> None:
        self._ended = self._ended or why
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def send(self, head: bytes, body: bytes) -> None:
        """Hand a request to the transport, which sends what the network cannot take at once later."""
        self._transport.writelines((head, body))

    def close(self) -> None:
        """Drop the connection with what is still to be sent or read."""
        self._transport.abort()

    async def read_until(self, mark: bytes) -> bytes:
        """All up to the next `mark`, which is included."""
        while (at := self._arrived.find(mark)) < 0:
            if len(self._arrived) > _MAX_HEAD_BYTES:
                raise NotHttp(f"no end of the head in {len(self._arrived)} bytes")
            await self._more()
        return self._next(at + len(mark))

    async def read(self, size: int) -> bytes:
        """The next `size` bytes."""
        while len(self._arrived) < size:
            await self._more()
        return self._next(size)

    async def read_to_end(self) -> bytes:
        """All that comes until the server closes the connection."""
        while self._ended is None:
            _check_size(len(self._arrived))
            await self._more()
        return self._next(len(self._arrived))

    async def _more(self) -> None:
        if self._ended is not None:
            raise BrokenOff(self._ended)
        self._waiter = self._loop.create_future()
        await self._waiter

    def _next(self, size: int) -> bytes:
        taken = bytes(self._arrived[:size])
        del self._arrived[:size]
        self.last_used = self._loop.time()
        return taken


def _lines(headers: Mapping[str, str]) -> str:
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items())


async def _read_answer(connection: _Connection) -> tuple[HttpAnswer, bool]:
    """The answer, and whether the server keeps the connection."""
    while True:
        start = await connection.read(len(_VERSION))
        if start != _VERSION:
            raise NotHttp(f"the answer starts with {start!r}")
        minor, status, headers = _parse_head(await connection.read_until(b"\r\n\r\n"))
        if status >= 200:  # others announce the answer
            break
    body, delimited = await _read_body(connection, status, headers)
    option = headers.get("connection", "").lower()
    keep = delimited and ("close" not in option if minor == "1" else "keep-alive" in option)
    return HttpAnswer(status, headers, body), keep


def _parse_head(head: bytes) -> tuple[str, int, dict[str, str]]:
    """Minor version, status and headers of `head`, which starts behind "HTTP/1."."""
    line, *fields = head[:-4].decode("latin-1").split("\r\n")
    minor, _, status = line.partition(" ")
    headers = {}
    for field in fields:
        name, colon, value = field.partition(":")
        if not colon:
            raise NotHttp(f"{field[:80]!r} is no header")
        headers[name.lower()] = value.strip()
    return minor, _number(status[:3].encode(), 10, "status"), headers


async def _read_body(connection: _Connection, status: int, headers: Mapping[str, str]) -> tuple[bytes, bool]:
    """The body, and whether its own end is told, not only that of the connection."""
    if status in _NO_BODY:
        return b"", True
    if "transfer-encoding" in headers:
        return await _read_chunks(connection), True
    if "content-length" in headers:
        length = _number(headers["content-length"].encode(), 10, "length")
        _check_size(length)
        return await connection.read(length), True
    return await connection.read_to_end(), False


async def _read_chunks(connection: _Connection) -> bytes:
    chunks: list[bytes] = []
    total = 0
    while size := _chunk_size(await connection.read_until(b"\r\n")):
        total += size
        _check_size(total)
        chunks.append(await connection.read(size))
        if await connection.read(2) != b"\r\n":
            raise NotHttp("a chunk is longer than it says")
    while await connection.read_until(b"\r\n") != b"\r\n":
        pass  # trailers
    return b"".join(chunks)


def _check_size(size: int) -> None:
    if size > MAX_BODY_BYTES:
        raise TooLarge


def _chunk_size(line: bytes) -> int:
    return _number(line.partition(b";")[0].strip(), 16, "size of a chunk")


def _number(digits: bytes, base: int, what: str) -> int:
    if not digits.isalnum():
        raise NotHttp(f"{digits[:20]!r} is no {what}")
    try:
        return int(digits, base)
    except ValueError:
        raise NotHttp(f"{digits[:20]!r} is no {what}") from None
