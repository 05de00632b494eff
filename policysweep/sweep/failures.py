"""The failures folder of a run: attempts that led to no record, a file per unit; history once it has one."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable, Iterable, Set
from typing import Generic, TypeVar

import orjson
import structlog
from google.protobuf import json_format

from policysweep.errors import StoreError
from policysweep.sweep.records import failed_unit, failure_name
from policysweep.sweep.store import ResultStore
from policysweep.v1 import run_pb2, stream_pb2

FAILURES = "failures"

MAX_KEPT_ATTEMPTS = 20
"""Failed attempts that are kept of a unit; the oldest are dropped."""

Failure = TypeVar("Failure", bound=run_pb2.UnitFailure | stream_pb2.StreamFailure)

_log = structlog.get_logger(__name__)


class FailureFolder(Generic[Failure]):
    """Failed attempts of one run. Raises StoreError when the store refuses."""

    def __init__(self, run: ResultStore, kind: type[Failure], unit_id: Callable[[Failure], str]) -> None:
        """`unit_id` gives the unit that a failure is of."""
        self._folder = run.within(FAILURES)
        self._kind = kind
        self._unit_id = unit_id

    async def write(self, failure: Failure) -> None:
        """Add attempts of a unit to those of earlier invocations.

        A unit belongs to one driver at a time, since shards are disjoint: nobody writes in between.
        """
        name = failure_name(self._unit_id(failure))
        kept = self._kind.FromString(failure.SerializeToString())
        if (data := await self._folder.read(name)) is not None:
            del kept.attempts[:]
            kept.attempts.extend([*self._earlier_attempts(name, data), *failure.attempts])
        del kept.attempts[:-MAX_KEPT_ATTEMPTS]
        await self._folder.replace(name, _encode(kept))

    async def read(self, done: Set[str]) -> AsyncGenerator[Failure]:
        """Failures of units that are not among the `done`, in the order of unit ids.

        StoreError for a file that holds no failure.
        """
        failed = [name async for name in self._folder.list_names() if failed_unit(name)]
        names = sorted(name for name in failed if failed_unit(name) not in done)
        async with contextlib.aclosing(self._folder.read_many(names)) as blobs:
            async for name, data in blobs:
                try:
                    yield self._decode(name, data)
                except ValueError as error:
                    raise StoreError(
                        f"{self._folder.url}/{name}: is damaged: {error}; delete the file"
                    ) from error

    def _earlier_attempts(self, name: str, data: bytes) -> Iterable[run_pb2.FailedAttempt]:
        try:
            return self._decode(name, data).attempts
        except ValueError as error:
            # History must not stop a sweep: the new attempts replace what cannot be read.
            _log.warning("failure_history_damaged", file=f"{self._folder.url}/{name}", problem=str(error))
            return ()

    def _decode(self, name: str, data: bytes) -> Failure:
        try:
            failure = json_format.ParseDict(orjson.loads(data), self._kind())
        except (json_format.ParseError, AttributeError, TypeError) as error:
            raise ValueError(str(error)) from error
        if (unit_id := self._unit_id(failure)) != failed_unit(name):
            raise ValueError(f"it is of unit {unit_id or 'none'}")
        return failure


def _encode(failure: Failure) -> bytes:
    """Failed attempts as a file for people: protobuf JSON, indented."""
    content = json_format.MessageToDict(failure, preserving_proto_field_name=True)
    return orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
