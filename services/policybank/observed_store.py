"""A store whose calls are counted and timed in the process's metrics, and which is asked now and then."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

from policysweep import telemetry
from policysweep.errors import StoreError
from policysweep.v1 import policybank_pb2 as pb
from services.policybank.store import BankStore, Hit, Vector

Answer = TypeVar("Answer")

_PROBE_SECONDS = 10.0
_NO_BANK = ""
"""An id that no bank has: to look for it is the cheapest question."""

_OPERATIONS = (
    "banks", "history", "append", "name", "snapshots", "save_vectors", "missing_vectors", "nearest",
)  # fmt: skip


class ObservedStore:
    """`store`, with every call counted. Implements BankStore."""

    def __init__(self, store: BankStore) -> None:
        self._store = store
        self._series = {operation: _Series(operation) for operation in _OPERATIONS}

    @property
    def shared(self) -> bool:
        """See BankStore."""
        return self._store.shared

    async def _observed(self, operation: str, call: Awaitable[Answer]) -> Answer:
        series, started = self._series[operation], time.perf_counter()
        try:
            answer = await call
        except StoreError:
            series.errors.inc()
            raise
        finally:
            series.seconds.observe(time.perf_counter() - started)
        series.ok.inc()
        return answer

    async def banks(self) -> list[str]:
        """See BankStore."""
        return await self._observed("banks", self._store.banks())

    async def history(self, bank_id: str, after: int = 0) -> list[pb.Revision]:
        """See BankStore."""
        return await self._observed("history", self._store.history(bank_id, after))

    async def append(self, bank_id: str, revisions: Sequence[pb.Revision]) -> bool:
        """See BankStore."""
        return await self._observed("append", self._store.append(bank_id, revisions))

    async def name(self, bank_id: str, snapshot: pb.Snapshot) -> pb.Snapshot:
        """See BankStore."""
        return await self._observed("name", self._store.name(bank_id, snapshot))

    async def snapshots(self, bank_id: str) -> list[pb.Snapshot]:
        """See BankStore."""
        return await self._observed("snapshots", self._store.snapshots(bank_id))

    async def save_vectors(self, bank_id: str, vectors: Mapping[str, Vector]) -> None:
        """See BankStore."""
        await self._observed("save_vectors", self._store.save_vectors(bank_id, vectors))

    async def missing_vectors(self, bank_id: str, ids: Collection[str]) -> set[str]:
        """See BankStore."""
        return await self._observed("missing_vectors", self._store.missing_vectors(bank_id, ids))

    async def nearest(self, bank_id: str, query: Vector, ids: Collection[str], limit: int) -> list[Hit]:
        """See BankStore."""
        return await self._observed("nearest", self._store.nearest(bank_id, query, ids, limit))

    async def close(self) -> None:
        """See BankStore."""
        await self._store.close()


class _Series:
    """The series of one operation, which begin at 0 with the process."""

    def __init__(self, operation: str) -> None:
        self.ok = telemetry.BANK_STORE_CALLS.labels(operation, "ok")
        self.errors = telemetry.BANK_STORE_CALLS.labels(operation, "error")
        self.seconds = telemetry.BANK_STORE_SECONDS.labels(operation)


class Probe:
    """What is known of a store that is asked now and then."""

    def __init__(self, store: BankStore, kind: str) -> None:
        self._store = store
        self._up = telemetry.BANK_STORE_UP.labels(kind)
        self._error: StoreError | None = None

    async def ask(self) -> None:
        """Ask whether the store answers."""
        try:
            await self._store.history(_NO_BANK)
        except StoreError as error:
            self._error = error
            self._up.set(0)
        else:
            self._error = None
            self._up.set(1)

    async def check(self) -> None:
        """Raises StoreError if the store did not answer when it was last asked."""
        if self._error is not None:
            raise StoreError(str(self._error))


@asynccontextmanager
async def probed(store: BankStore, kind: str, seconds: float = _PROBE_SECONDS) -> AsyncIterator[Probe]:
    """Ask every `seconds` whether the store answers while the block runs, in a series for its `kind`.

    So its absence shows at once, and not with the next feedback, hours later.
    """
    probe = Probe(store, kind)

    async def go_on() -> None:
        while True:
            await probe.ask()
            await asyncio.sleep(seconds)

    task = asyncio.create_task(go_on())
    try:
        yield probe
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
