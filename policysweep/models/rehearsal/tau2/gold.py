"""The gold actions of tasks, read from a file at the server's start: a side channel for tests and rehearsals.

A real model never has them. The agent's script finds the task of a conversation by the reference that the
rehearsal user gives in its first message, a hash of its scenario.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from policysweep.errors import InputError

FORMAT = "policysweep-tau2-gold-1"
"""The value of `format` in a file that this module reads."""

_REFERENCE = re.compile(r"\(rehearsal reference ([0-9a-f]{12})\)")
_SUPPORTS = ("policy", "clarification", "none")


@dataclass(frozen=True, slots=True)
class Step:
    """A call. `support` is what allows it: the written policy, the clarification of the gap, or nothing."""

    name: str
    arguments: str
    writes: bool
    support: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What a good agent does about a task, and what it tells the user.

    `overreach` is what an agent does that applies the lesson of `gap` where it does not hold.
    """

    gap: str
    steps: Sequence[Step]
    information: Sequence[str]
    overreach: Sequence[Step]


@dataclass(frozen=True, slots=True)
class GoldBook:
    """Plans by the reference of their scenario."""

    plans: Mapping[str, Plan] = field(default_factory=dict)

    def find(self, first_message: str) -> Plan | None:
        """The plan for a conversation that the rehearsal user opened so; None for any other."""
        found = _REFERENCE.search(first_message)
        return self.plans.get(found.group(1)) if found else None


def reference(scenario: Sequence[str]) -> str:
    """The reference of a scenario: of its texts, in the order of the user's prompt, without empty ones."""
    said = "\x1f".join(text.strip() for text in scenario if text.strip())
    return hashlib.sha256(said.encode()).hexdigest()[:12]


def signature(scenario: Sequence[str]) -> str:
    """The reference as the rehearsal user writes it."""
    return f"(rehearsal reference {reference(scenario)})"


def read_gold(path: Path) -> GoldBook:
    """Read a file of gold actions. Raises InputError that names file and place."""
    try:
        content = orjson.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"--tau2-gold {path}: cannot be read: {error.strerror}") from error
    except orjson.JSONDecodeError as error:
        raise InputError(f"--tau2-gold {path}: not valid JSON: {error}") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f"--tau2-gold {path}: not a file of gold actions: `format` must be {FORMAT!r}")
    plans: dict[str, Plan] = {}
    for number, task in enumerate(_list(path, content, "tasks", "")):
        place = f"tasks[{number}]"
        try:
            plans[task["reference"]] = _plan(path, task, place)
        except (KeyError, TypeError) as error:
            raise InputError(f"--tau2-gold {path}: {place} is not a task: {error!r}") from error
    return GoldBook(plans)


def _plan(path: Path, task: Mapping[str, Any], place: str) -> Plan:
    return Plan(
        gap=str(task["gap"]),
        steps=[_step(path, each, place) for each in _list(path, task, "steps", place)],
        information=[str(each) for each in _list(path, task, "information", place)],
        overreach=[_step(path, each, place) for each in _list(path, task, "overreach", place)],
    )


def _list(path: Path, mapping: Mapping[str, Any], key: str, place: str) -> list[Any]:
    value = mapping.get(key)
    if not isinstance(value, list):
        raise InputError(f"--tau2-gold {path}: {place}.{key} must be a list".replace(" .", " "))
    return value


def _step(path: Path, each: Mapping[str, Any], place: str) -> Step:
    if each["support"] not in _SUPPORTS:
        raise InputError(f"--tau2-gold {path}: {place}: support must be one of {', '.join(_SUPPORTS)}")
    return Step(
        str(each["name"]), orjson.dumps(each["arguments"]).decode(), bool(each["writes"]), each["support"]
    )
