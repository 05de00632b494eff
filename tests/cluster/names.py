"""The cluster's name server: a Service without an address of its own is the addresses of its ready pods."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

_ADDRESS_RECORD = 1


class NameServer(asyncio.DatagramProtocol):
    """Answers questions for addresses out of `ready`, by the first label of the name."""

    def __init__(self) -> None:
        self.ready: defaultdict[str, set[str]] = defaultdict(set)
        """IPv4 addresses by name."""
        self.port = 0

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self.port = transport.get_extra_info("sockname")[1]

    def datagram_received(self, data: bytes, addr: Any) -> None:
        name = data[13 : 13 + data[12]].decode("ascii", "replace")
        end = data.index(b"\0", 12) + 1
        (kind,) = struct.unpack_from(">H", data, end)
        found = sorted(self.ready[name]) if kind == _ADDRESS_RECORD else []
        answer = data[:2] + struct.pack(">5H", 0x8580, 1, len(found), 0, 0) + data[12 : end + 4]
        for address in found:
            answer += struct.pack(">HHHIH", 0xC00C, _ADDRESS_RECORD, 1, 0, 4) + socket.inet_aton(address)
        self._transport.sendto(answer, addr)

    def target(self, name: str, port: int) -> str:
        """The gRPC target `dns:///NAME:PORT`, to be looked up here."""
        return f"dns://127.0.0.1:{self.port}/{name}:{port}"


@asynccontextmanager
async def name_server() -> AsyncIterator[NameServer]:
    """A name server on a port of the system's choice."""
    transport, server = await asyncio.get_running_loop().create_datagram_endpoint(
        NameServer, local_addr=("127.0.0.1", 0)
    )
    try:
        yield server
    finally:
        transport.close()
