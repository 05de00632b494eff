"""What the commands say of stream runs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from click.testing import CliRunner

from policysweep.commands.show import show
from policysweep.commands.stream import stream
from policysweep.commands.verify import verify
from policysweep.errors import InputError
from policysweep.streams.plan import bank_id, method_name
from policysweep.sweep.runs import open_any_run, open_run, prepare_run, prepare_stream_run
from policysweep.sweep.store import ResultStore

from .samples import complete_run, manifest, planned


async def folder(tmp_path: Path) -> Path:
    """A complete run in a directory."""
    await complete_run(ResultStore.from_url(str(tmp_path), create=True).within("small"))
    return tmp_path / "small"


def test_verify_knows_a_stream_run(tmp_path: Path) -> None:
    run = asyncio.run(folder(tmp_path))
    done = CliRunner().invoke(verify, [str(run)])
    assert done.exit_code == 0
    assert "56 of 56 planned tasks have exactly one record. They led to 28 revisions." in done.output
    unit = planned(manifest())[1][1][3].unit_id
    (run / "tasks" / f"{unit}.binpb").unlink()
    done = CliRunner().invoke(verify, [str(run)])
    assert done.exit_code == 1
    assert f"missing: task {unit} was not played" in done.output
    assert "1 missing, 3 problems" in done.output  # all that came after it in its stream


def test_show_prints_grade_and_lesson(tmp_path: Path) -> None:
    run = asyncio.run(folder(tmp_path))
    stream_, tasks = planned(manifest())[1]
    done = CliRunner().invoke(show, [str(run), tasks[2].unit_id[:12]])
    assert done.exit_code == 0
    for text in (
        f"task {tasks[2].task_id}, position 2 of stream {stream_.stream_id[:8]}",
        f"{stream_.domain}, {method_name(stream_.method)} with ",
        f"{stream_.agent}, seed {stream_.seed}, trial {stream_.trial + 1}",
        f"bank {bank_id(manifest(), stream_)}, at revision ",
        "reward 1",
        "OMIT",
    ):
        assert text in done.output


def test_options_of_the_other_kind_of_run_are_refused(tmp_path: Path) -> None:
    run = asyncio.run(folder(tmp_path))
    done = CliRunner().invoke(verify, [str(run), "--verdicts"])
    assert isinstance(done.exception, InputError)
    assert "graded and not judged" in str(done.exception)


def test_a_file_that_is_wrong_is_told_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "streams.yaml"
    file.write_text(
        "name: n\nmethods: [policy_bnak]\nagents:\n  - {name: a, model: rehearsal-fair}\n", "utf-8"
    )
    done = CliRunner().invoke(stream, [str(file), "--store", str(tmp_path / "store")])
    assert isinstance(done.exception, InputError)
    assert f"{file}:2: methods" in str(done.exception)
    assert not (tmp_path / "store").exists()


async def test_the_two_kinds_of_run_are_told_apart(tmp_path: Path) -> None:
    run = await folder(tmp_path)
    assert (await open_any_run(str(run))).url == str(run)
    with pytest.raises(InputError, match="is a stream run, and this is for the runs of sweeps"):
        await open_run(str(run))
    with pytest.raises(InputError, match="the runs in it are"):
        await open_any_run(str(tmp_path))
    with pytest.raises(InputError, match="holds a run of the other kind"):
        await prepare_run(str(tmp_path), "small")
    assert (await prepare_stream_run(str(tmp_path), "small")).url == str(run)
