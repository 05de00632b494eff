"""`policysweep report` takes either kind of run."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from policysweep.commands.report import report

from .samples import sample_run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    asyncio.run(sample_run(seeds=1, trials=1).write(str(tmp_path / "run")))
    return tmp_path / "run"


def test_a_stream_run_gets_tables_json_and_a_page(folder: Path) -> None:
    done = CliRunner().invoke(report, [str(folder)])
    assert done.exit_code == 0, done.output
    assert "REHEARSAL" in done.output
    assert "Airline: sisters passed in %" in done.output
    assert f"Report: {folder}/report.html" in done.output
    assert json.loads((folder / "stream-report.json").read_text())["kind"] == "streams"
    assert (folder / "report.html").exists()
    assert not (folder / "report.json").exists()


def test_json_is_printed_and_nothing_written(folder: Path) -> None:
    before = sorted(folder.rglob("*"))
    done = CliRunner().invoke(report, [str(folder), "--json"])
    assert json.loads(done.output)["units"]["planned"] == 5 * 36
    assert sorted(folder.rglob("*")) == before


def test_a_damaged_record_ends_the_report_with_its_name(folder: Path) -> None:
    record = next((folder / "tasks").iterdir())
    record.write_bytes(b"\xff\xff")
    done = CliRunner().invoke(report, [str(folder)])
    assert done.exit_code != 0
    assert record.name in str(done.exception)
    assert not (folder / "report.html").exists()


def test_a_folder_without_a_run_is_told(tmp_path: Path) -> None:
    done = CliRunner().invoke(report, [str(tmp_path)])
    assert "there is no manifest.json or stream-manifest.json in it" in str(done.exception)
