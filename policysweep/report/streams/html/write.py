"""Writes the files that the page loads, a few at a time, in the pass that reads the records."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from policysweep.report.html.embed import script_json
from policysweep.report.streams.grid import StreamPlan
from policysweep.report.streams.html.history import stream_history
from policysweep.report.streams.html.index import domain_file, record_file, stream_file
from policysweep.report.streams.rows import StreamRow, stream_row
from policysweep.streams.inputs import StreamInputs
from policysweep.streams.plan import initial_bank_name
from policysweep.v1 import policybank_pb2 as pb
from policysweep.v1 import stream_pb2

Write = Callable[[str, bytes], Awaitable[object]]
"""Keeps a file under a name like "report-data/s000.js", replacing it."""

_TOGETHER = 32
"""Files that are written at once."""


class DataFiles:
    """The files beside the page. Records come stream by stream, each in its order."""

    def __init__(self, plan: StreamPlan, initial_banks: Mapping[str, pb.Revision], write: Write) -> None:
        self._plan = plan
        self._banks = initial_banks
        self._write = write
        self._place = {stream_id: position for position, stream_id in enumerate(plan.streams)}
        self._waiting: dict[str, bytes] = {}
        self._stream = ""
        self._rows: list[StreamRow] = []
        self._revisions: list[pb.Revision] = []

    async def add(self, record: stream_pb2.StreamRecord) -> StreamRow:
        """Take a record in; gives its row."""
        row = stream_row(record)
        if row.stream_id != self._stream:
            await self._end_stream()
            self._stream = row.stream_id
        self._rows.append(row)
        if record.HasField("revision"):
            self._revisions.append(record.revision)
        place = self._place.get(row.stream_id)
        # A record outside the plan is refused by the summary, which names it.
        if place is not None:
            await self._keep(record_file(place, row.position), _json(record))
        return row

    async def add_domains(self, inputs: StreamInputs) -> None:
        """The tasks of the domains, and their gaps."""
        for position, domain in enumerate(self._plan.domains):
            tasks = {task.task_id: _json(task) for task in inputs.of_domain(domain)}
            gaps = {gap.gap_id: _json(gap) for gap in inputs.gaps if gap.domain == domain}
            await self._keep(domain_file(position), {"tasks": tasks, "gaps": gaps})

    async def finish(self) -> None:
        """Write what is left."""
        await self._end_stream()
        await self._flush()

    async def _end_stream(self) -> None:
        if self._stream in self._place:
            stream = self._plan.streams[self._stream]
            first = self._banks.get(initial_bank_name(stream))
            history = stream_history(first, self._rows, self._revisions)
            await self._keep(stream_file(self._place[self._stream]), history)
        self._rows, self._revisions = [], []

    async def _keep(self, name: str, content: Any) -> None:
        # The file calls a function of the page with its own name, so that the page knows what has arrived.
        self._waiting[name] = f'policysweepTranscripts("{name}", {script_json(content)});\n'.encode()
        if len(self._waiting) >= _TOGETHER:
            await self._flush()

    async def _flush(self) -> None:
        files, self._waiting = self._waiting, {}
        await asyncio.gather(*(self._write(name, data) for name, data in files.items()))


def _json(message: Message) -> dict[str, Any]:
    made: dict[str, Any] = MessageToDict(message, preserving_proto_field_name=True)
    return made
