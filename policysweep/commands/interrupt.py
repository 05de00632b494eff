"""Ctrl-C and SIGTERM end a command in order: its work is cancelled, its services are ended."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

EXIT_INTERRUPTED = 130
"""Exit code of a command that was interrupted."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM)

Result = TypeVar("Result")


async def interruptible(work: Coroutine[Any, Any, Result]) -> Result | None:
    """The result of `work`; None when a signal ended it. In the main thread only."""
    task = asyncio.create_task(work)
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, task.cancel)
    try:
        with suppress(asyncio.CancelledError):
            return await task
        return None
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
