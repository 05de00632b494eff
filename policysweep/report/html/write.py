"""Writes the whole report: report.html and the transcripts beside it, a few scenarios in memory at a time.

Records are kept under the hash of their unit, which says nothing of their scenario. So the plan, which knows
the units of each scenario, decides what is read together.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from policysweep.report.criteria import Criteria
from policysweep.report.html.chunks import JUDGED_UNIT, chunk
from policysweep.report.html.index import chunk_name, index_entry, index_head
from policysweep.report.html.page import page
from policysweep.v1 import judge_pb2, run_pb2, scenario_pb2

PAGE = "report.html"
UNITS_AT_ONCE = 64
"""Units that are read and held together, or those of one scenario if they are more."""

Read = Callable[[Sequence[str]], AsyncIterator[JUDGED_UNIT]]
"""Given unit ids: those that have a record, in any order, each with its verdicts (none when not judged)."""
Write = Callable[[str, bytes], Awaitable[object]]
"""Keeps a file under a name like "report-data/0001.js", replacing it."""
_Batch = Sequence[tuple[int, Sequence[str]]]
"""Positions of scenarios with the ids of their planned units."""


@dataclass(frozen=True, slots=True)
class ReportInputs:
    """What a report is made of, beside the records.

    `units` are all planned units, `rubric` is None for a run that is not judged, `goals` are the customer's
    by task.
    """

    summary: Mapping[str, Any]
    scenarios: Sequence[scenario_pb2.Scenario]
    units: Iterable[run_pb2.Unit]
    rubric: judge_pb2.Rubric | None = None
    goals: Mapping[str, Sequence[judge_pb2.Goal]] = field(default_factory=dict)


async def write_report(inputs: ReportInputs, read: Read, write: Write) -> None:
    """Write the transcripts and then the page, so that a page never refers to files that are not there."""
    criteria = Criteria(inputs.rubric) if inputs.rubric else None
    index = index_head(inputs.scenarios, criteria)
    for batch in _batches(inputs):
        files = {}
        for position, units in await _read_batch(batch, read):
            index["units"] += [index_entry(record, position, found, criteria) for record, found in units]
            files[chunk_name(position)] = _chunk(inputs, position, units)
        await asyncio.gather(*(write(name, data) for name, data in files.items()))
    await write(PAGE, page(inputs.summary, index).encode())


def _chunk(inputs: ReportInputs, position: int, units: Sequence[JUDGED_UNIT]) -> bytes:
    scenario = inputs.scenarios[position]
    return chunk(position, scenario, units, inputs.goals.get(scenario.task_id, ())).encode()


def _batches(inputs: ReportInputs) -> Iterator[_Batch]:
    """Scenarios in the order of the data set, as many together as may be held."""
    by_scenario: defaultdict[str, list[str]] = defaultdict(list)
    for unit in inputs.units:
        by_scenario[unit.scenario_id].append(unit.unit_id)
    batch: list[tuple[int, Sequence[str]]] = []
    held = 0
    for position, scenario in enumerate(inputs.scenarios):
        planned = by_scenario.get(scenario.scenario_id, ())
        if batch and held + len(planned) > UNITS_AT_ONCE:
            yield batch
            batch, held = [], 0
        batch.append((position, planned))
        held += len(planned)
    if batch:
        yield batch


async def _read_batch(batch: _Batch, read: Read) -> Sequence[tuple[int, Sequence[JUDGED_UNIT]]]:
    """The recorded units of each scenario, in the order of the plan; scenarios without any left out."""
    ids = [unit_id for _, planned in batch for unit_id in planned]
    found = {record.unit.unit_id: (record, verdicts) async for record, verdicts in read(ids)}
    by_scenario = [
        (position, [found[each] for each in planned if each in found]) for position, planned in batch
    ]
    return [(position, units) for position, units in by_scenario if units]
