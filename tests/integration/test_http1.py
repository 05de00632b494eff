"""The HTTP client against real sockets: each shape that an answer may have, when a connection is kept."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from yarl import URL

from policysweep.models.http1 import (
    MAX_BODY_BYTES,
    BrokenOff,
    HttpClient,
    NotHttp,
    TooLarge,
    Unreachable,
    Untrusted,
)

OK = b"HTTP/1.1 200 OK\r\n"
HELLO = OK + b"Content-Length: 5\r\n\r\nhello"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


class Server:
    """Answers each request with the next of `answers`, the last one again; then closes if it has to."""

    def __init__(self, answers: Sequence[bytes], *, close: bool, slowly: bool) -> None:
        self._answers = answers
        self._close = close
        self._slowly = slowly
        self.connections = 0
        self.requests: list[bytes] = []
        self.url = URL()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
                self.requests.append(head + await reader.readexactly(int(length or 0)))
                await self._answer(writer)
                if self._close:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, writer: asyncio.StreamWriter) -> None:
        answer = self._answers[min(len(self.requests), len(self._answers)) - 1]
        step = 1 if self._slowly else len(answer)
        for start in range(0, len(answer), step):
            writer.write(answer[start : start + step])
            await asyncio.sleep(0)


@asynccontextmanager
async def serving(
    *answers: bytes, close: bool = False, slowly: bool = False, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Server]:
    server = Server(answers, close=close, slowly=slowly)
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.create_task(server.handle(reader, writer)))

    listener = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
    port = listener.sockets[0].getsockname()[1]
    server.url = URL(f"{'https' if tls else 'http'}://127.0.0.1:{port}")
    try:
        yield server
    finally:
        listener.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_what_is_sent() -> None:
    async with serving(HELLO) as server, HttpClient(server.url, {"A": "1"}) as client:
        await client.exchange("POST", "/path?q=1", b"body", {"B": "2"})
        await client.exchange("GET", "/other")
    assert server.requests == [
        f"POST /path?q=1 HTTP/1.1\r\nHost: 127.0.0.1:{server.url.port}\r\n".encode()
        + b"A: 1\r\nB: 2\r\nContent-Length: 4\r\n\r\nbody",
        f"GET /other HTTP/1.1\r\nHost: 127.0.0.1:{server.url.port}\r\nA: 1\r\n\r\n".encode(),
    ]
    assert server.connections == 1


ANSWERS = {
    "length": (HELLO, True),
    "chunks": (CHUNKED + b"3;x=y\r\nhel\r\n2 \r\nlo\r\n0\r\nTrailer: t\r\n\r\n", True),
    "no chunks": (CHUNKED + b"0\r\n\r\n", True),
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\n", True),
    "hints first": (b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + HELLO, True),
    "no reason": (b"HTTP/1.1 200\r\ncontent-length:5\r\n\r\nhello", True),
    "told to close": (OK + b"Connection: Close\r\nContent-Length: 5\r\n\r\nhello", False),
    "old": (b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", False),
    "old and kept": (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello", True),
    "more than told": (OK + b"Content-Length: 5\r\n\r\nhello, again", False),
}


@pytest.mark.parametrize("slowly", [False, True], ids=["at once", "byte by byte"])
@pytest.mark.parametrize(("answer", "kept"), ANSWERS.values(), ids=ANSWERS.keys())
async def test_answers(answer: bytes, kept: bool, slowly: bool) -> None:
    async with serving(answer, slowly=slowly) as server, HttpClient(server.url, {}) as client:
        for _ in range(2):
            found = await client.exchange("POST", "/", b"x")
            assert found.status == (204 if b"204" in answer else 200)
            assert found.body == (b"hello" if b"hel" in answer else b"")
            await asyncio.sleep(0.01)  # lets what came behind the answer arrive
    assert server.connections == (1 if kept else 2)


async def test_a_body_that_ends_with_the_connection() -> None:
    async with serving(OK + b"\r\nhello", close=True) as server, HttpClient(server.url, {}) as client:
        assert (await client.exchange("GET", "/")).body == b"hello"
        assert (await client.exchange("GET", "/")).body == b"hello"
    assert server.connections == 2


async def test_names_of_headers_are_in_lower_case() -> None:
    answer = b"HTTP/1.1 503 Busy\r\nRetry-After:  7 \r\nContent-Length: 0\r\n\r\n"
    async with serving(answer) as server, HttpClient(server.url, {}) as client:
        found = await client.exchange("GET", "/")
    assert (found.status, found.headers["retry-after"], found.body) == (503, "7", b"")


async def test_what_an_idle_connection_says_answers_nothing() -> None:
    timeout = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"
    async with serving(HELLO + timeout, HELLO) as server, HttpClient(server.url, {}) as client:
        await client.exchange("GET", "/")
        await asyncio.sleep(0.01)
        assert (await client.exchange("GET", "/")).status == 200
    assert server.connections == 2


async def test_many_at_once_each_get_their_own() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                path = head.split()[1]
                await asyncio.sleep(0.001 * (int(path[1:]) % 7))
                writer.write(OK + b"Content-Length: %d\r\n\r\n%s" % (len(path), path))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    listener = await asyncio.start_server(echo, "127.0.0.1", 0)
    url = URL(f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}")
    async with listener, HttpClient(url, {}) as client:
        for _ in range(3):
            found = await asyncio.gather(*(client.exchange("GET", f"/{n}") for n in range(50)))
            assert [answer.body for answer in found] == [b"/%d" % n for n in range(50)]


NOT_HTTP = {
    "greeting": b"SSH-2.0-OpenSSH_9.2\r\n",
    "HTTP/2": b"\x00\x00\x12\x04\x00\x00\x00\x00\x00",
    "status": b"HTTP/1.1 abc\r\n\r\n",
    "no status": b"HTTP/1.1\r\n\r\n",
    "no header": OK + b"hello\r\n\r\n",
    "endless head": OK + b"A: " + b"x" * 70_000,
    "length": OK + b"Content-Length: -1\r\n\r\n",
    "length with underscore": OK + b"Content-Length: 1_0\r\n\r\n",
    "chunk size": CHUNKED + b"hello\r\n",
    "no chunk size": CHUNKED + b"\r\n",
    "chunk end": CHUNKED + b"3\r\nhello\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("answer", NOT_HTTP.values(), ids=NOT_HTTP.keys())
async def test_no_http(answer: bytes) -> None:
    async with serving(answer) as server, HttpClient(server.url, {}) as client:
        with pytest.raises(NotHttp):
            await client.exchange("GET", "/")


HALVES = [b"", b"HTTP", OK, HELLO[:-1], CHUNKED + b"5\r\nhel", CHUNKED + b"5\r\nhello\r\n"]


@pytest.mark.parametrize("answer", HALVES)
async def test_half_an_answer(answer: bytes) -> None:
    async with serving(answer, close=True) as server, HttpClient(server.url, {}) as client:
        with pytest.raises(BrokenOff):
            await client.exchange("POST", "/", b"x")
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "answer",
    [
        OK + b"Content-Length: %d\r\n\r\n" % (MAX_BODY_BYTES + 1),
        CHUNKED + b"%x\r\n" % (MAX_BODY_BYTES + 1),
        CHUNKED + (b"%x\r\n" % (1 << 20) + b"." * (1 << 20) + b"\r\n") * 17,
        OK + b"\r\n" + b"." * (MAX_BODY_BYTES + 1),
    ],
    ids=["told", "one chunk", "many chunks", "without end"],
)
async def test_a_body_without_measure(answer: bytes) -> None:
    async with serving(answer) as server, HttpClient(server.url, {}) as client:
        with pytest.raises(TooLarge, match="more than 16777216 bytes"):
            await client.exchange("GET", "/")


async def test_nobody_there() -> None:
    async with serving(HELLO) as server:
        pass
    async with HttpClient(server.url, {}) as client:
        with pytest.raises(Unreachable, match=r"refused|failed"):
            await client.exchange("GET", "/")


async def test_tls_to_a_server_without() -> None:
    def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    listener = await asyncio.start_server(greet, "127.0.0.1", 0)
    url = URL(f"https://127.0.0.1:{listener.sockets[0].getsockname()[1]}")
    async with listener, HttpClient(url, {}) as client:
        with pytest.raises(Untrusted):
            await client.exchange("GET", "/")


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for 127.0.0.1 that nobody has signed, with its key."""
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl command to make a certificate")
    path, signed = tmp_path / "both.pem", tmp_path / "certificate.pem"
    made = "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=test -addext subjectAltName=IP:127.0.0.1"
    subprocess.run([*made.split(), "-keyout", path, "-out", signed], check=True, capture_output=True)
    path.write_text(path.read_text() + signed.read_text())
    return path


async def test_tls(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    async with serving(HELLO, tls=tls) as server:
        async with HttpClient(server.url, {}) as client:
            with pytest.raises(Untrusted, match="certificate"):
                await client.exchange("GET", "/")
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        async with HttpClient(server.url, {}) as client:
            for _ in range(2):
                assert (await client.exchange("POST", "/", b"x" * 1_000_000)).body == b"hello"
    assert len(server.requests) == 2
