"""The ledger of one run: its folder in the store, where the results are the state.

    manifest.json                  what decides the results; a folder with one is a run
    inputs/scenarios.jsonl         what is played, so that the folder is complete in itself
    inputs/worlds.jsonl
    episodes/<unit id>.binpb       one UnitRecord per unit; a unit is done when it is there
    failures/<unit id>.json        attempts that led to no record; history once there is a record
    labels/<sha-256>.jsonl         scores that people gave, one file per import (policysweep.interop.labels)
    judging/, verdicts/            who judges, and what they found (policysweep.sweep.verdicts)
    report.json                    the last report; derived, and replaced each time

Records are binary protobuf (docs/adr/0001), the rest is for people: protobuf JSON with the contract's names.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Iterable

from policysweep.errors import InputError, ManifestMismatch
from policysweep.sweep.failures import FailureFolder
from policysweep.sweep.inputs import (
    SCENARIOS,
    WORLDS,
    RunInputs,
    decode_inputs,
    describe_difference,
    encode_scenarios,
    encode_worlds,
)
from policysweep.sweep.manifest import decode_manifest, describe_changes, encode_manifest, version_note
from policysweep.sweep.record_folder import RecordFolder, RecordNames
from policysweep.sweep.records import DamagedRecord, record_problems
from policysweep.sweep.store import ResultStore
from policysweep.sweep.verdicts import VerdictLedger
from policysweep.v1 import run_pb2

MANIFEST = "manifest.json"
EPISODES = "episodes"


class RunLedger:
    """One run in a store. All methods raise StoreError when the store refuses."""

    def __init__(self, store: ResultStore) -> None:
        self._store = store
        self._records = RecordFolder(
            store.within(EPISODES), run_pb2.UnitRecord, lambda record: record.unit.unit_id, record_problems
        )
        self._failures = FailureFolder(store, run_pb2.UnitFailure, lambda failure: failure.unit.unit_id)

    @property
    def name(self) -> str:
        """The run's name: its folder in the store."""
        return self.url.rstrip("/").rpartition("/")[2]

    @property
    def url(self) -> str:
        """Where the run is."""
        return self._store.url

    def folder(self, name: str) -> ResultStore:
        """A folder of the run, for what lies beside its records."""
        return self._store.within(name)

    @property
    def verdicts(self) -> VerdictLedger:
        """What judges found."""
        return VerdictLedger(self._store)

    async def read_verdicts(self) -> AsyncGenerator[run_pb2.VerdictRecord]:
        """Every verdict that counts, by judge, panel and unit; none when the run was never judged."""
        if (judging := await self.verdicts.read_judging()) is None:
            return
        async with contextlib.aclosing(self.verdicts.read(judging)) as records:
            async for record in records:
                yield record

    async def begin(self, manifest: run_pb2.RunManifest, inputs: RunInputs) -> list[str]:
        """Begin the run, or resume it when it is the same run; returns remarks for the user.

        Several drivers may begin one run at once: the first manifest stands. Raises ManifestMismatch, which
        names each change, when the run was begun with something else.
        """
        files = {WORLDS: encode_worlds(inputs), SCENARIOS: encode_scenarios(inputs)}
        notes = []
        if not await self._store.create(MANIFEST, encode_manifest(manifest)):
            standing = await self.read_manifest()
            if changes := describe_changes(standing, manifest):
                raise self._mismatch(changes)
            notes += [note for note in [version_note(standing.version, manifest.version)] if note]
        # After the manifest, so that a refused sweep writes nothing. Who dies in between is completed here.
        for name, data in files.items():
            if not await self._store.create(name, data):
                raise self._mismatch([describe_difference(await self.read_inputs(), inputs)])
        return notes

    def _mismatch(self, changes: Iterable[str]) -> ManifestMismatch:
        listed = "".join(f"\n  {change}" for change in changes)
        return ManifestMismatch(
            f"{self.url} was begun with something else:{listed}\n"
            "Undo the change to resume this run, or give the sweep another name to begin a new one."
        )

    async def read_manifest(self) -> run_pb2.RunManifest:
        """The manifest; InputError when there is none or it cannot be used."""
        data = await self._store.read(MANIFEST)
        if data is None:
            raise InputError(f"{self.url}: no run here: there is no {MANIFEST}")
        return decode_manifest(data, f"{self.url}/{MANIFEST}")

    async def read_inputs(self) -> RunInputs:
        """The scenarios and worlds; InputError when they are not complete or damaged."""
        scenarios, worlds = await self._store.read(SCENARIOS), await self._store.read(WORLDS)
        if scenarios is None or worlds is None:
            missing = SCENARIOS if scenarios is None else WORLDS
            raise InputError(f"{self.url}: {missing} is missing: run the sweep again to complete it")
        return decode_inputs(scenarios, worlds, self.url)

    async def record_names(self) -> RecordNames:
        """What lies in the folder of the records."""
        return await self._records.names()

    async def done_units(self) -> set[str]:
        """Ids of the units that have a record."""
        return await self._records.done()

    async def write_record(self, record: run_pb2.UnitRecord) -> bool:
        """Keep a record; False when the unit already has one, which stands.

        A record that contradicts itself is refused with StoreError: `record_problems` tells beforehand.
        """
        return await self._records.write(record)

    def scan_records(self, unit_ids: Iterable[str]) -> AsyncGenerator[run_pb2.UnitRecord | DamagedRecord]:
        """The records of the given units in their order, damaged ones as such, a bounded number in memory."""
        return self._records.scan(unit_ids)

    async def read_records(self) -> AsyncGenerator[run_pb2.UnitRecord]:
        """Every record in the order of unit ids, a bounded number in memory.

        A damaged record ends the reading with StoreError: what is computed from the rest would be wrong.
        """
        names = await self.record_names()
        async with contextlib.aclosing(self._records.read_many(names.unit_ids)) as records:
            async for record in records:
                yield record

    async def write_failure(self, failure: run_pb2.UnitFailure) -> None:
        """Add attempts of a unit to those of earlier invocations."""
        await self._failures.write(failure)

    async def write_report(self, name: str, data: bytes) -> str:
        """Put a report beside the records, in place of an earlier one; gives where it is."""
        await self._store.replace(name, data)
        return f"{self._store.url}/{name}"

    async def read_failures(self) -> AsyncGenerator[run_pb2.UnitFailure]:
        """Units that failed and still have no record, in the order of unit ids.

        StoreError for a file that holds no failure.
        """
        async for failure in self._failures.read(await self.done_units()):
            yield failure
