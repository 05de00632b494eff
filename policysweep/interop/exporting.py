"""From a run to a folder in one of three formats.

    dripr     the public DRIP-R code's conversations and evaluations
    jsonl     the contract's messages as protobuf JSON, nothing lost
    parquet   flat tables for DuckDB, pandas and their like

All of them get the run's manifest beside their files.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterable
from dataclasses import dataclass
from pathlib import Path

from policysweep.interop.contents import VerdictShelf, read_contents, read_records
from policysweep.interop.folder import output_folder
from policysweep.interop.spool import Spool
from policysweep.interop.writers import Dripr, JsonLines, MakeWriter
from policysweep.sweep.ledger import MANIFEST, RunLedger
from policysweep.sweep.manifest import encode_manifest
from policysweep.v1 import run_pb2

FORMATS = ("dripr", "jsonl", "parquet")


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export wrote, and what it could not."""

    units: int
    verdicts: int
    missing: int
    """Planned units without record."""
    orphans: int
    """Verdicts on units without record, which are left out."""
    rehearsal: bool
    """Whether the rehearsal model played or judged anything."""


async def export_run(
    ledger: RunLedger,
    verdicts: AsyncIterable[run_pb2.VerdictRecord],
    kind: str,
    output: Path,
    *,
    force: bool = False,
) -> Exported:
    """Write a run into the folder `output`, in full or not at all.

    `kind` is one of FORMATS; `verdicts` come in any order. Raises InputError for a folder that cannot be
    used or a run that contradicts itself, StoreError for a record that cannot be read.
    """
    make_writer = _writer(kind)
    contents = await read_contents(ledger)
    with output_folder(output, force=force) as folder, Spool() as spool:
        (folder / MANIFEST).write_bytes(encode_manifest(contents.manifest))
        shelf, rehearsal = VerdictShelf(spool), contents.manifest.rehearsal
        await shelf.fill(verdicts)
        with contextlib.ExitStack() as stack:
            writer = make_writer(folder, contents, stack)
            async with contextlib.aclosing(read_records(ledger, contents)) as records:
                async for record in records:
                    found = shelf.take(record.unit.unit_id)
                    rehearsal = rehearsal or any(each.verdict.rehearsal for each in found)
                    writer.add(record, found)
        return Exported(
            units=len(contents.units),
            verdicts=len(spool) - shelf.left,
            missing=contents.missing,
            orphans=shelf.left,
            rehearsal=rehearsal,
        )


def _writer(kind: str) -> MakeWriter:
    if kind == "parquet":
        from policysweep.interop.tables import Tables  # needs an optional package

        return Tables
    return Dripr if kind == "dripr" else JsonLines
