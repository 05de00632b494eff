"""JSON Lines, read and written a line at a time.

A line ends at a line feed and nowhere else. Written lines hold no other character that any reader takes for
the end of a line: U+0085, U+2028 and U+2029 may stand in JSON as they are, but Python's `splitlines` and
JavaScript split there, so they are written as escapes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from policysweep.datasets.files import Record, parse
from policysweep.datasets.problems import Problem
from policysweep.errors import InputError

LONGEST_LINE = 64 * 2**20
"""Bytes. A longer line is not a record but a file that lost its line feeds."""

_BOM = b"\xef\xbb\xbf"
_ESCAPED = ((b"\xc2\x85", rb"\u0085"), (b"\xe2\x80\xa8", rb"\u2028"), (b"\xe2\x80\xa9", rb"\u2029"))


def encode_line(value: Any) -> bytes:
    """A JSON value as one line. TypeError for what JSON cannot hold, lone surrogates included."""
    line = orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
    for character, escape in _ESCAPED:
        if character in line:
            line = line.replace(character, escape)
    return line


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Number, from 1, and content of each line that is not blank, without BOM and line end.

    Raises InputError when the file cannot be read or a line is longer than LONGEST_LINE.
    """
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(LONGEST_LINE + 1):
                number += 1
                if len(line) > LONGEST_LINE:
                    raise InputError(f"{path}:{number}: longer than {LONGEST_LINE >> 20} MiB: not JSON Lines")
                if text := line.removeprefix(_BOM if number == 1 else b"").strip():
                    yield number, text
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error


def read_objects(path: Path) -> Iterator[Record | Problem]:
    """The value of each line, or what is wrong with it. Raises InputError as `read_lines` does."""
    for number, line in read_lines(path):
        try:
            yield Record(str(path), number, parse(line.decode()))
        except UnicodeDecodeError:
            yield Problem(str(path), number, "", "not UTF-8; save the file as UTF-8")
        except json.JSONDecodeError as error:
            yield Problem(str(path), number, "", f"not JSON: {error.msg} at column {error.colno}")
        except ValueError as error:
            yield Problem(str(path), number, "", f"not JSON: {error}")
