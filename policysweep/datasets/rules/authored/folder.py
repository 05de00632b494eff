"""Checks an authored folder from structure to counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from policysweep.datasets.authored import Folder
from policysweep.datasets.files import Document
from policysweep.datasets.problems import Finding, Problem, Rule
from policysweep.datasets.rules.authored.across import Task, check_across, check_counts
from policysweep.datasets.rules.authored.foundation import Foundation, check_foundation, foundation
from policysweep.datasets.rules.authored.shapes import ALLOCATION, CLAUSES, PERSONA, task_file
from policysweep.datasets.rules.authored.task import check_task
from policysweep.datasets.rules.authored.vocabulary import TASK_NAME
from policysweep.datasets.rules.dataset import repeated, shaped


def structure(folder: Folder) -> list[Problem]:
    """Problems of form, which keep the scenarios from being put together."""
    problems = _foundation_structure(folder)
    if any(problem.severity == "error" for problem in problems):
        return problems
    for document, rule in _task_rules(folder):
        problems += map(document.problem, rule(document.value))
    return problems


def check_folder(folder: Folder, full: bool) -> list[Problem]:
    """All problems. `full` also demands all 40 tasks and the counts of the complete data set.

    Tasks are looked at once clauses, personas and allocation have the right form.
    """
    problems = _foundation_structure(folder)
    if any(problem.severity == "error" for problem in problems):
        return problems
    base = foundation(folder)
    problems += check_foundation(folder)
    sound: list[Task] = []
    for document, rule in _task_rules(folder):
        found = list(rule(document.value))
        malformed = {str(finding.path[0]) if finding.path else "" for finding in found}
        problems += map(document.problem, [*found, *_related(document, base, malformed)])
        if not malformed:
            sound.append(Task(document))
    problems += check_across(sound)
    if full:
        problems += check_counts(str(folder.root), sound, base)
    return problems


def _foundation_structure(folder: Folder) -> list[Problem]:
    problems = [folder.clauses.problem(found) for found in CLAUSES(folder.clauses.value)]
    problems += [folder.allocation.problem(found) for found in ALLOCATION(folder.allocation.value)]
    personas, faults = shaped(folder.personas, PERSONA)
    return problems + faults + repeated(personas, "Persona_id")


def _task_rules(folder: Folder) -> Iterator[tuple[Document, Rule]]:
    """Each task file with the rule for its form."""
    personas = [each.value["Persona_id"] for each in folder.personas]
    for document in folder.tasks:
        task_id = Folder.task_id(document)
        named = TASK_NAME.fullmatch(task_id) is not None
        yield document, task_file(task_id, personas) if named else _badly_named


def _badly_named(value: Any) -> Iterator[Finding]:
    yield Finding((), "the file name must be task_NNN.json or task_ENN.json")


def _related(document: Document, base: Foundation, malformed: set[str]) -> Iterator[Finding]:
    if "" not in malformed:  # the file as a whole is an object with a proper name
        yield from check_task(document.value, base, malformed)
