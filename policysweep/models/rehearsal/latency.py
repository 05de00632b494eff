"""How long an answer takes: a first-token time, a time per token, and a bounded number at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from policysweep.models.rehearsal import draws


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds that one answer takes."""

    first_token: float
    per_token: float


@dataclass(frozen=True, slots=True)
class LatencyModel:
    """Seconds to the first token and per further token; `jitter` is the largest relative deviation."""

    first_token: float = 0.0
    per_token: float = 0.0
    jitter: float = 0.0

    def pace(self, digest: str) -> Pace:
        """The pace of one request: equal digests are equally slow."""
        factor = 1.0
        if self.jitter:
            factor += self.jitter * (2.0 * draws.fraction("jitter", digest) - 1.0)
        return Pace(self.first_token * factor, self.per_token * factor)


class Slots:
    """Requests in work and in the queue; 0 slots means that nothing queues."""

    def __init__(self, limit: int) -> None:
        self._gate = asyncio.Semaphore(limit) if limit else None
        self.running = 0
        self.waiting = 0

    async def enter(self) -> None:
        """Wait for a slot."""
        if self._gate is not None:
            with self._queued():
                await self._gate.acquire()
        self.running += 1

    def leave(self) -> None:
        """Give the slot back."""
        self.running -= 1
        if self._gate is not None:
            self._gate.release()

    @contextmanager
    def _queued(self) -> Iterator[None]:
        self.waiting += 1
        try:
            yield
        finally:
            self.waiting -= 1
