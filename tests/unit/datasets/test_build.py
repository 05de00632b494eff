"""Writing the public layout."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from policysweep.datasets.build import build
from policysweep.datasets.check import check
from policysweep.datasets.load import Dataset, load
from policysweep.errors import InputError

Write = Callable[..., Path]
FILES = ["personas.jsonl", "scenarios.jsonl", "tasks.jsonl", "worlds.jsonl"]


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def test_builtin_in_the_public_layout_is_the_same_data_set(builtin: Dataset, tmp_path: Path) -> None:
    written = build("builtin", tmp_path / "deep" / "out")
    assert written == {"scenarios.jsonl": 400, "tasks.jsonl": 40, "personas.jsonl": 10, "worlds.jsonl": 40}
    assert sorted(path.name for path in (tmp_path / "deep" / "out").iterdir()) == FILES
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["out"]
    again = load(str(tmp_path / "deep" / "out"))
    assert again.digest == builtin.digest
    assert again.scenarios == builtin.scenarios
    assert again.worlds == builtin.worlds
    assert check(str(tmp_path / "deep" / "out")) == []


def test_builtin_records_have_the_form_of_the_public_sample(public_sample: Path, tmp_path: Path) -> None:
    build("builtin", tmp_path / "out")
    ours, theirs = lines(tmp_path / "out" / "scenarios.jsonl")[0], lines(public_sample)[0]

    def form(value: Any) -> Any:
        if isinstance(value, dict):
            return [(key, form(part)) for key, part in value.items()]
        return [form(value[0])] if isinstance(value, list) else type(value).__name__

    assert form(ours) == form(theirs)


def test_tables_are_derived_from_scenarios_that_come_alone(
    scenarios: list[Any], write: Write, tmp_path: Path
) -> None:
    scenarios[3]["task_id"] = scenarios[4]["task_id"] = scenarios[5]["task_id"] = "task_E01"
    build(str(write(scenarios)), tmp_path / "out")
    tasks = lines(tmp_path / "out" / "tasks.jsonl")
    assert [
        (task["task_id"], task["is_stratified"], task["stratified_task_idx_aliases"]) for task in tasks
    ] == [
        ("task_000", True, ["task_000"]),
        ("task_E01", False, []),
    ]
    assert [persona["Persona_id"] for persona in lines(tmp_path / "out" / "personas.jsonl")] == [
        scenario["persona"]["Persona_id"] for scenario in scenarios[:3]
    ]
    assert not (tmp_path / "out" / "worlds.jsonl").exists()


def test_a_folder_that_is_not_empty_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="is not empty"):
        build("builtin", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_force_replaces_the_files_of_the_layout_only(
    scenarios: list[Any], write: Write, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    build("builtin", out)
    (out / "mine.txt").write_text("mine")
    build(str(write(scenarios)), out, force=True)
    assert sorted(path.name for path in out.iterdir()) == ["mine.txt", *FILES[:3]]
    assert len(lines(out / "scenarios.jsonl")) == 6


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    build("builtin", tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == FILES


def test_a_broken_data_set_is_not_written(scenarios: list[Any], write: Write, tmp_path: Path) -> None:
    del scenarios[0]["task"]
    with pytest.raises(InputError, match="task: is missing"):
        build(str(write(scenarios)), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_file_in_the_way_is_told(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(InputError, match="is a file"):
        build("builtin", tmp_path / "out")
    with pytest.raises(InputError, match="cannot write"):
        build("builtin", tmp_path / "out" / "below")
