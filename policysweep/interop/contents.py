"""What an export reads: the recorded units of a run in the order of its plan, each with its verdicts.

One record at a time is in memory. Verdicts come in the order of the store; they wait on disk until the record
of their unit is read.
"""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, AsyncIterable, Mapping, Sequence
from dataclasses import dataclass

from policysweep.errors import InputError, StoreError
from policysweep.interop.spool import Spool
from policysweep.sweep.ledger import RunLedger
from policysweep.sweep.plan import planned_units
from policysweep.sweep.records import DamagedRecord
from policysweep.v1 import run_pb2, scenario_pb2


@dataclass(frozen=True, slots=True)
class RunContents:
    """A run without its records."""

    manifest: run_pb2.RunManifest
    scenarios: Mapping[str, scenario_pb2.Scenario]
    """By id."""
    units: Sequence[run_pb2.Unit]
    """Those that have a record, in the order of the plan."""
    rows: Mapping[str, int]
    """Place of each planned unit among those of its agent, from 0, by unit id."""

    @property
    def missing(self) -> int:
        """Planned units without record."""
        return len(self.rows) - len(self.units)


async def read_contents(ledger: RunLedger) -> RunContents:
    """Read what a run consists of. InputError when it is no run, or has records that are not of its plan."""
    manifest, inputs = await ledger.read_manifest(), await ledger.read_inputs()
    done = await ledger.done_units()
    ahead: Counter[str] = Counter()
    units, rows = [], {}
    for unit in planned_units(manifest, inputs):
        rows[unit.unit_id] = ahead[unit.agent]
        ahead[unit.agent] += 1
        if unit.unit_id in done:
            units.append(unit)
    if foreign := done - rows.keys():
        raise InputError(
            f"{ledger.url}: {len(foreign)} records are not of the run's plan, such as that of unit "
            f"{min(foreign)}: see `policysweep verify {ledger.url}`"
        )
    return RunContents(manifest, {each.scenario_id: each for each in inputs.scenarios}, units, rows)


async def read_records(ledger: RunLedger, contents: RunContents) -> AsyncGenerator[run_pb2.UnitRecord]:
    """The records of a run in the order of its plan. StoreError for a damaged one."""
    scan = ledger.scan_records(unit.unit_id for unit in contents.units)
    async with contextlib.aclosing(scan) as records:
        async for record in records:
            if isinstance(record, DamagedRecord):
                raise StoreError(
                    f"{ledger.url}: the record of unit {record.unit_id} is damaged: {record.problem}; "
                    f"see `policysweep verify {ledger.url}`"
                )
            yield record


class VerdictShelf:
    """Verdicts on disk, found by unit."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._numbers: defaultdict[str, list[int]] = defaultdict(list)

    async def fill(self, verdicts: AsyncIterable[run_pb2.VerdictRecord]) -> None:
        """Put all of them on the shelf."""
        async for verdict in verdicts:
            self._numbers[verdict.unit_id].append(self._spool.append(verdict.SerializeToString()))

    def take(self, unit_id: str) -> list[run_pb2.VerdictRecord]:
        """The verdicts on a unit, in the order in which they came; they leave the shelf."""
        numbers = self._numbers.pop(unit_id, ())
        return [run_pb2.VerdictRecord.FromString(self._spool.read(number)) for number in numbers]

    @property
    def left(self) -> int:
        """Verdicts that nobody took."""
        return sum(map(len, self._numbers.values()))
