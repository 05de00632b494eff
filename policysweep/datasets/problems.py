"""What a check finds, and how it is told to a person.

A rule looks at a value and yields *findings*: a path inside the value and a message. Whoever read the value
from a file turns findings into *problems*, which add the file and the line. So rules are pure and know
nothing of files, and a message always says where.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from policysweep.errors import InputError

Severity = Literal["error", "warning"]
FieldPath = tuple[str | int, ...]
"""Keys and list positions from the top of a value to a part of it."""

SHOWN = 20
"""How many problems an InputError lists before it says "and N more"."""


class Finding(NamedTuple):
    """Something wrong at `path` inside the value that was looked at."""

    path: FieldPath
    message: str
    severity: Severity = "error"


Rule = Callable[[Any], Iterable[Finding]]
"""Looks at one value. Finding nothing means that the value is as it should be."""


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """A finding in a file. `line` counts from 1; 0 stands for the file as a whole."""

    file: str
    line: int
    field: str
    message: str
    severity: Severity = "error"

    def __str__(self) -> str:
        """`file:line: field: message`, the form that editors and CI systems turn into links."""
        place = f"{self.file}:{self.line}" if self.line else self.file
        mark = "warning: " if self.severity == "warning" else ""
        return (
            f"{place}: {self.field}: {mark}{self.message}" if self.field else f"{place}: {mark}{self.message}"
        )


def under(prefix: FieldPath, findings: Iterable[Finding]) -> Iterator[Finding]:
    """The findings of a part, told from the whole."""
    for found in findings:
        yield Finding(prefix + found.path, found.message, found.severity)


def field_name(path: FieldPath) -> str:
    """`("order", "items", 1, "name")` as `order.items[1].name`."""
    name = ""
    for step in path:
        name += f"[{step}]" if isinstance(step, int) else f".{step}" if name else step
    return name


def errors_of(problems: Iterable[Problem]) -> list[Problem]:
    """The problems that are errors, in the order of their places."""
    return sorted(problem for problem in problems if problem.severity == "error")


def refuse_errors(source: str, problems: Iterable[Problem]) -> None:
    """Raise one InputError that lists the errors among `problems`; return when there are none."""
    errors = errors_of(problems)
    if not errors:
        return
    count = "1 error" if len(errors) == 1 else f"{len(errors)} errors"
    lines = [f"data set {source!r} cannot be used, it has {count}:"]
    lines += [f"  {problem}" for problem in errors[:SHOWN]]
    if len(errors) > SHOWN:
        lines.append(f"  and {len(errors) - SHOWN} more; `policysweep dataset check {source}` lists all")
    raise InputError("\n".join(lines))
