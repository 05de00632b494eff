"""From the folder of a stream run to what a report is made of, and back into the folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from policysweep.datasets.tau2 import load_tau2, overreach
from policysweep.datasets.tau2_check import replay
from policysweep.domains.tau2 import load_domain
from policysweep.errors import InputError
from policysweep.report.html.write import PAGE
from policysweep.report.reading import encode_summary
from policysweep.report.streams.grid import StreamPlan, stream_plan
from policysweep.report.streams.html.index import page_index
from policysweep.report.streams.html.page import stream_page
from policysweep.report.streams.html.write import DataFiles
from policysweep.report.streams.rows import StreamRow, stream_row
from policysweep.report.streams.summary import StreamResults, material_of, summarise
from policysweep.streams.inputs import StreamInputs
from policysweep.streams.ledger import StreamLedger
from policysweep.streams.plan import initial_bank_name
from policysweep.v1 import policybank_pb2 as pb
from policysweep.v1 import stream_pb2, tau2_pb2

REPORT = "stream-report.json"


async def summary_of(ledger: StreamLedger) -> dict[str, Any]:
    """The content of stream-report.json: one pass over the records."""
    async with aclosing(ledger.read_records()) as records:
        rows = [stream_row(record) async for record in records]
    results = await _results(ledger, await _begin(ledger), rows)
    return summarise(results, material_of(results))


@dataclass(frozen=True)
class _Begun:
    """What is known before any record is read."""

    manifest: stream_pb2.StreamManifest
    inputs: StreamInputs
    plan: StreamPlan
    initial_banks: Mapping[str, pb.Revision]


async def _begin(ledger: StreamLedger) -> _Begun:
    manifest, inputs = await ledger.read_manifest(), await ledger.read_inputs()
    plan = stream_plan(manifest, inputs)
    return _Begun(manifest, inputs, plan, await initial_banks(ledger, plan))


async def _results(ledger: StreamLedger, begun: _Begun, rows: Sequence[StreamRow]) -> StreamResults:
    return StreamResults(
        manifest=begun.manifest,
        plan=begun.plan,
        gaps=begun.inputs.gaps,
        rows=rows,
        failures=[failure async for failure in ledger.read_failures()],
        initial_banks=begun.initial_banks,
        overreach=overreach_hashes(begun.inputs),
    )


async def initial_banks(ledger: StreamLedger, plan: StreamPlan) -> dict[str, pb.Revision]:
    """The first revisions of the banks that streams fork, by name."""
    by_name: Mapping[str, stream_pb2.Stream] = {
        initial_bank_name(stream): stream for stream in plan.streams.values()
    }
    found = {name: await ledger.read_initial_bank(stream) for name, stream in by_name.items()}
    return {name: first for name, first in found.items() if first is not None}


def overreach_hashes(inputs: StreamInputs) -> dict[tuple[str, str], str]:
    """What the database of each control comes to when its lesson is applied where it does not hold.

    Empty for a domain whose tau2-bench package is not installed, and without a control that is not this
    version's: what is not known is not claimed.
    """
    found = {}
    for task in inputs.tasks.values():
        if task.kind == tau2_pb2.TAU2_TASK_KIND_CONTROL:
            try:
                known = load_tau2(task.domain).task(task.task_id)
            except InputError:
                continue
            if known == task and (actions := overreach(task)):
                found[task.domain, task.task_id] = replay(load_domain(task.domain), actions)[0]
    return found


async def write_reports(ledger: StreamLedger) -> dict[str, Any]:
    """Write stream-report.json, report.html and report-data/ into the run's folder; gives the summary.

    One pass over the records; the page comes last, so that it never refers to files that are not there.
    """
    begun = await _begin(ledger)
    files = DataFiles(begun.plan, begun.initial_banks, ledger.write_report)
    await files.add_domains(begun.inputs)
    async with aclosing(ledger.read_records()) as records:
        rows = [await files.add(record) async for record in records]
    await files.finish()
    results = await _results(ledger, begun, rows)
    material = material_of(results)
    summary = summarise(results, material)
    await ledger.write_report(REPORT, encode_summary(summary))
    index = page_index(begun.manifest, begun.inputs, material)
    await ledger.write_report(PAGE, stream_page(summary, index).encode())
    return summary
