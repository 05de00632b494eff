"""The rules across the task files of an authored folder: nothing is used twice, and the counts are right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

from policysweep.datasets.files import Document
from policysweep.datasets.problems import FieldPath, Finding, Problem
from policysweep.datasets.rules.authored.foundation import Foundation
from policysweep.datasets.rules.authored.openings import opening_runs
from policysweep.datasets.rules.authored.task import kinds
from policysweep.datasets.rules.dataset import KINDS
from policysweep.datasets.rules.text import Run, normal, overlap, runs, words
from policysweep.datasets.rules.world import ids

Json = Mapping[str, Any]

DETAIL_RUN = 8
MOST_SHARED_DETAIL_RUNS = 2
MOST_SHARED_ACROSS = 0.10
"""Share of a persona's five-word runs in one opening that its opening of another task may have."""
SAME_START = (4, 3)
"""So many first words may be shared by so many openings of a persona."""

LEVEL_COUNTS = {"Very High Complexity": 23, "High Complexity": 16, "Medium Complexity": 1}
FEWEST_PER_KIND = 6
KINDS_PER_TASK = (2.5, 3.7)
TASK_IDS = [f"task_{number:03d}" for number in range(34)] + [f"task_E{number:02d}" for number in range(1, 7)]


@dataclass(frozen=True)
class Task:
    """A well-formed task file with what is compared between tasks."""

    document: Document

    @property
    def value(self) -> Json:
        """The content of the file."""
        value: Json = self.document.value
        return value

    @property
    def task_id(self) -> str:
        """The task."""
        return str(self.value["task"]["task_id"])

    @cached_property
    def detail_runs(self) -> set[Run]:
        """Eight-word runs of the narrative."""
        return runs(words(self.value["task"]["detail"]), DETAIL_RUN)

    @cached_property
    def opening_runs(self) -> dict[str, set[Run]]:
        """Persona to the five-word runs of its opening."""
        return opening_runs(
            self.value["openings"], [each["name"] for each in self.value["world"]["products"]]
        )


def check_across(tasks: Sequence[Task]) -> Iterator[Problem]:
    """The rules that hold between any two tasks."""
    yield from _ids_once(tasks)
    yield from _product_names_once(tasks)
    for one, other in combinations(tasks, 2):
        yield from map(other.document.problem, _alike(one, other))
    yield from _same_starts(tasks)


def _defined(world: Json) -> Iterator[tuple[FieldPath, str]]:
    yield from ids(world)
    for at, past in enumerate(world["other_orders"]):
        for below, item in enumerate(past["items"]):
            yield ("other_orders", at, "items", below, "product_id"), item["product_id"]


def _ids_once(tasks: Sequence[Task]) -> Iterator[Problem]:
    owners: dict[str, str] = {}
    for task in tasks:
        for path, name in _defined(task.value["world"]):
            if name in owners:
                yield task.document.problem(
                    Finding(("world", *path), f"{name!r} is used in {owners[name]}, too")
                )
            owners[name] = task.task_id


def _product_names_once(tasks: Sequence[Task]) -> Iterator[Problem]:
    owners: dict[str, str] = {}
    for task in tasks:
        products = {normal(each["name"]): at for at, each in enumerate(task.value["world"]["products"])}
        for name, at in products.items():
            if name in owners:
                told = f"the product {name!r} is in {owners[name]}, too"
                yield task.document.problem(Finding(("world", "products", at, "name"), told))
            owners[name] = task.task_id


def _alike(one: Task, other: Task) -> Iterator[Finding]:
    if len(one.detail_runs & other.detail_runs) > MOST_SHARED_DETAIL_RUNS:
        yield Finding(("task", "detail"), f"shares text with {one.task_id}")
    for persona in one.opening_runs.keys() & other.opening_runs.keys():
        share = overlap(one.opening_runs[persona], other.opening_runs[persona])
        if share > MOST_SHARED_ACROSS:
            most = f"at most {MOST_SHARED_ACROSS:.0%} may be"
            yield Finding(
                ("openings", persona), f"shares {share:.0%} of its word runs with {one.task_id}, {most}"
            )


def _same_starts(tasks: Sequence[Task]) -> Iterator[Problem]:
    length, most = SAME_START
    starts: dict[tuple[str, ...], list[Task]] = {}
    for task in tasks:
        for persona, text in task.value["openings"].items():
            starts.setdefault((persona, *words(text)[:length]), []).append(task)
    for (persona, *start), users in starts.items():
        if len(users) > most:
            told = f"{persona} starts {len(users)} openings with {' '.join(start)!r}, at most {most} may"
            yield users[-1].document.problem(Finding(("openings", persona), told))


def check_counts(folder: str, tasks: Sequence[Task], base: Foundation) -> Iterator[Problem]:
    """The counts of the complete data set: 40 tasks, 23/16/1 levels, five kinds, all clauses."""
    for told in _count_faults(tasks, base):
        yield Problem(folder, 0, "", told)


def _count_faults(tasks: Sequence[Task], base: Foundation) -> Iterator[str]:
    have = {task.task_id for task in tasks}
    if have != set(TASK_IDS):
        yield f"tasks missing {sorted(set(TASK_IDS) - have)}, not expected {sorted(have - set(TASK_IDS))}"
    levels = Counter(task.value["task"]["complexity_level"] for task in tasks)
    if levels != LEVEL_COUNTS:
        yield f"complexity levels are {dict(levels)}, wanted {LEVEL_COUNTS}"
    primary = Counter(task.value["task"]["primary_ambiguity_type"] for task in tasks)
    for kind in KINDS:
        if primary[kind] < FEWEST_PER_KIND:
            yield f"{primary[kind]} tasks have the primary type {kind!r}, wanted at least {FEWEST_PER_KIND}"
    unused = base.clauses.keys() - {clause for task in tasks for clause in task.value["clauses"]}
    if unused:
        yield f"no task uses the clauses {sorted(unused)}"
    mean = sum(len(set(kinds(task.value, base))) for task in tasks) / max(1, len(tasks))
    fewest, most = KINDS_PER_TASK
    if not fewest <= mean <= most:
        yield f"a task has {mean:.2f} types of ambiguity on average, wanted {fewest} to {most}"
