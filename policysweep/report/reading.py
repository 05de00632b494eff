"""From a run's folder to what a report is made of, and back into the folder."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Any

import orjson

from policysweep.errors import StoreError
from policysweep.interop.labels import read_labels
from policysweep.report.html.write import ReportInputs, write_report
from policysweep.report.rows import row
from policysweep.report.summary import summarise
from policysweep.report.verdicts import Verdicts
from policysweep.sweep.inputs import RunInputs
from policysweep.sweep.ledger import RunLedger
from policysweep.sweep.plan import planned_units
from policysweep.sweep.records import DamagedRecord
from policysweep.sweep.verdicts import DAMAGED, PanelKey, panel_keys
from policysweep.v1 import run_pb2

REPORT = "report.json"

JudgedUnit = tuple[run_pb2.UnitRecord, Sequence[run_pb2.VerdictRecord]]


async def load_verdicts(ledger: RunLedger) -> Verdicts | None:
    """The verdicts that count, one in memory at a time; None for a run that was never judged."""
    if (judging := await ledger.verdicts.read_judging()) is None:
        return None
    verdicts = Verdicts(judging.rubric, {judge.name: judge.info for judge in judging.judges})
    async with aclosing(ledger.verdicts.read(judging)) as records:
        async for record in records:
            verdicts.add(record)
    async with aclosing(ledger.verdicts.read_all_goals()) as tasks:
        async for goals in tasks:
            verdicts.add_goals(goals)
    return verdicts


async def summary_of(ledger: RunLedger) -> dict[str, Any]:
    """The content of report.json: one pass over the records, one over the verdicts."""
    return await _summary(ledger, await ledger.read_manifest(), await ledger.read_inputs())


async def _summary(ledger: RunLedger, manifest: run_pb2.RunManifest, inputs: RunInputs) -> dict[str, Any]:
    return summarise(
        [row(record) async for record in ledger.read_records()],
        Counter(unit.agent for unit in planned_units(manifest, inputs)),
        [failure async for failure in ledger.read_failures()],
        manifest,
        verdicts=await load_verdicts(ledger),
        labels=await read_labels(ledger),
        scenarios=inputs.scenarios,
    )


def encode_summary(summary: dict[str, Any]) -> bytes:
    """report.json as a file."""
    return orjson.dumps(summary, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


async def write_reports(ledger: RunLedger) -> dict[str, Any]:
    """Write report.json, report.html and report-data/ into the run's folder; gives the summary."""
    manifest, inputs = await ledger.read_manifest(), await ledger.read_inputs()
    summary = await _summary(ledger, manifest, inputs)
    await ledger.write_report(REPORT, encode_summary(summary))
    judging = await ledger.verdicts.read_judging()
    await write_report(
        ReportInputs(
            summary,
            inputs.scenarios,
            planned_units(manifest, inputs),
            judging.rubric if judging else None,
            {goals.task_id: goals.goals async for goals in ledger.verdicts.read_all_goals()},
        ),
        await _reader(ledger, judging),
        ledger.write_report,
    )
    return summary


async def _reader(
    ledger: RunLedger, judging: run_pb2.Judging | None
) -> Callable[[Sequence[str]], AsyncIterator[JudgedUnit]]:
    """A function that reads units by id, each with its verdicts."""
    recorded = await ledger.done_units()
    keys = panel_keys(judging) if judging else []
    judged = {key: await ledger.verdicts.judged_units(key) for key in keys}

    async def read(unit_ids: Sequence[str]) -> AsyncIterator[JudgedUnit]:
        wanted = [unit for unit in unit_ids if unit in recorded]
        verdicts = await _verdicts(ledger, judged, wanted)
        async with aclosing(ledger.scan_records(wanted)) as records:
            async for record in records:
                if isinstance(record, DamagedRecord):
                    raise StoreError(f"the record of unit {record.unit_id} is damaged: {record.problem}")
                yield record, verdicts[record.unit.unit_id]

    return read


async def _verdicts(
    ledger: RunLedger, judged: dict[PanelKey, set[str]], unit_ids: Sequence[str]
) -> defaultdict[str, list[run_pb2.VerdictRecord]]:
    found: defaultdict[str, list[run_pb2.VerdictRecord]] = defaultdict(list)
    for key, units in judged.items():
        wanted = [unit for unit in unit_ids if unit in units]
        async with aclosing(ledger.verdicts.scan_panel(key, wanted)) as records:
            async for name, record in records:
                if record is None:
                    raise StoreError(f"{ledger.url}/{name}: {DAMAGED}")
                found[record.unit_id].append(record)
    return found
