"""What the tasks of an authored folder rest on: two policies, the ambiguous clauses in them, ten personas."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from policysweep.datasets.authored import Folder
from policysweep.datasets.problems import Finding, Problem
from policysweep.datasets.rules.authored.shapes import REGISTERS
from policysweep.datasets.rules.text import Run, runs, words

Json = Mapping[str, Any]

POLICY_WORDS = {"policy": (1700, 2200), "third_party": (450, 600)}
FEWEST_CLAUSES = {"policy": 45, "third_party": 9}
PERSONAS = 10
DOCTORS = 2
QUOTED_WORDS = 7
"""A run of so many words of a policy in an opening is a quotation."""


@dataclass(frozen=True)
class Foundation:
    """The parts that the rules for task files look things up in."""

    texts: Mapping[str, str]
    clauses: Mapping[str, Json]
    personas: Mapping[str, Json]
    allocation: Mapping[str, Json]

    @cached_property
    def persona_names(self) -> frozenset[str]:
        """All words of the personas' names, titles left out."""
        return frozenset().union(*map(name_words, self.personas.values()))

    @cached_property
    def policy_runs(self) -> set[Run]:
        """Runs of the policies' words that an opening must not quote."""
        return set().union(*(runs(words(text), QUOTED_WORDS) for text in self.texts.values()))


def name_words(persona: Json) -> set[str]:
    """The words of a persona's name, titles left out."""
    return set(words(persona["Name"])) - {"dr"}


def foundation(folder: Folder) -> Foundation:
    """The lookup tables of a folder whose structure is right."""
    return Foundation(
        texts=folder.texts,
        clauses={clause["clause_id"]: clause for clause in folder.clauses.value},
        personas={each.value["Persona_id"]: each.value for each in folder.personas},
        allocation={each["task_id"]: each for each in folder.allocation.value},
    )


def check_foundation(folder: Folder) -> Iterator[Problem]:
    """The rules for policies, clauses and personas."""
    for name, (fewest, most) in POLICY_WORDS.items():
        count = len(folder.texts[name].split())
        if not fewest <= count <= most:
            told = f"has {count} words, wanted {fewest} to {most}"
            yield Problem(str(folder.root / f"{name}.md"), 0, "", told)
    yield from map(folder.clauses.problem, _clauses(folder.clauses.value, folder.texts))
    yield from _personas(folder)


def _clauses(clauses: list[Json], texts: Mapping[str, str]) -> Iterator[Finding]:
    seen: set[str] = set()
    for at, clause in enumerate(clauses):
        text = texts[clause["source"]]
        if clause["clause_id"] in seen:
            yield Finding((at, "clause_id"), f"{clause['clause_id']!r} was used before")
        seen.add(clause["clause_id"])
        count = text.count(clause["quote"])
        if count != 1:
            yield Finding((at, "quote"), f"occurs {count} times in {clause['source']}.md, must occur once")
        if not re.search(rf"^#+ {re.escape(clause['heading'])}$", text, re.MULTILINE):
            yield Finding((at, "heading"), f"{clause['heading']!r} is no heading of {clause['source']}.md")
    counts = Counter(clause["source"] for clause in clauses)
    for source, fewest in FEWEST_CLAUSES.items():
        if counts[source] < fewest:
            yield Finding((), f"has {counts[source]} clauses of {source}.md, wanted at least {fewest}")


def _personas(folder: Folder) -> Iterator[Problem]:
    file = str(folder.root / "personas.jsonl")
    personas = [each.value for each in folder.personas]
    if len(personas) != PERSONAS:
        yield Problem(file, 0, "", f"has {len(personas)} personas, wanted {PERSONAS}")
    missing = set(REGISTERS) - {persona["Language Style"] for persona in personas}
    if missing:
        yield Problem(file, 0, "Language Style", f"nobody speaks in the registers {sorted(missing)}")
    tokens = Counter(persona["Name"].split()[0] for persona in personas)
    if tokens.pop("Dr.", 0) != DOCTORS:
        yield Problem(
            file, 0, "Name", f"{DOCTORS} names must begin with 'Dr.', as scenario ids must cope with that"
        )
    for token, count in tokens.items():
        if count > 1:
            yield Problem(
                file, 0, "Name", f"{count} names begin with {token!r}; scenario ids need it to be unique"
            )
