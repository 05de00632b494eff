"""The model client against real sockets: what arrives at the server, and each way in which it can fail."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest

from policysweep import errors
from policysweep.models.chat import ChatRequest
from policysweep.models.openai_api import OpenAIChatModel

COMPLETION = orjson.dumps({"choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}]})
ASKED = ChatRequest(messages=[{"role": "user", "content": "hi"}], session_id="ep-1", timeout=5)


@dataclass
class Seen:
    """A request as it arrived."""

    line: str
    headers: dict[str, str]
    body: bytes


Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Server:
    """Reads requests and leaves the answer to `answer`, byte by byte."""

    answer: Answer
    seen: list[Seen] = field(default_factory=list)
    connections: int = 0
    url: str = ""
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                headers = {name.lower(): value for name, _, value in (h.partition(": ") for h in head[1:-2])}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                self.seen.append(Seen(head[0], headers, body))
                await self.answer(writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.ended.set()
            writer.close()


def http(status: int, body: bytes, *headers: str) -> Answer:
    async def answer(writer: asyncio.StreamWriter) -> None:
        lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", *headers]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    return answer


def raw(data: bytes, then: Callable[[asyncio.StreamWriter], None] = lambda writer: writer.close()) -> Answer:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        then(writer)

    return answer


def reset(writer: asyncio.StreamWriter) -> None:
    """Close with a TCP reset instead of an orderly end."""
    raw_socket: socket.socket = writer.get_extra_info("socket")
    raw_socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@asynccontextmanager
async def serving(answer: Answer) -> AsyncIterator[Server]:
    server = Server(answer)
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.create_task(server.handle(reader, writer)))

    listener = await asyncio.start_server(accept, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listener.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def model(server: Server, **options: Any) -> OpenAIChatModel:
    return OpenAIChatModel(base_url=server.url, model="m", **options)


async def failure(answer: Answer, request: ChatRequest = ASKED) -> errors.PolicysweepError:
    """The error of one call; also holds the call to one attempt on the wire."""
    async with serving(answer) as server, model(server, api_key="sk-very-secret") as chat:
        with pytest.raises(errors.PolicysweepError) as caught:
            await chat.complete(request)
        assert len(server.seen) == 1
        assert server.url in str(caught.value)
        return caught.value


async def test_one_post_with_session_and_key() -> None:
    async with serving(http(200, COMPLETION)) as server, model(server, api_key="sk-1") as chat:
        reply = await chat.complete(ASKED)
    assert reply.text == "hello"
    assert reply.usage.latency_seconds > 0
    (seen,) = server.seen
    assert seen.line == "POST /v1/chat/completions HTTP/1.1"
    assert seen.headers["x-session-id"] == "ep-1"
    assert seen.headers["authorization"] == "Bearer sk-1"
    assert seen.headers["content-type"] == "application/json"
    assert orjson.loads(seen.body)["model"] == "m"


async def test_no_key_no_authorization_and_no_session_no_header() -> None:
    async with serving(http(200, COMPLETION)) as server, model(server) as chat:
        await chat.complete(ChatRequest(messages=ASKED.messages))
    assert {"authorization", "x-session-id"}.isdisjoint(server.seen[0].headers)


@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/"])
async def test_the_base_url_may_leave_out_v1(suffix: str) -> None:
    async with serving(http(200, COMPLETION)) as server:
        chat = OpenAIChatModel(base_url=server.url + suffix, model="m")
        async with chat:
            await chat.complete(ASKED)
    assert server.seen[0].line.split()[1] == "/v1/chat/completions"


async def test_a_session_id_that_no_header_can_carry_becomes_its_hash() -> None:
    async with serving(http(200, COMPLETION)) as server, model(server) as chat:
        for session in ("a\r\nX-Evil: 1", "ü", "x" * 5000):
            await chat.complete(ChatRequest(messages=ASKED.messages, session_id=session))
    sent = [seen.headers["x-session-id"] for seen in server.seen]
    assert [len(value) for value in sent] == [64, 64, 64]
    assert len(set(sent)) == 3
    assert all("x-evil" not in seen.headers for seen in server.seen)


async def test_connections_are_kept_and_a_closed_one_is_replaced() -> None:
    async def close_every_second(writer: asyncio.StreamWriter) -> None:
        await http(200, COMPLETION)(writer)
        if len(server.seen) % 2 == 0:
            writer.close()

    async with serving(close_every_second) as server, model(server) as chat:
        for _ in range(4):
            assert (await chat.complete(ASKED)).text == "hello"
            await asyncio.sleep(0.02)  # lets the close arrive, as it does between two real calls
    assert (server.connections, len(server.seen)) == (2, 4)


async def test_a_body_of_several_megabytes() -> None:
    messages = [{"role": "user", "content": "ü" * 3_000_000}]
    async with serving(http(200, COMPLETION)) as server, model(server) as chat:
        await chat.complete(ChatRequest(messages=messages))
    context, completion = server.seen  # a large prompt is preceded by the question how much fits
    assert context.line.startswith("GET /v1/models")
    assert len(completion.body) > 6_000_000
    assert orjson.loads(completion.body)["messages"] == messages


async def test_refused() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        async with OpenAIChatModel(base_url=url, model="m") as chat:
            with pytest.raises(errors.ModelServerUnavailable, match="cannot be reached"):
                await chat.complete(ASKED)


HALF = b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{"
CHUNK = b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"cho\r\n'


@pytest.mark.parametrize(
    "answer",
    [
        raw(b""),
        raw(b"", reset),
        raw(HALF),
        raw(HALF, reset),
        raw(CHUNK),
        raw(b"HTTP/1.1 20"),
        http(500, b"x"),
    ],
    ids=["closed", "reset", "closed in body", "reset in body", "closed in chunks", "closed in head", "500"],
)
async def test_unavailable(answer: Answer) -> None:
    assert type(await failure(answer)) is errors.ModelServerUnavailable


@pytest.mark.parametrize("sent", [b"", HALF, CHUNK], ids=["silence", "stalled body", "stalled chunks"])
async def test_timeout(sent: bytes) -> None:
    request = ChatRequest(messages=ASKED.messages, timeout=0.1)
    error = await failure(raw(sent, lambda writer: None), request)
    assert type(error) is errors.ModelServerTimeout
    assert "within 0.1 s" in str(error)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (http(200, COMPLETION[:-9]), errors.ModelServerGarbled),
        (raw(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"), errors.ModelServerGarbled),
        (http(400, b'{"error":{"code":"context_length_exceeded","message":"m"}}'), errors.ContextOverflow),
        (http(404, b'{"error":{"message":"The model `m` does not exist."}}'), errors.ModelServerRejected),
        (http(307, b"", "Location: http://elsewhere/v1"), errors.ModelServerRejected),
        (http(503, b"draining"), errors.ModelServerUnavailable),
    ],
    ids=["half JSON", "not HTTP", "overflow", "unknown model", "redirect", "draining"],
)
async def test_other_failures(answer: Answer, kind: type[errors.PolicysweepError]) -> None:
    assert type(await failure(answer)) is kind


@pytest.mark.parametrize("status", [429, 503])
async def test_busy_carries_the_wait(status: int) -> None:
    error = await failure(http(status, b"{}", "Retry-After: 7"))
    assert (type(error), error.retry_after) == (errors.ModelServerBusy, 7.0)


async def test_cancelling_closes_the_connection() -> None:
    arrived = asyncio.Event()

    async def stall(writer: asyncio.StreamWriter) -> None:
        arrived.set()

    async with serving(stall) as server, model(server) as chat:
        call = asyncio.create_task(chat.complete(ASKED))
        await arrived.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        async with asyncio.timeout(5):
            await server.ended.wait()


async def test_the_key_never_shows() -> None:
    body = b'{"error":{"message":"Incorrect API key provided: sk-very-secret"}}'
    error = await failure(http(401, body, "Retry-After: 1"))
    assert "Incorrect API key provided: ***" in str(error)
    assert "sk-very-secret" not in repr(
        OpenAIChatModel(base_url="http://h", model="m", api_key="sk-very-secret")
    )


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("localhost:8000", "is not one"),
        ("", "is not one"),
        ("ftp://host/v1", "is not one"),
        ("http://host:port/v1", "port"),
        ("http://user:pass@host/v1", "the model URL of host holds credentials"),
        ("ftp://user:pass@host/v1", "is not one"),
        ("http://user:pass@host:port/v1", "port"),
        ("http://host/v1/chat/completions", "must end at /v1"),
        ("http://host/v1?key=pass", "must end at /v1"),
        ("http://host/v1#pass", "must end at /v1"),
    ],
)
def test_a_url_that_is_none(url: str, said: str) -> None:
    with pytest.raises(errors.InputError, match=said) as caught:
        OpenAIChatModel(base_url=url, model="m")
    assert "pass" not in str(caught.value)


def test_a_key_that_no_header_can_carry() -> None:
    with pytest.raises(errors.InputError, match="API key") as caught:
        OpenAIChatModel(base_url="http://h", model="m", api_key="sk-secret\n")
    assert "secret" not in str(caught.value)


async def test_using_it_before_entering_it() -> None:
    with pytest.raises(RuntimeError, match="outside of its async context"):
        await OpenAIChatModel(base_url="http://h", model="m").complete(ASKED)


class TestDescribe:
    listed = orjson.dumps(
        {"data": [{"id": "m", "owned_by": "vllm", "max_model_len": 8192}, {"id": "r", "owned_by": None}]}
    )

    async def test_a_served_model(self) -> None:
        async with serving(http(200, self.listed)) as server, model(server) as chat:
            described = await chat.describe()
        assert server.seen[0].line == "GET /v1/models HTTP/1.1"
        assert (described.model, described.rehearsal, described.max_model_len) == ("m", False, 8192)

    async def test_rehearsal_and_no_length(self) -> None:
        listed = b'{"data":[{"id":"m","owned_by":"policysweep-rehearsal"}]}'
        async with serving(http(200, listed)) as server, model(server) as chat:
            described = await chat.describe()
        assert (described.rehearsal, described.max_model_len) == (True, None)

    async def test_another_model_names_the_served_ones(self) -> None:
        async with serving(http(200, self.listed)) as server:
            chat = OpenAIChatModel(base_url=server.url, model="x")
            async with chat:
                with pytest.raises(errors.ModelServerRejected, match="does not serve 'x'; it serves m, r"):
                    await chat.describe()

    @pytest.mark.parametrize("body", [b"{}", b'{"data": [1]}', b"[]", b"hello"])
    async def test_not_a_list_of_models(self, body: bytes) -> None:
        async with serving(http(200, body)) as server, model(server) as chat:
            with pytest.raises(errors.ModelServerGarbled):
                await chat.describe()

    async def test_timeout(self) -> None:
        async with serving(raw(b"", lambda writer: None)) as server, model(server) as chat:
            with pytest.raises(errors.ModelServerTimeout):
                await chat.describe(0.05)
