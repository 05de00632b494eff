"""What is still to run: units not yet started, and units waiting for another attempt.

The backlog decides what a failed attempt means. A unit has `max_attempts`. An agent or simulator that
answers nobody is an *outage*: attempts that fail in it are not the unit's own, so they are not counted,
until the outage has lasted `outage_seconds`; then the agent is given up and its units are left for the
next run. Waiting happens here, not in a unit, and its length is visible.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from policysweep.errors import (
    AgentUnavailable,
    ModelServerBusy,
    ModelServerUnavailable,
    PolicysweepError,
    ServiceUnavailable,
)
from policysweep.v1 import run_pb2

OUTAGE_ERRORS = (AgentUnavailable, ModelServerBusy, ModelServerUnavailable, ServiceUnavailable)
"""What an agent, a service or a model server that answers nobody raises."""

_FIRST_DELAY = 0.5
_LONGEST_DELAY = 15.0


def backoff(unit_id: str, failures: int, error: PolicysweepError) -> float:
    """Seconds to wait after an error: doubling with each failure, never less than the other side asked for.

    Spread by the unit's own id, so that units which failed together do not return together.
    """
    delay = min(_LONGEST_DELAY, _FIRST_DELAY * 2.0 ** min(failures, 10))
    spread = 0.75 + int(unit_id[:4], 16) / 0xFFFF / 2
    return max(error.retry_after or 0.0, delay * spread)


@dataclass(slots=True)
class Attempt:
    """A unit with the attempts that it has used up."""

    unit: run_pb2.Unit
    failures: list[run_pb2.FailedAttempt] = field(default_factory=list)
    counted: int = 0
    started: float = 0.0
    """Monotonic time at which the current attempt began."""


@dataclass(slots=True)
class Load:
    """What the units of one agent are doing at a moment. Times in seconds."""

    running: int = 0
    waiting: int = 0
    """Units that wait in back-off for another attempt."""
    oldest: float = 0.0
    """How long the longest running attempt has taken; 0 when none runs."""
    failing: float = 0.0
    """How long no attempt has succeeded since the first that failed; 0 while they succeed."""
    backoff: float = 0.0
    """Back-off that attempts were given so far, added up over units."""


@dataclass(slots=True)
class _Health:
    """When an agent last answered, and since when it does not."""

    last_success: float = float("-inf")
    failing_since: float | None = None
    given_up: bool = False
    backoff: float = 0.0


class Backlog:
    """Hands out attempts to workers of one event loop. `take` ends with None when nothing is left."""

    def __init__(
        self,
        units: Iterator[run_pb2.Unit],
        *,
        max_attempts: int,
        outage_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._units = units
        self._max_attempts = max_attempts
        self._outage_seconds = outage_seconds
        self._clock = clock
        self._waiting: list[tuple[float, int, Attempt]] = []
        self._sequence = 0
        self._running: dict[int, Attempt] = {}
        self._health: dict[str, _Health] = {}
        self._changed = asyncio.Event()
        self._closed = False
        self.skipped: Counter[str] = Counter()
        """Units not attempted because their agent was given up, by agent."""

    @property
    def waiting(self) -> int:
        """Attempts that wait for their time."""
        return len(self._waiting)

    @property
    def running(self) -> list[Attempt]:
        """Attempts in flight, longest first."""
        return sorted(self._running.values(), key=lambda attempt: attempt.started)

    def load(self) -> Mapping[str, Load]:
        """What each agent's units are doing now, by agent. Another thread may ask."""
        now = self._clock()
        found: dict[str, Load] = {}
        for agent, health in list(self._health.items()):
            failing = 0.0 if health.failing_since is None else now - health.failing_since
            found[agent] = Load(failing=failing, backoff=health.backoff)
        for _, _, attempt in list(self._waiting):
            found.setdefault(attempt.unit.agent, Load()).waiting += 1
        for attempt in list(self._running.values()):
            load = found.setdefault(attempt.unit.agent, Load())
            load.running += 1
            load.oldest = max(load.oldest, now - attempt.started)
        return found

    def given_up(self) -> list[str]:
        """Agents that were given up after an outage, by name."""
        return sorted(agent for agent, health in self._health.items() if health.given_up)

    def close(self) -> None:
        """Hand out nothing more."""
        self._closed = True
        self._changed.set()

    async def take(self) -> Attempt | None:
        """The next attempt, once there is one; None when all units are settled."""
        while not self._closed:
            attempt = self._next_ready()
            if attempt is not None:
                attempt.started = self._clock()
                self._running[id(attempt)] = attempt
                return attempt
            if not self._waiting and not self._running:
                self._changed.set()
                return None
            await self._until_something_changes()
        return None

    def answered(self, attempt: Attempt) -> None:
        """The agent answered in this attempt, which may still fail: then on the unit's own account."""
        health = self._of(attempt)
        health.last_success = self._clock()
        health.failing_since = None

    def succeeded(self, attempt: Attempt) -> None:
        """The attempt led to a record."""
        self.answered(attempt)
        self._settle(attempt)

    def failed(self, attempt: Attempt, error: PolicysweepError) -> bool:
        """The attempt failed; whether the unit will be tried again. Otherwise it is settled as failed."""
        health = self._of(attempt)
        now = self._clock()
        if health.failing_since is None:
            health.failing_since = now
        outage = isinstance(error, OUTAGE_ERRORS) and health.last_success < attempt.started
        if outage and now - health.failing_since >= self._outage_seconds:
            health.given_up = True
        if not outage:
            attempt.counted += 1
        again = error.retryable and attempt.counted < self._max_attempts and not health.given_up
        if again:
            delay = self._delay(attempt, health, outage, error)
            health.backoff += delay
            self._wait(attempt, now + delay)
        self._settle(attempt)
        return again

    def _of(self, attempt: Attempt) -> _Health:
        return self._health.setdefault(attempt.unit.agent, _Health())

    def _delay(self, attempt: Attempt, health: _Health, outage: bool, error: PolicysweepError) -> float:
        return backoff(attempt.unit.unit_id, len(attempt.failures) if outage else attempt.counted, error)

    def _wait(self, attempt: Attempt, due: float) -> None:
        self._sequence += 1
        heapq.heappush(self._waiting, (due, self._sequence, attempt))

    def _settle(self, attempt: Attempt) -> None:
        del self._running[id(attempt)]
        self._changed.set()

    def _next_ready(self) -> Attempt | None:
        while self._waiting and self._waiting[0][0] <= self._clock():
            attempt = heapq.heappop(self._waiting)[2]
            if not self._skip(attempt.unit):
                return attempt
        for unit in self._units:
            if not self._skip(unit):
                return Attempt(unit)
        return None

    def _skip(self, unit: run_pb2.Unit) -> bool:
        health = self._health.get(unit.agent)
        if health is None or not health.given_up:
            return False
        self.skipped[unit.agent] += 1
        return True

    async def _until_something_changes(self) -> None:
        self._changed.clear()
        left = self._waiting[0][0] - self._clock() if self._waiting else None
        try:
            await asyncio.wait_for(self._changed.wait(), left)
        except TimeoutError:
            return
