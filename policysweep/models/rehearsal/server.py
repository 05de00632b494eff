"""The HTTP side of the rehearsal model: an OpenAI-compatible server for sweeps without a GPU.

    async with RehearsalServer(RehearsalConfig(first_token=0.2)) as server:
        ...  # point a client at server.url

    POST /v1/chat/completions   chat, tools, structured output, logprobs, streaming
    POST /tokenize              token counts of a prompt
    GET  /v1/models  /health  /metrics
    GET, POST /rehearsal/faults fault rates; loopback only

Built on aiohttp's low-level server: a table of routes is all that it needs, and it costs half as much per
request as an application does.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self

import orjson
from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_parser import RawRequestMessage
from aiohttp.streams import StreamReader
from aiohttp.web_protocol import RequestHandler

from policysweep.errors import InputError
from policysweep.models.rehearsal import wire
from policysweep.models.rehearsal.config import RehearsalConfig
from policysweep.models.rehearsal.delivery import Answer, abort
from policysweep.models.rehearsal.engine import Engine
from policysweep.models.rehearsal.faults import FaultKind
from policysweep.models.rehearsal.refusals import REFUSALS, Refusal
from policysweep.models.rehearsal.request import ApiError, parse

_Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

_MAX_BODY_BYTES = 64 * 1024 * 1024
_STOP_SECONDS = 2.0
_JSON = "application/json"


class RehearsalServer:
    """A rehearsal model server. `start` binds, `stop` lets answers under way finish for two seconds."""

    def __init__(self, config: RehearsalConfig | None = None) -> None:
        self._config = config or RehearsalConfig()
        self._engine = Engine(self._config)
        self._runner: web.ServerRunner | None = None
        self._stopping = asyncio.Event()
        self._address = ""
        self._routes: dict[str, dict[str, _Handler]] = {
            "/v1/chat/completions": {"POST": self._chat},
            "/tokenize": {"POST": self._tokenize},
            "/v1/models": {"GET": self._models},
            "/health": {"GET": self._health},
            "/metrics": {"GET": self._metrics},
            "/rehearsal/faults": {"GET": self._get_faults, "POST": self._set_faults},
        }

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def address(self) -> str:
        """HOST:PORT with the port that was bound."""
        return self._address

    @property
    def url(self) -> str:
        """The base URL, without "/v1"."""
        return f"http://{self._address}"

    async def start(self) -> None:
        """Bind and serve. Raises InputError when the address cannot be bound."""
        server = web.Server(
            self._dispatch, request_factory=_request, handler_cancellation=True, access_log=None
        )
        self._runner = web.ServerRunner(server, shutdown_timeout=_STOP_SECONDS)
        await self._runner.setup()
        host, port = self._config.host_and_port()
        try:
            await web.TCPSite(self._runner, host, port, backlog=4096).start()
        except OSError as error:
            await self._runner.cleanup()
            raise InputError(
                f"cannot listen on {self._config.listen}: {os.strerror(error.errno or 0)}; "
                "choose another with --listen HOST:PORT (port 0 takes a free one)"
            ) from error
        bound = self._runner.addresses[0][1]
        self._address = f"[{host}]:{bound}" if ":" in host else f"{host}:{bound}"

    async def stop(self) -> None:
        """Stop serving."""
        self._stopping.set()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def set_faults(self, rates: dict[str, float]) -> None:
        """Replace the fault rates by kind. Raises InputError for unknown kinds."""
        self._engine.set_faults(rates)

    # ----------------------------------------------------------------- routes

    async def _dispatch(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self._handler(request)(request)
        except ApiError as error:
            return _json(wire.error_body(str(error), error.status, error.param), error.status)
        except web.HTTPRequestEntityTooLarge:
            return _json(wire.error_body(f"The body is larger than {_MAX_BODY_BYTES} bytes.", 413), 413)

    def _handler(self, request: web.BaseRequest) -> _Handler:
        methods = self._routes.get(request.path)
        if methods is None:
            raise ApiError(f"There is no {request.path} here.", status=404)
        if request.method not in methods:
            raise ApiError(f"{request.path} does not answer {request.method}.", status=405)
        return methods[request.method]

    async def _models(self, request: web.BaseRequest) -> web.StreamResponse:
        return _json(wire.models_body(list(self._engine.models), self._engine.max_model_len))

    async def _health(self, request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=b"")

    async def _metrics(self, request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(
            body=self._engine.metrics.render(),
            headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"},
        )

    async def _tokenize(self, request: web.BaseRequest) -> web.StreamResponse:
        return _json(orjson.dumps(self._engine.tokenize(await _object(request))))

    async def _get_faults(self, request: web.BaseRequest) -> web.StreamResponse:
        _require_loopback(request)
        return self._fault_rates()

    async def _set_faults(self, request: web.BaseRequest) -> web.StreamResponse:
        _require_loopback(request)
        try:
            self.set_faults(await _object(request))
        except InputError as error:
            raise ApiError(str(error)) from error
        return self._fault_rates()

    def _fault_rates(self) -> web.Response:
        return _json(orjson.dumps({str(kind): rate for kind, rate in self._engine.faults.rates.items()}))

    # ------------------------------------------------------------------- chat

    async def _chat(self, request: web.BaseRequest) -> web.StreamResponse:
        arrived = asyncio.get_running_loop().time()
        parsed = parse(await _body(request))
        served = self._engine.model(parsed.model)
        fault = self._engine.faults.draw(parsed.digest)
        if fault is not None and fault in REFUSALS:
            return self._refused(REFUSALS[fault](self._config.retry_after))
        if fault is FaultKind.RESET:
            return _reset(request)
        if fault is FaultKind.STALL:
            await self._stopping.wait()
            return _reset(request)
        completion = self._engine.complete(parsed, served, fault)
        pace = self._engine.latency.pace(parsed.digest)
        answer = Answer(request, completion, served, pace, arrived, fault)
        del parsed, completion  # prompts are large, and hundreds of answers take their time at once
        try:
            await served.slots.enter()
            try:
                return await answer.send(self._stopping)
            finally:
                served.slots.leave()
        except (asyncio.CancelledError, ConnectionError):
            served.metrics.aborted()
            raise

    def _refused(self, refusal: Refusal) -> web.Response:
        headers = {**refusal.headers, "Content-Type": refusal.content_type}
        return web.Response(body=refusal.body, status=refusal.status, headers=headers)


def _request(
    message: RawRequestMessage,
    payload: StreamReader,
    protocol: RequestHandler,
    writer: AbstractStreamWriter,
    task: asyncio.Task[None],
) -> web.BaseRequest:
    return web.BaseRequest(message, payload, protocol, writer, task, asyncio.get_running_loop())


def _json(body: bytes, status: int = 200) -> web.Response:
    return web.Response(body=body, status=status, headers={"Content-Type": _JSON})


async def _body(request: web.BaseRequest) -> bytes:
    """The body. `request.read` would leave a copy in the request, which lives until the answer is out."""
    pieces: list[bytes] = []
    size = 0
    async for piece in request.content.iter_any():
        pieces.append(piece)
        size += len(piece)
        if size > _MAX_BODY_BYTES:
            raise web.HTTPRequestEntityTooLarge(max_size=_MAX_BODY_BYTES, actual_size=size)
    return b"".join(pieces)


async def _object(request: web.BaseRequest) -> dict[str, Any]:
    try:
        data = orjson.loads(await _body(request))
    except orjson.JSONDecodeError as error:
        raise ApiError(f"The body is not valid JSON: {error}.") from error
    if not isinstance(data, dict):
        raise ApiError("The body must be a JSON object.")
    return data


def _require_loopback(request: web.BaseRequest) -> None:
    """Whoever may break the server has to sit on its machine."""
    remote = request.remote or ""
    try:
        address = ipaddress.ip_address(remote)
    except ValueError:
        raise ApiError("Faults can be set over TCP only.", status=403) from None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    if not (mapped or address).is_loopback:
        raise ApiError("Faults can be set from this machine only.", status=403)


def _reset(request: web.BaseRequest) -> web.Response:
    abort(request)
    return web.Response()
