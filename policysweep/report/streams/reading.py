"""From the folder of a stream run to what a report is made of, and back into the folder."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

from policysweep.datasets.tau2 import load_tau2, overreach
from policysweep.datasets.tau2_check import replay
from policysweep.domains.tau2 import load_domain
from policysweep.errors import InputError
from policysweep.report.reading import encode_summary
from policysweep.report.streams.grid import StreamPlan, stream_plan
from policysweep.report.streams.rows import StreamRow, stream_row
from policysweep.report.streams.summary import StreamResults, summarise
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
    return summarise(await results_of(ledger, rows))


async def results_of(ledger: StreamLedger, rows: list[StreamRow]) -> StreamResults:
    """What a report is computed from, with the rows of records that were read already."""
    manifest, inputs = await ledger.read_manifest(), await ledger.read_inputs()
    plan = stream_plan(manifest, inputs)
    return StreamResults(
        manifest=manifest,
        plan=plan,
        gaps=inputs.gaps,
        rows=rows,
        failures=[failure async for failure in ledger.read_failures()],
        initial_banks=await initial_banks(ledger, plan),
        overreach=overreach_hashes(inputs),
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
    """Write stream-report.json, report.html and report-data/ into the run's folder; gives the summary."""
    summary = await summary_of(ledger)
    await ledger.write_report(REPORT, encode_summary(summary))
    return summary
