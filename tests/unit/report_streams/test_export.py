from __future__ import annotations

from pathlib import Path

import pytest
from google.protobuf import json_format

from policysweep.errors import InputError
from policysweep.interop.stream_export import export_streams
from policysweep.v1 import policybank_pb2 as pb
from policysweep.v1 import stream_pb2

from .samples import sample_run


async def test_an_export_loses_nothing(tmp_path: Path) -> None:
    run = sample_run(seeds=1, trials=1)
    ledger = await run.write(str(tmp_path / "run"))
    done = await export_streams(ledger, "jsonl", tmp_path / "out")
    assert (done.records, done.missing, done.rehearsal) == (len(run.records), 0, True)
    lines = (tmp_path / "out" / "records.jsonl").read_text().splitlines()
    read = [json_format.Parse(line, stream_pb2.StreamRecord()) for line in lines]
    assert read == run.records
    streams = (tmp_path / "out" / "streams.jsonl").read_text().splitlines()
    assert [json_format.Parse(line, stream_pb2.Stream()) for line in streams] == list(run.streams())
    banks = (tmp_path / "out" / "initial_banks.jsonl").read_text()
    assert banks.count(pb.RevisionKind.Name(pb.REVISION_KIND_CREATE)) == 3


async def test_what_is_missing_is_counted(tmp_path: Path) -> None:
    run = sample_run(seeds=1, trials=1)
    run.records = run.records[:-7]
    run.failures = [stream_pb2.StreamFailure(task=sample_run(seeds=1, trials=1).records[-7].task)]
    done = await export_streams(await run.write(str(tmp_path / "run")), "jsonl", tmp_path / "out")
    assert done.missing == 7
    assert len((tmp_path / "out" / "failures.jsonl").read_text().splitlines()) == 1


async def test_other_formats_are_refused_and_leave_nothing(tmp_path: Path) -> None:
    ledger = await sample_run(seeds=1, trials=1).write(str(tmp_path / "run"))
    with pytest.raises(InputError, match="a stream run has no parquet form: use --format jsonl"):
        await export_streams(ledger, "parquet", tmp_path / "out")
    assert not (tmp_path / "out").exists()
