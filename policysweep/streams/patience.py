"""How long one task is tried: the retries of all calls that it makes. Nobody below retries.

A call that fails by itself uses up one of the task's attempts. A service that answers nobody does not, until
that has lasted `outage_seconds`. What is already there, the conversation for example, is never made again for
a call that comes after it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from policysweep.errors import PolicysweepError
from policysweep.sweep.backlog import OUTAGE_ERRORS, backoff
from policysweep.sweep.runner import failed_attempt
from policysweep.v1 import run_pb2

Answer = TypeVar("Answer")


class Patience:
    """The attempts of one task."""

    def __init__(
        self,
        unit_id: str,
        max_attempts: int,
        outage_seconds: float,
        *,
        on_retry: Callable[[PolicysweepError], None] = lambda error: None,
        on_answer: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`on_retry` is told of each error after which the call is made again, `on_answer` of each answer."""
        self._unit_id = unit_id
        self._max_attempts = max_attempts
        self._outage_seconds = outage_seconds
        self._on_retry = on_retry
        self._on_answer = on_answer
        self._clock = clock
        self._sleep = sleep
        self.failures: list[run_pb2.FailedAttempt] = []
        """Attempts that failed, oldest first."""
        self._counted = 0

    async def until_done(self, call: Callable[[], Awaitable[Answer]]) -> Answer:
        """What `call` gives, made again after faults that may pass. Raises its last error."""
        silent_since: float | None = None
        while True:
            try:
                answer = await call()
            except PolicysweepError as error:
                self.failures.append(failed_attempt(error))
                silent_since = self._silent_since(error, silent_since)
                if not self._again(error, silent_since):
                    raise
                self._on_retry(error)
                await self._sleep(backoff(self._unit_id, len(self.failures), error))
            else:
                self._on_answer()
                return answer

    def _silent_since(self, error: PolicysweepError, before: float | None) -> float | None:
        if not isinstance(error, OUTAGE_ERRORS):
            return None
        return self._clock() if before is None else before

    def _again(self, error: PolicysweepError, silent_since: float | None) -> bool:
        if silent_since is not None:
            return error.retryable and self._clock() - silent_since < self._outage_seconds
        self._counted += 1
        return error.retryable and self._counted < self._max_attempts
