"""From the name of a data set to its records, whatever layout they are kept in.

    builtin              the authored folder that ships with the project
    FOLDER               an authored folder (clauses.json, tasks/) or the public layout: scenarios.jsonl, and
                         if they are there tasks.jsonl, personas.jsonl, worlds.jsonl
    FILE                 scenarios as JSON Lines or as a JSON list
    hub:OWNER/NAME       a data set on the hub, optionally @REVISION

Nothing is judged here but syntax, and the form of authored files, as scenarios are put together from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from policysweep.datasets import authored, hub
from policysweep.datasets.files import Record, read_records
from policysweep.datasets.problems import Problem, errors_of
from policysweep.datasets.rules.authored.folder import structure
from policysweep.errors import InputError

BUILTIN = "builtin"
SCENARIOS, TASKS, PERSONAS, WORLDS = (
    f"{kind}.jsonl" for kind in ("scenarios", "tasks", "personas", "worlds")
)
"""The files of the public layout."""


@dataclass(frozen=True)
class RawDataset:
    """The records of a data set, as read.

    `tasks` and `personas` are None when the data set lists none. `made_worlds` is the folder for worlds that
    are made for it, and need not exist. `designs` maps a task to its authored file, and `clauses` a clause id
    to the clause; both are empty for a data set in the public layout.
    """

    source: str
    name: str
    scenarios: list[Record]
    worlds: list[Record]
    made_worlds: Path
    tasks: list[Record] | None = None
    personas: list[Record] | None = None
    problems: list[Problem] = field(default_factory=list)
    designs: Mapping[str, Any] = field(default_factory=dict)
    clauses: Mapping[str, Any] = field(default_factory=dict)


def authored_root(source: str) -> Path | None:
    """The authored folder behind a source; None for any other kind of source."""
    if source == BUILTIN:
        return authored.BUILTIN
    if source.startswith(hub.PREFIX):
        return None
    with _access_to(source):
        return Path(source) if authored.is_authored(Path(source)) else None


def read(source: str, *, companions: bool = False) -> RawDataset:
    """Read a data set; `companions` asks for its tables of tasks and personas, too, which a run does without.

    Raises InputError when there is nothing to read.
    """
    root = authored_root(source)
    if root is not None:
        return _authored(source, root)
    if source.startswith(hub.PREFIX):
        return _hub(source, companions)
    path = Path(source)
    with _access_to(source):
        if path.is_dir():
            return _folder(source, path, companions)
        if path.is_file():
            return _file(source, path)
    raise InputError(
        f"there is no data set {source!r}: it is neither 'builtin', nor a file or folder, nor hub:OWNER/NAME"
    )


@contextmanager
def _access_to(source: str) -> Iterator[None]:
    try:
        yield
    except OSError as fault:
        raise InputError(f"cannot read {source}: {fault.strerror}") from fault


def _authored(source: str, root: Path) -> RawDataset:
    made = root / "tasks.worlds"
    folder, problems = authored.read_folder(root)
    if folder is not None:
        problems = problems + structure(folder)
    name = BUILTIN if source == BUILTIN else root.name
    if folder is None or errors_of(problems):
        return RawDataset(source, name, [], [], made, problems=problems)
    return RawDataset(
        source,
        name,
        list(authored.scenarios(folder)),
        authored.worlds(folder),
        made,
        authored.tasks(folder),
        folder.personas,
        problems,
        {authored.Folder.task_id(document): document.value for document in folder.tasks},
        {clause["clause_id"]: clause for clause in folder.clauses.value},
    )


def _hub(source: str, companions: bool) -> RawDataset:
    return RawDataset(
        source,
        hub.parse_name(source)[0],
        hub.read_table(source, "scenarios"),
        [],
        hub.worlds_folder(source),
        hub.read_table(source, "tasks") if companions else None,
        hub.read_table(source, "personas") if companions else None,
    )


def _folder(source: str, root: Path, companions: bool) -> RawDataset:
    main = root / SCENARIOS
    if not main.is_file():
        layouts = f"neither {SCENARIOS} (public layout) nor clauses.json and tasks/ (authored)"
        raise InputError(f"{root} holds no data set: {layouts}")
    scenarios, problems = read_records(main)
    beside: dict[str, list[Record] | None] = {TASKS: None, PERSONAS: None, WORLDS: None}
    for name in beside if companions else [WORLDS]:
        if (root / name).is_file():
            beside[name], faults = read_records(root / name)
            problems = problems + faults
    return RawDataset(
        source,
        root.resolve().name,
        scenarios,
        beside[WORLDS] or [],
        root / f"{SCENARIOS}.worlds",
        beside[TASKS],
        beside[PERSONAS],
        problems,
    )


def _file(source: str, path: Path) -> RawDataset:
    scenarios, problems = read_records(path)
    return RawDataset(
        source, path.stem, scenarios, [], path.with_name(f"{path.name}.worlds"), problems=problems
    )
