"""How channels are opened: one set of options, one channel per target and event loop."""

from __future__ import annotations

from types import TracebackType
from typing import Self

import grpc
import orjson

from policysweep.rpc.tls import Credentials, Pem

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
"""Limit of one message, both ways, on every channel and server."""

_KEEPALIVE_MS = 60_000

# Retries belong to the driver alone, so no retry policy is set. New replicas are found because servers end
# connections after a while (see server.py) and the channel then resolves and balances anew.
_OPTIONS: tuple[tuple[str, int | str], ...] = (
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.keepalive_time_ms", _KEEPALIVE_MS),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.http2.max_pings_without_data", 0),
    # Without a retry policy this permits only the transparent retry of calls that no server has seen, which
    # happen whenever a server ends a connection by age.
    ("grpc.enable_retries", 1),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.min_reconnect_backoff_ms", 200),
    # A name is looked up again when a connection ends, at most this often: as long as Kubernetes' name server
    # lets an answer live. At the core's 30 s, callers of a service whose pods were all replaced fail so long.
    ("grpc.dns_min_time_between_resolutions_ms", 5_000),
    ("grpc.service_config", orjson.dumps({"loadBalancingConfig": [{"round_robin": {}}]}).decode()),
)


def open_channel(target: str, credentials: Credentials | None = None) -> grpc.aio.Channel:
    """A channel to `target`, for example "127.0.0.1:50052" or "dns:///agent:50052"; TLS with credentials.

    Over TLS the server's certificate must be one for the target's host: agent, or 127.0.0.1.
    """
    if credentials is None:
        return grpc.aio.insecure_channel(target, options=_OPTIONS)
    return grpc.aio.secure_channel(target, credentials.channel(), options=_OPTIONS)


class Channels:
    """Channels by target, opened on first use and closed together.

    A channel shows one certificate for as long as it lives. Once the files hold another, new channels are
    opened: whoever lives long takes its channel anew for each conversation.
    """

    def __init__(self, credentials: Credentials | None = None) -> None:
        """All channels use TLS when there are `credentials`, and none does otherwise."""
        self._credentials = credentials
        self._shown: Pem | None = None
        self._open: dict[str, grpc.aio.Channel] = {}
        self._outdated: list[grpc.aio.Channel] = []

    def get(self, target: str) -> grpc.aio.Channel:
        """The channel to `target`."""
        if self._credentials is not None:
            self._renew(self._credentials)
        channel = self._open.get(target)
        if channel is None:
            channel = self._open[target] = open_channel(target, self._credentials)
        return channel

    def _renew(self, credentials: Credentials) -> None:
        now = credentials.current()
        if now is not self._shown:
            # Calls in flight go on; without calls a channel lets go of its connections.
            self._outdated += self._open.values()
            self._open.clear()
            self._shown = now

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for channel in (*self._open.values(), *self._outdated):
            await channel.close()
        self._open.clear()
        self._outdated.clear()
