"""What every process of the project does at its ends, whether it serves gRPC, HTTP or nothing.

It tells its parent where it listens, knows when to stop, and keeps the collector from walking what will stay.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys

import orjson


def calm_collector() -> None:
    """Keep the cyclic collector from walking what was imported, and from running after every few calls.

    Reference counting frees nearly all that a call allocates; the collector is left with rare cycles.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def announce(service: str, address: str) -> None:
    """Tell the parent process where this service listens: one JSON line on stdout."""
    sys.stdout.buffer.write(
        orjson.dumps({"event": "listening", "service": service, "address": address}) + b"\n"
    )
    sys.stdout.buffer.flush()


def stop_event(stdin_eof: bool = False) -> asyncio.Event:
    """An event of the running loop that SIGTERM, SIGINT and, if asked for, the end of stdin set."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if stdin_eof:
        loop.add_reader(sys.stdin.fileno(), _on_stdin, stop)
    return stop


def _on_stdin(stop: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 4096):
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        stop.set()
