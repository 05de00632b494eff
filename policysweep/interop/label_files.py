"""Label files: scores that people gave, as CSV or JSON Lines. docs/interop.md describes them.

A row names a conversation (`unit`, or what tells it apart of `scenario`, `agent`, `trial` and
`agent_persona`), a `metric` or "outcome", for a metric that looks at turns the `message_index`, the `value`
and the `annotator`. Both formats lead to the same rows: a cell that is empty, or null, is not given.
"""

from __future__ import annotations

import csv
import difflib
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from policysweep.datasets.files import Record, read_text
from policysweep.datasets.problems import Problem
from policysweep.errors import InputError
from policysweep.interop.lines import read_objects

COLUMNS = (
    "unit",
    "scenario",
    "agent",
    "trial",
    "agent_persona",
    "metric",
    "message_index",
    "value",
    "annotator",
)
_REQUIRED = ("metric", "value", "annotator")


@dataclass(frozen=True, slots=True)
class Row:
    """What a line of a label file gives, by column."""

    file: str
    line: int
    given: Mapping[str, Any]

    def problem(self, column: str, message: str) -> Problem:
        """Something wrong with a column of this row."""
        return Problem(self.file, self.line, column, message)

    def cell(self, column: str) -> str:
        """A cell as text, empty when it is not given. A JSON list, say, becomes text that fits no column."""
        return str(self.given.get(column, ""))


def read_rows(path: Path) -> tuple[list[Row], list[Problem]]:
    """The rows of a file, and what is wrong with its lines. InputError when it cannot be read at all."""
    kind = path.suffix.lower()
    if kind not in (".csv", ".jsonl"):
        raise InputError(f"{path}: label files are named .csv or .jsonl")
    lines = _csv_lines(path) if kind == ".csv" else _json_lines(path)
    rows, problems = list[Row](), list[Problem]()
    for each in lines:
        if isinstance(each, Problem):
            problems.append(each)
            continue
        wrong = [each.problem(name, _unknown(name)) for name in each.given if name not in COLUMNS]
        missing = [name for name in _REQUIRED if name not in each.given]
        wrong += [each.problem(name, "is missing") for name in missing]
        problems += wrong
        if not wrong:
            rows.append(each)
    return rows, problems


def _unknown(column: str) -> str:
    near = difflib.get_close_matches(column, COLUMNS, n=1)
    return (
        f"unknown column; did you mean {near[0]!r}?" if near else f"unknown column; use {', '.join(COLUMNS)}"
    )


def _csv_lines(path: Path) -> Iterator[Row | Problem]:
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        _check_header(path, header)
        for cells in reader:
            if len(cells) not in (0, len(header)):
                told = f"has {len(cells)} cells, the header has {len(header)}"
                yield Problem(str(path), reader.line_num, "", told)
            elif any(cell.strip() for cell in cells):
                given = {name: cell.strip() for name, cell in zip(header, cells, strict=True) if cell.strip()}
                yield Row(str(path), reader.line_num, given)
    except csv.Error as error:
        yield Problem(str(path), reader.line_num, "", f"not CSV: {error}")


def _check_header(path: Path, header: Sequence[str]) -> None:
    """A wrong header ends the reading: each line would only repeat it."""
    wrong = [Problem(str(path), 1, name, _unknown(name)) for name in header if name not in COLUMNS]
    wrong += [Problem(str(path), 1, name, "is missing") for name in _REQUIRED if name not in header]
    wrong += [Problem(str(path), 1, name, "occurs twice") for name in COLUMNS if header.count(name) > 1]
    if wrong:
        listed = "".join(f"\n  {problem}" for problem in wrong)
        raise InputError(f"{path}: the first line must name the columns, separated by commas:{listed}")


def _json_lines(path: Path) -> Iterator[Row | Problem]:
    for each in read_objects(path):
        if isinstance(each, Record):
            if not isinstance(each.value, dict):
                yield Problem(each.file, each.line, "", "must be an object")
                continue
            given = {name: value for name, value in each.value.items() if value is not None}
            yield Row(each.file, each.line, given)
        else:
            yield each
