"""Writes a data set in the public layout of DRIP-R: scenarios, tasks, personas and worlds as JSON Lines."""

from __future__ import annotations

import secrets
import shutil
from pathlib import Path
from typing import Any

from policysweep.datasets.digest import content_digest
from policysweep.datasets.files import jsonl
from policysweep.datasets.load import read_worlds
from policysweep.datasets.problems import refuse_errors
from policysweep.datasets.rules import dataset as rules
from policysweep.datasets.sources import PERSONAS, SCENARIOS, TASKS, WORLDS, read
from policysweep.errors import InputError


def build(source: str, output: Path, *, force: bool = False) -> dict[str, int]:
    """Write the data set into the folder `output`; returns file name to number of lines.

    Tables of tasks and personas that the data set lacks are derived from its scenarios; worlds are written
    when there are any. With `force` the files of the layout are replaced, and others are left alone.

    Raises InputError, with nothing written, when the data set is not sound, when the folder is not empty and
    `force` is not given, or when the folder cannot be written.
    """
    tables = _tables(source)
    try:
        if output.is_file():
            raise InputError(f"{output} is a file; name a folder")
        if output.is_dir() and any(output.iterdir()) and not force:
            raise InputError(
                f"{output} is not empty; name another folder, or --force to replace its data set"
            )
        _write_folder(tables, output)
    except OSError as fault:
        raise InputError(f"cannot write {output}: {fault.strerror}") from fault
    return {name: len(lines) for name, lines in tables.items()}


def _tables(source: str) -> dict[str, list[Any]]:
    raw = read(source, companions=True)
    scenarios, problems = rules.scenarios(raw.scenarios)
    digest = content_digest(record.value for record in scenarios)
    worlds, faults = read_worlds(raw, digest)
    refuse_errors(source, [*raw.problems, *problems, *faults])
    values = [record.value for record in scenarios]
    tables = {
        SCENARIOS: values,
        TASKS: _derived_tasks(values) if raw.tasks is None else [record.value for record in raw.tasks],
        PERSONAS: _derived_personas(values)
        if raw.personas is None
        else [record.value for record in raw.personas],
        WORLDS: [record.value for record in worlds],
    }
    return {name: lines for name, lines in tables.items() if lines}


def _derived_tasks(scenarios: list[Any]) -> list[Any]:
    tasks = {value["task_id"]: value["task"] for value in reversed(scenarios)}
    order = dict.fromkeys(value["task_id"] for value in scenarios)
    return [_task_line(task_id, tasks[task_id]) for task_id in order]


def _task_line(task_id: str, task: Any) -> Any:
    stratified = not task_id.startswith("task_E")
    aliases = [task_id] if stratified else []
    return {"task_id": task_id, "is_stratified": stratified, "stratified_task_idx_aliases": aliases, **task}


def _derived_personas(scenarios: list[Any]) -> list[Any]:
    personas: dict[str, Any] = {}
    for value in scenarios:
        personas.setdefault(value["persona"]["Persona_id"], value["persona"])
    return list(personas.values())


def _write_folder(tables: dict[str, list[Any]], output: Path) -> None:
    """Write all files aside first, so that a fault in mid-way leaves `output` as it was."""
    output = output.resolve()
    aside = output.with_name(f".{output.name}.{secrets.token_hex(4)}.tmp")
    try:
        aside.mkdir(parents=True)
        for name, lines in tables.items():
            (aside / name).write_bytes(jsonl(lines))
        if output.exists() and any(output.iterdir()):
            _replace_files(aside, output)
        else:
            aside.rename(output)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _replace_files(aside: Path, output: Path) -> None:
    for name in (SCENARIOS, TASKS, PERSONAS, WORLDS):
        if (aside / name).exists():
            (aside / name).replace(output / name)
        else:
            (output / name).unlink(missing_ok=True)
