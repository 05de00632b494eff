"""From a stream run to a folder of JSON Lines: the contract's messages as protobuf JSON, nothing lost.

stream-manifest.json   what decides the results
tasks.jsonl            Tau2Task, with what it is graded by
gaps.jsonl             Tau2Gap
streams.jsonl          Stream, in the order of the plan
records.jsonl          StreamRecord, stream by stream, each in its order
failures.jsonl         StreamFailure, of tasks without record
initial_banks.jsonl    name, and the first revision of a bank that streams fork
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import Message

from policysweep.errors import InputError
from policysweep.interop.folder import output_folder
from policysweep.interop.lines import encode_line
from policysweep.streams.inputs import encode_gaps, encode_tasks
from policysweep.streams.ledger import MANIFEST, StreamLedger
from policysweep.streams.plan import initial_bank_name, planned_streams, stream_tasks
from policysweep.sweep.manifest import encode_manifest
from policysweep.v1 import stream_pb2

FORMAT = "jsonl"


@dataclass(frozen=True, slots=True)
class ExportedStreams:
    """What an export wrote, and what it could not."""

    records: int
    missing: int
    """Planned tasks without record."""
    rehearsal: bool
    """Whether the rehearsal model had a part in anything."""


async def export_streams(
    ledger: StreamLedger, kind: str, output: Path, *, force: bool = False
) -> ExportedStreams:
    """Write a stream run into the folder `output`, in full or not at all.

    Raises InputError for another format than JSON Lines and for a folder that cannot be used, StoreError for
    a record that cannot be read.
    """
    if kind != FORMAT:
        raise InputError(f"a stream run has no {kind} form: use --format {FORMAT}")
    manifest, inputs = await ledger.read_manifest(), await ledger.read_inputs()
    streams = list(planned_streams(manifest))
    with output_folder(output, force=force) as folder:
        (folder / MANIFEST).write_bytes(encode_manifest(manifest))
        (folder / "tasks.jsonl").write_bytes(encode_tasks(inputs))
        (folder / "gaps.jsonl").write_bytes(encode_gaps(inputs))
        (folder / "streams.jsonl").write_bytes(b"".join(map(_line, streams)))
        (folder / "initial_banks.jsonl").write_bytes(await _initial_banks(ledger, streams))
        failures = [_line(failure) async for failure in ledger.read_failures()]
        (folder / "failures.jsonl").write_bytes(b"".join(failures))
        records, rehearsal = 0, manifest.rehearsal
        with (folder / "records.jsonl").open("wb") as file:
            async with aclosing(ledger.read_records()) as found:
                async for record in found:
                    file.write(_line(record))
                    records += 1
                    rehearsal = rehearsal or _rehearsed(record)
    planned = sum(len(stream_tasks(manifest, inputs, stream)) for stream in streams)
    return ExportedStreams(records, planned - records, rehearsal)


def _rehearsed(record: stream_pb2.StreamRecord) -> bool:
    return record.episode.rehearsal or record.grade.rehearsal or record.revision.rehearsal


async def _initial_banks(ledger: StreamLedger, streams: list[stream_pb2.Stream]) -> bytes:
    lines = []
    for name, stream in {initial_bank_name(stream): stream for stream in streams}.items():
        if (first := await ledger.read_initial_bank(stream)) is not None:
            lines.append(encode_line({"name": name, "revision": _json(first)}))
    return b"".join(lines)


def _line(message: Message) -> bytes:
    return encode_line(_json(message))


def _json(message: Message) -> dict[str, Any]:
    made: dict[str, Any] = json_format.MessageToDict(message, preserving_proto_field_name=True)
    return made
