"""Where a part of a JSON text stands: from a path of keys and positions to a line number.

The parsers that are fast do not keep line numbers, so the text is walked once more, and only when there is
something to report. The text must be valid JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from policysweep.datasets.problems import FieldPath

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


def line_index(text: str) -> dict[FieldPath, int]:
    """The line, from 1, of every member and element of a JSON text; a member stands where its key does."""
    index: dict[FieldPath, int] = {}
    path: list[str | int | None] = []  # where we are in each open container; None before a key
    for token, line in _tokens(text):
        if token in "}]":
            path.pop()
        elif token == ",":
            path[-1] = path[-1] + 1 if isinstance(path[-1], int) else None
        elif token != ":":
            if path and path[-1] is None:
                path[-1] = json.loads(token)
            index.setdefault(tuple(step for step in path if step is not None), line)
            if token in "{[":
                path.append(None if token == "{" else 0)
    return index


def nearest_line(index: dict[FieldPath, int], path: FieldPath) -> int:
    """The line of `path`, or of the innermost part around it that exists: a missing key has no line."""
    while path not in index:
        path = path[:-1]
    return index[path]


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    line, seen = 1, 0
    for match in _TOKEN.finditer(text):
        line += text.count("\n", seen, match.start())
        seen = match.start()
        yield match.group(), line
