"""Reading and writing the files of a data set: UTF-8, with or without BOM, any line ends.

JSON Lines are split at line feeds only, never at U+2028 and its kind, which may stand inside strings.
A syntax error is a *problem* like any other, so that one bad line does not hide the next. A file that
cannot be read at all is an InputError.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson

from policysweep.datasets.locate import line_index, nearest_line
from policysweep.datasets.problems import FieldPath, Finding, Problem, field_name
from policysweep.errors import InputError


@dataclass(frozen=True)
class Document:
    """A JSON text with its value."""

    file: str
    text: str
    value: Any

    @cached_property
    def _index(self) -> dict[FieldPath, int]:
        return line_index(self.text)

    def line(self, path: FieldPath) -> int:
        """The line of a part of the value."""
        return nearest_line(self._index, path)

    def problem(self, found: Finding) -> Problem:
        """The finding, told with file and line."""
        return Problem(
            self.file, self.line(found.path), field_name(found.path), found.message, found.severity
        )


@dataclass(frozen=True, slots=True)
class Record:
    """One object of a list: a line of JSON Lines, an element of a JSON list, a row of a hub table.

    `document` and `at` are given for a part of a larger JSON text, which can tell the line of each field.
    """

    file: str
    line: int
    value: Any
    document: Document | None = None
    at: FieldPath = ()

    def problem(self, found: Finding) -> Problem:
        """The finding, told with file and line."""
        line = self.document.line(self.at + found.path) if self.document else self.line
        return Problem(self.file, line, field_name(found.path), found.message, found.severity)


Records = tuple[list[Record], list[Problem]]
"""What could be read, and what could not."""


def read_text(path: Path) -> str:
    """The text of a file, without BOM and with plain line feeds. Raises InputError when it cannot be read."""
    try:
        raw = path.read_bytes()
    except OSError as fault:
        raise InputError(f"cannot read {path}: {fault.strerror}") from fault
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as fault:
        line = raw.count(b"\n", 0, fault.start) + 1
        raise InputError(f"{path}:{line}: not UTF-8; save the file as UTF-8") from fault


def parse(text: str) -> Any:
    """The value of a JSON text.

    Raises ValueError: beside what JSON forbids, for a key that occurs twice and for nesting without end.
    """
    value = orjson.loads(text)
    try:
        orjson.dumps(value)
    except TypeError as fault:  # it reads deeper than it writes
        raise ValueError("nested too deeply") from fault
    json.loads(text, object_pairs_hook=_unique)
    return value


def read_document(path: Path) -> Document | Problem:
    """A file that holds one JSON text."""
    text = read_text(path)
    try:
        return Document(str(path), text, parse(text))
    except ValueError as fault:
        return _syntax(str(path), fault, 1)


def read_records(path: Path) -> Records:
    """The objects of a JSON Lines file, or of a file with one JSON list, as its first character tells."""
    text = read_text(path)
    return _from_list(path, text) if text.lstrip().startswith("[") else _from_lines(str(path), text)


def _from_lines(file: str, text: str) -> Records:
    records: list[Record] = []
    problems: list[Problem] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            records.append(Record(file, number, parse(line)))
        except ValueError as fault:
            problems.append(_syntax(file, fault, number))
    return records, problems


def _from_list(path: Path, text: str) -> Records:
    try:
        values = parse(text)
    except ValueError as fault:
        return [], [_syntax(str(path), fault, 1)]
    document = Document(str(path), text, values)
    return [Record(str(path), 0, value, document, (at,)) for at, value in enumerate(values)], []


def _syntax(file: str, fault: ValueError, first_line: int) -> Problem:
    offset = fault.lineno - 1 if isinstance(fault, json.JSONDecodeError) else 0
    where = f" at column {fault.colno}" if isinstance(fault, json.JSONDecodeError) else ""
    reason = fault.msg if isinstance(fault, json.JSONDecodeError) else str(fault)
    return Problem(file, first_line + offset, "", f"not JSON: {reason}{where}")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} occurs twice in one object")
    return found


def jsonl(values: Iterable[Any]) -> bytes:
    """Values as JSON Lines."""
    return b"".join(orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE) for value in values)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that a reader sees the old content or the new one, never a part. Raises OSError."""
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with aside.open("wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
