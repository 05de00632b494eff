"""Tells everything that is wrong with a data set."""

from __future__ import annotations

from policysweep.datasets import authored
from policysweep.datasets.digest import content_digest
from policysweep.datasets.load import read_worlds
from policysweep.datasets.problems import Problem, errors_of
from policysweep.datasets.rules import companions, dataset
from policysweep.datasets.rules.authored.folder import check_folder
from policysweep.datasets.sources import BUILTIN, RawDataset, authored_root, read


def check(source: str, *, full: bool | None = None) -> list[Problem]:
    """All problems of a data set, in the order of files and lines. Raises InputError when it cannot be read.

    `full` is for authored folders: whether to demand all 40 tasks and the counts of the complete data set; by
    default of the one that ships with the project.
    """
    root = authored_root(source)
    if root is None:
        return sorted(set(_check_public(read(source, companions=True))))
    folder, problems = authored.read_folder(root)
    if folder is not None:
        problems = problems + check_folder(folder, source == BUILTIN if full is None else full)
    return sorted(set(problems))


def _check_public(raw: RawDataset) -> list[Problem]:
    scenarios, faults = dataset.scenarios(raw.scenarios)
    problems = raw.problems + faults
    if not raw.scenarios and not problems:
        problems.append(Problem(raw.source, 0, "", "has no scenarios"))
    problems += dataset.relations(scenarios)
    problems += companions.tasks_file(raw.tasks or [], scenarios) if raw.tasks is not None else ()
    problems += companions.personas_file(raw.personas or [], scenarios) if raw.personas is not None else ()
    return problems + _check_worlds(raw, {record.value["task_id"] for record in scenarios})


def _check_worlds(raw: RawDataset, task_ids: set[str]) -> list[Problem]:
    digest = content_digest(record.value for record in raw.scenarios)
    lines, problems = read_worlds(raw, digest)
    problems += dataset.world_relations(lines, task_ids)
    lacking = task_ids - {line.value["task_id"] for line in lines}
    if lacking and not errors_of(raw.problems):
        told = f"{len(lacking)} of {len(task_ids)} tasks lack an order world; make them with `dataset worlds`"
        problems.append(Problem(raw.source, 0, "", told, "warning"))
    return problems
