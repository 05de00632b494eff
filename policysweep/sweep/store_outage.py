"""Sitting out a store that cannot be reached, or is not well: its callers wait and ask again.

The client of an object store repeats single requests, for a second or two. An outage is longer than that: a
store that is restarted, a network that is gone. It is sat out here, operation by operation, with credentials
and signatures that are new each time, and in the event loop, so that whoever wants to stop need not wait.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from policysweep.errors import StoreUnavailable

Result = TypeVar("Result")

_FIRST_DELAY = 0.5
_LONGEST_DELAY = 8.0

_log = structlog.get_logger(__name__)


class Outage:
    """The outages of one store. Any number of operations may wait at once; one line is logged for all."""

    def __init__(
        self,
        url: str,
        seconds: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """An operation is given up when it has not succeeded for `seconds`."""
        self._url = url
        self._seconds = seconds
        self._clock = clock
        self._sleep = sleep
        self._told = False

    async def sat_out(self, operation: Callable[[], Awaitable[Result]]) -> Result:
        """What `operation` gives, asked again after each StoreUnavailable. Raises the last one."""
        began = self._clock()
        delay = _FIRST_DELAY
        while True:
            try:
                result = await operation()
            except StoreUnavailable as error:
                if self._clock() + delay - began > self._seconds:
                    raise
                self._tell(error)
            else:
                self._over()
                return result
            await self._sleep(delay)
            delay = min(2 * delay, _LONGEST_DELAY)

    def _tell(self, error: StoreUnavailable) -> None:
        if not self._told:
            _log.warning("store_unavailable", store=self._url, problem=str(error), seconds=self._seconds)
        self._told = True

    def _over(self) -> None:
        if self._told:
            _log.warning("store_available_again", store=self._url)
        self._told = False
