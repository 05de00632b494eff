"""An answer on its way to the client: at the model's pace, whole or streamed, or broken off by a fault."""

from __future__ import annotations

import asyncio
import socket
import struct

from aiohttp import web

from policysweep.models.rehearsal import wire
from policysweep.models.rehearsal.engine import ServedModel
from policysweep.models.rehearsal.faults import FaultKind
from policysweep.models.rehearsal.latency import Pace
from policysweep.models.rehearsal.shapes import shaped

_JSON = "application/json"
_EVENT_STREAM = "text/event-stream"
_HALVES = frozenset({FaultKind.RESET_MID_BODY, FaultKind.STALL_MID_BODY, FaultKind.TRUNCATED_JSON})


class Answer:
    """One answer on its way to the client."""

    def __init__(
        self,
        request: web.BaseRequest,
        completion: wire.Completion,
        served: ServedModel,
        pace: Pace,
        arrived: float,
        fault: FaultKind | None,
    ) -> None:
        """`arrived` is when the request did, on the loop's clock."""
        self._request = request
        self._stream = completion.request.stream
        self._body = b"" if self._stream else shaped(wire.completion_document(completion), fault)
        self._events = wire.stream_events(completion) if self._stream else iter(())
        self._written = completion.completion_tokens
        self._finish = completion.draft.finish
        self._served = served
        self._pace = pace
        self._arrived = arrived
        self._fault = fault

    async def send(self, stopping: asyncio.Event) -> web.StreamResponse:
        """Take the model's time and send, whole or in part. A stalled answer ends when `stopping` is set."""
        if self._fault in _HALVES:
            return await self._send_half(stopping)
        return await (self._send_stream() if self._stream else self._send_whole())

    async def _send_whole(self) -> web.StreamResponse:
        await _sleep(self._pace.first_token + self._pace.per_token * (self._written - 1))
        self._observe(self._pace.first_token)
        return web.Response(body=self._body, content_type=_JSON)

    async def _send_stream(self) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": _EVENT_STREAM, "Cache-Control": "no-cache"})
        await _sleep(self._pace.first_token)
        first_token = asyncio.get_running_loop().time() - self._arrived
        await response.prepare(self._request)
        for event, brought in self._events:
            await _sleep(self._pace.per_token * brought)
            await response.write(event)
        await response.write_eof()
        self._observe(first_token)
        return response

    async def _send_half(self, stopping: asyncio.Event) -> web.StreamResponse:
        """Half of the body: as if that were all, or with the connection stalled or lost."""
        body = b"".join(event for event, _ in self._events) if self._stream else self._body
        half = body[: len(body) // 2]
        await _sleep(self._pace.first_token)
        kind = _EVENT_STREAM if self._stream else _JSON
        if self._fault is FaultKind.TRUNCATED_JSON:
            return web.Response(body=half, content_type=kind)
        response = web.StreamResponse(headers={"Content-Type": kind})
        response.content_length = len(body)
        await response.prepare(self._request)
        await response.write(half)
        await asyncio.sleep(0)  # let the half leave before the connection goes
        if self._fault is FaultKind.STALL_MID_BODY:
            await stopping.wait()
        abort(self._request)
        return response

    def _observe(self, first_token: float) -> None:
        latency = asyncio.get_running_loop().time() - self._arrived
        self._served.metrics.finished(self._finish, self._written, min(first_token, latency), latency)


async def _sleep(seconds: float) -> None:
    if seconds > 0:
        await asyncio.sleep(seconds)


def abort(request: web.BaseRequest) -> None:
    """Drop the connection with a TCP reset instead of an orderly end."""
    transport = request.transport
    if transport is None:
        return
    connection = transport.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
