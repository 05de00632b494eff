"""The three records of the public code, which are not part of this repository."""

from __future__ import annotations

import os
from pathlib import Path

import orjson
import pytest

from policysweep.interop.exporting import export_run
from policysweep.sweep.verify import verify_run
from policysweep.v1 import episode_pb2 as ep

from .samples import imported, records, stream

ROOT = Path(__file__).parents[3]
FILE = Path(os.environ.get("POLICYSWEEP_SHARED_DATA", ROOT.parent / "shared" / "data"))
FILE = FILE / "dripr" / "reference_conversations.jsonl"

pytestmark = pytest.mark.skipif(not FILE.exists(), reason="the public code's records are not at hand")


async def test_they_become_a_run() -> None:
    ledger = await imported(FILE, "scripted")
    assert (await verify_run(ledger)).ok
    found = await records(ledger)
    assert sorted(record.unit.scenario_id for record in found) == [
        "Alastair_t000_cd6c",
        "Dr._t000_8df5",
        "Isabella_t000_1df0",
    ]
    for record in found:
        assert record.episode.outcome == ep.OUTCOME_RETURN_REFUND_PARTIAL_BANK
        assert len(record.episode.messages) == 13
        assert record.episode.messages[-1].tool_call_id == "process_return_1"


async def test_they_come_out_as_they_went_in_but_for_the_row(tmp_path: Path) -> None:
    await export_run(await imported(FILE, "scripted"), stream([]), "dripr", tmp_path / "out")
    before = [orjson.loads(line) for line in FILE.read_bytes().splitlines()]
    after = [
        orjson.loads(line)
        for line in (tmp_path / "out" / "scripted" / "conversations.jsonl").read_bytes().split(b"\n")[:-1]
    ]
    for old, new in zip(before, after, strict=True):
        assert new.pop("policysweep")["agent"] == "scripted"
        for record in (old, new):
            record["source_scenario"].pop("scenario_id")
            for name in ("scenario_id", "row_id", "user_idx", "scenario_idx"):
                record.pop(name)
        assert new == old
        assert list(new) == list(old)
