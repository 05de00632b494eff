"""The records folder of a run: one binary record per unit, the first writer winning."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from google.protobuf.message import DecodeError

from policysweep.errors import StoreError
from policysweep.sweep.records import DamagedRecord, record_name, unit_of
from policysweep.sweep.store import ResultStore
from policysweep.v1 import run_pb2, stream_pb2

Record = TypeVar("Record", bound=run_pb2.UnitRecord | stream_pb2.StreamRecord)


@dataclass(frozen=True, slots=True)
class RecordNames:
    """What lies in the folder of the records, by name."""

    unit_ids: list[str]
    """Units that have a record, sorted."""
    foreign: list[str]
    """Other files, sorted; their names can be any text."""


class RecordFolder(Generic[Record]):
    """The records of one run. Raises StoreError when the store refuses."""

    def __init__(
        self,
        store: ResultStore,
        kind: type[Record],
        unit_id: Callable[[Record], str],
        problems: Callable[[Record], list[str]],
    ) -> None:
        """`store` is the folder; `problems` tells what contradicts itself in a record."""
        self._store = store
        self._kind = kind
        self._unit_id = unit_id
        self._problems = problems

    async def names(self) -> RecordNames:
        """What lies in the folder."""
        unit_ids, foreign = [], []
        async for name in self._store.list_names():
            unit_id = unit_of(name)
            if unit_id is None:
                foreign.append(name)
            else:
                unit_ids.append(unit_id)
        return RecordNames(sorted(unit_ids), sorted(foreign))

    async def done(self) -> set[str]:
        """Ids of the units that have a record."""
        return set((await self.names()).unit_ids)

    async def write(self, record: Record) -> bool:
        """Keep a record; False when the unit already has one, which stands.

        A record that contradicts itself is refused with StoreError.
        """
        unit_id = self._unit_id(record)
        if problems := self._problems(record):
            raise StoreError(f"the record of unit {unit_id} is refused: {'; '.join(problems)}")
        return await self._store.create(record_name(unit_id), record.SerializeToString())

    async def read(self, unit_id: str) -> Record | None:
        """The record of a unit; None when it has none. StoreError when it is damaged."""
        data = await self._store.read(record_name(unit_id))
        return None if data is None else self._sound(self._decode(unit_id, data))

    async def scan(self, unit_ids: Iterable[str]) -> AsyncGenerator[Record | DamagedRecord]:
        """The records of the given units in their order, damaged ones as such, a bounded number in memory."""
        names = (record_name(unit_id) for unit_id in unit_ids)
        async with contextlib.aclosing(self._store.read_many(names)) as blobs:
            async for name, data in blobs:
                yield self._decode(unit_of(name) or name, data)

    async def read_many(self, unit_ids: Iterable[str]) -> AsyncGenerator[Record]:
        """The records of the given units in their order, a bounded number in memory.

        A damaged record ends the reading with StoreError: what is computed from the rest would be wrong.
        """
        async with contextlib.aclosing(self.scan(unit_ids)) as records:
            async for record in records:
                yield self._sound(record)

    def _decode(self, unit_id: str, data: bytes) -> Record | DamagedRecord:
        record = self._kind()
        try:
            record.ParseFromString(data)
        except DecodeError:
            return DamagedRecord(unit_id, f"{len(data)} bytes that are no record")
        if (found := self._unit_id(record)) != unit_id:
            return DamagedRecord(unit_id, f"{len(data)} bytes, of unit {found or 'none'}")
        return record

    def _sound(self, record: Record | DamagedRecord) -> Record:
        if isinstance(record, DamagedRecord):
            raise StoreError(
                f"{self._store.url}/{record_name(record.unit_id)}: damaged record: {record.problem}; "
                "delete the file and run the sweep or stream again"
            )
        return record
