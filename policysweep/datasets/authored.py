"""Reads an authored folder and puts the scenarios together: tasks x personas, in the DRIP-R schema.

An authored folder holds what people wrote: two policies, clauses, personas, and one file for each task with
its texts, openings and order world (`builtin/schema.md` explains every key). The scenarios are derived:

    scenario_id   <first word of the name>_t<task code>_<4 hex of SHA-256 of "task_id/Persona_id">,
                  for example Hollis_t000_1c2d, Dr._t017_9e4f or Tomasz_tE03_07ab (the E stays with the code)
    source        merrowick/<task_id>
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from policysweep.datasets.files import Document, Record, read_document, read_records, read_text
from policysweep.datasets.problems import Problem
from policysweep.datasets.rules.scenario import TASK_FIELDS

Json = Mapping[str, Any]

BUILTIN = Path(__file__).parent / "builtin"
"""The authored folder that ships with the project."""


@dataclass(frozen=True)
class Folder:
    """The files of an authored folder. Only their syntax is known to be right."""

    root: Path
    texts: Mapping[str, str]
    clauses: Document
    allocation: Document
    personas: list[Record]
    tasks: list[Document]

    @staticmethod
    def task_id(document: Document) -> str:
        """The task that a file is named after."""
        return Path(document.file).stem


def is_authored(path: Path) -> bool:
    """Whether a folder is an authored one."""
    return (path / "clauses.json").is_file() and (path / "tasks").is_dir()


def read_folder(root: Path) -> tuple[Folder | None, list[Problem]]:
    """The folder, without the task files that are not JSON; None when its clauses or allocation are not."""
    clauses, allocation = read_document(root / "clauses.json"), read_document(root / "allocation.json")
    personas, problems = read_records(root / "personas.jsonl")
    read = [read_document(path) for path in sorted((root / "tasks").glob("task_*.json"))]
    problems += [each for each in (clauses, allocation, *read) if isinstance(each, Problem)]
    if isinstance(clauses, Problem) or isinstance(allocation, Problem):
        return None, problems
    texts = {name: read_text(root / f"{name}.md") for name in ("policy", "third_party")}
    tasks = [each for each in read if isinstance(each, Document)]
    return Folder(root, texts, clauses, allocation, personas, tasks), problems


def scenario_id(task_id: str, persona: Json) -> str:
    """The id of the scenario in which this persona plays this task."""
    token = persona["Name"].split()[0]
    code = task_id.removeprefix("task_")
    digest = hashlib.sha256(f"{task_id}/{persona['Persona_id']}".encode()).hexdigest()
    return f"{token}_t{code}_{digest[:4]}"


def scenarios(folder: Folder) -> Iterator[Record]:
    """The scenario records of a folder whose structure is right: tasks by name, personas in their order."""
    policy = {
        "Primary Policy": {"url": None, "text": folder.texts["policy"]},
        "Related policies": [{"url": None, "text": folder.texts["third_party"]}],
    }
    for document in folder.tasks:
        for persona in folder.personas:
            yield Record(document.file, 1, _scenario(document.value, persona.value, policy), document)


def _scenario(file: Json, persona: Json, policy: Json) -> Json:
    task = file["task"]
    return {
        "scenario_id": scenario_id(task["task_id"], persona),
        "Policy": policy,
        "persona": persona,
        "task": {field: task[field] for field in TASK_FIELDS},
        "first_customer_message": file["openings"][persona["Persona_id"]],
        "detail_agent": file["detail_agent"],
        "customer_task_detail": file["customer_task_detail"],
        "task_id": task["task_id"],
        "source": f"merrowick/{task['task_id']}",
    }


def tasks(folder: Folder) -> list[Record]:
    """The lines of the tasks file."""
    return [
        Record(document.file, 1, document.value["task"], document, ("task",)) for document in folder.tasks
    ]


def worlds(folder: Folder) -> list[Record]:
    """The lines of the worlds file."""
    return [
        Record(
            document.file,
            1,
            {"task_id": Folder.task_id(document), "world": document.value["world"]},
            document,
        )
        for document in folder.tasks
    ]
