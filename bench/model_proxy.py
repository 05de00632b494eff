"""A proxy in front of model servers: keeps a session on one of them, and shows what passes through.

It stands for a prefix-affine router: requests that carry the same session header go to the same server, so
that the prefix which a conversation left in a server's cache is there when the conversation goes on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import aiohttp
from aiohttp import web

from policysweep.models.openai_api import SESSION_HEADER

_HOP_BY_HOP = frozenset(("connection", "content-encoding", "content-length", "host", "transfer-encoding"))

OnRequest = Callable[[str, bytes], None]
"""Told the session id, empty when there is none, and the body of each request for a completion."""


def pick(session: str, servers: Sequence[str]) -> str:
    """The server of a session; the same for everybody who asks with the same servers."""
    return servers[int.from_bytes(hashlib.sha256(session.encode()).digest()[:8]) % len(servers)]


class ModelProxy:
    """Serves on a port of its own while the block runs; `url` is its address."""

    def __init__(self, servers: Sequence[str], on_request: OnRequest, *, affine: bool = True) -> None:
        """`servers` are base URLs without a path. Without `affine` requests go round in turn."""
        self._servers = servers
        self._on_request = on_request
        self._affine = affine
        self._turn = 0
        self.url = ""

    async def __aenter__(self) -> ModelProxy:
        # Whoever asks has a time limit, and a model on a CPU may take minutes.
        unlimited = aiohttp.ClientTimeout(total=None)
        self._session = aiohttp.ClientSession(auto_decompress=False, timeout=unlimited)
        app = web.Application(client_max_size=64 << 20)
        app.router.add_route("*", "/{path:.*}", self._forward)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://{self._runner.addresses[0][0]}:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._runner.cleanup()
        await self._session.close()

    async def _forward(self, request: web.Request) -> web.Response:
        body = await request.read()
        session = request.headers.get(SESSION_HEADER, "")
        if request.path.endswith("/chat/completions"):
            self._on_request(session, body)
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP_BY_HOP}
        url = self._server(session) + request.path_qs
        async with self._session.request(request.method, url, data=body, headers=headers) as answer:
            kept = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP_BY_HOP}
            return web.Response(status=answer.status, headers=kept, body=await answer.read())

    def _server(self, session: str) -> str:
        if self._affine and session:
            return pick(session, self._servers)
        self._turn += 1
        return self._servers[self._turn % len(self._servers)]
