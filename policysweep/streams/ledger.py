"""The ledger of one stream run: its folder in the store, where the results are the state.

    stream-manifest.json           what decides the results; a folder with one is a stream run
    inputs/tasks.jsonl             what is played, so that the folder is complete in itself
    inputs/gaps.jsonl
    initial-banks/<name>.binpb     the first revision of each bank that streams fork (plan.initial_bank_name)
    tasks/<unit id>.binpb          one StreamRecord per task; a task is done when it is there
    failures/<unit id>.json        attempts that led to no record; history once there is a record
    stream-report.json             the last report; derived, and replaced each time

The history of a stream's bank is its initial bank and the revisions in the stream's records, in order.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Iterable

from google.protobuf.message import DecodeError

from policysweep.errors import InputError, ManifestMismatch, StoreError
from policysweep.streams.inputs import (
    GAPS,
    TASKS,
    StreamInputs,
    decode_inputs,
    describe_difference,
    encode_gaps,
    encode_tasks,
)
from policysweep.streams.manifest import decode_manifest, describe_changes
from policysweep.streams.plan import initial_bank_name, planned_streams, stream_tasks
from policysweep.streams.records import record_problems
from policysweep.sweep.failures import FailureFolder
from policysweep.sweep.manifest import encode_manifest, version_note
from policysweep.sweep.record_folder import RecordFolder, RecordNames
from policysweep.sweep.records import DamagedRecord
from policysweep.sweep.store import ResultStore
from policysweep.v1 import policybank_pb2 as pb
from policysweep.v1 import stream_pb2

MANIFEST = "stream-manifest.json"
RECORDS = "tasks"
INITIAL_BANKS = "initial-banks"


class StreamLedger:
    """One stream run in a store. All methods raise StoreError when the store refuses."""

    def __init__(self, store: ResultStore) -> None:
        self._store = store
        self._records = RecordFolder(
            store.within(RECORDS),
            stream_pb2.StreamRecord,
            lambda record: record.task.unit_id,
            record_problems,
        )
        self._banks = store.within(INITIAL_BANKS)
        self._failures = FailureFolder(store, stream_pb2.StreamFailure, lambda failure: failure.task.unit_id)

    @property
    def url(self) -> str:
        """Where the run is."""
        return self._store.url

    # ----------------------------------------------------------------- beginning

    async def begin(
        self, manifest: stream_pb2.StreamManifest, inputs: StreamInputs
    ) -> tuple[stream_pb2.StreamManifest, list[str]]:
        """Begin the run, or resume it when it is the same run; gives the manifest that stands, and remarks.

        Several drivers may begin one run at once: the first manifest stands. Raises ManifestMismatch, which
        names each change, when the run was begun with something else.
        """
        notes: list[str] = []
        standing = manifest
        if not await self._store.create(MANIFEST, encode_manifest(manifest)):
            standing = await self.read_manifest()
            if changes := describe_changes(standing, manifest):
                raise self._mismatch(changes)
            notes += filter(None, [version_note(standing.version, manifest.version)])
        # After the manifest, so that a refused run writes nothing. Who dies in between is completed here.
        for name, data in {GAPS: encode_gaps(inputs), TASKS: encode_tasks(inputs)}.items():
            if not await self._store.create(name, data):
                raise self._mismatch([describe_difference(await self.read_inputs(), inputs)])
        return standing, notes

    def _mismatch(self, changes: Iterable[str]) -> ManifestMismatch:
        listed = "".join(f"\n  {change}" for change in changes)
        return ManifestMismatch(
            f"{self.url} was begun with something else:{listed}\n"
            "Undo the change to resume this run, or give it another name to begin a new one."
        )

    async def read_manifest(self) -> stream_pb2.StreamManifest:
        """The manifest; InputError when there is none or it cannot be used."""
        data = await self._store.read(MANIFEST)
        if data is None:
            raise InputError(f"{self.url}: no stream run here: there is no {MANIFEST}")
        return decode_manifest(data, f"{self.url}/{MANIFEST}")

    async def read_inputs(self) -> StreamInputs:
        """The tasks and gaps; InputError when they are not complete or damaged."""
        tasks, gaps = await self._store.read(TASKS), await self._store.read(GAPS)
        if tasks is None or gaps is None:
            missing = TASKS if tasks is None else GAPS
            raise InputError(f"{self.url}: {missing} is missing: run the stream file again to complete it")
        return decode_inputs(tasks, gaps, self.url)

    # ------------------------------------------------------------------- records

    async def record_names(self) -> RecordNames:
        """What lies in the folder of the records."""
        return await self._records.names()

    async def done_tasks(self) -> set[str]:
        """Unit ids of the tasks that have a record."""
        return await self._records.done()

    async def write_record(self, record: stream_pb2.StreamRecord) -> bool:
        """Keep a record; False when the task already has one, which stands.

        A record that contradicts itself is refused with StoreError.
        """
        return await self._records.write(record)

    async def read_record(self, unit_id: str) -> stream_pb2.StreamRecord | None:
        """The record of a task; None when it has none. StoreError when it is damaged."""
        return await self._records.read(unit_id)

    def scan_records(
        self, unit_ids: Iterable[str]
    ) -> AsyncGenerator[stream_pb2.StreamRecord | DamagedRecord]:
        """The records of the given tasks in their order, damaged ones as such, a bounded number in memory."""
        return self._records.scan(unit_ids)

    async def read_records(self) -> AsyncGenerator[stream_pb2.StreamRecord]:
        """Every record of the plan, stream by stream, each in its order; a bounded number in memory.

        A damaged record ends the reading with StoreError: what is computed from the rest would be wrong.
        """
        manifest, inputs = await self.read_manifest(), await self.read_inputs()
        done = await self.done_tasks()
        planned = (
            task.unit_id
            for stream in planned_streams(manifest)
            for task in stream_tasks(manifest, inputs, stream)
            if task.unit_id in done
        )
        async with contextlib.aclosing(self._records.read_many(planned)) as records:
            async for record in records:
                yield record

    # ------------------------------------------------------------------ the rest

    async def write_failure(self, failure: stream_pb2.StreamFailure) -> None:
        """Add attempts of a task to those of earlier invocations."""
        await self._failures.write(failure)

    async def read_failures(self) -> AsyncGenerator[stream_pb2.StreamFailure]:
        """Tasks that failed and still have no record, in the order of unit ids.

        StoreError for a file that holds no failure.
        """
        async for failure in self._failures.read(await self.done_tasks()):
            yield failure

    async def keep_initial_bank(self, stream: stream_pb2.Stream, first: pb.Revision) -> None:
        """Keep the first revision of the bank that a stream's bank is forked from; the first one stands."""
        await self._banks.create(f"{initial_bank_name(stream)}.binpb", first.SerializeToString())

    async def read_initial_bank(self, stream: stream_pb2.Stream) -> pb.Revision | None:
        """The first revision of the bank that a stream's bank is forked from; None for a stream without one.

        None as well as long as no driver has made it. StoreError when it is damaged.
        """
        name = f"{initial_bank_name(stream)}.binpb"
        if (data := await self._banks.read(name)) is None:
            return None
        try:
            return pb.Revision.FromString(data)
        except DecodeError as error:
            raise StoreError(f"{self._banks.url}/{name}: is damaged: no revision") from error

    async def write_report(self, name: str, data: bytes) -> str:
        """Put a report beside the records, in place of an earlier one; gives where it is."""
        await self._store.replace(name, data)
        return f"{self._store.url}/{name}"
