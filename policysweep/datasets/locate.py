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
    _walk(_tokens(text), (), index)
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


def _walk(tokens: Iterator[tuple[str, int]], path: FieldPath, index: dict[FieldPath, int]) -> str:
    """Index one value; returns its first token, so that a caller can tell an empty container's end."""
    first, line = next(tokens)
    index.setdefault(path, line)
    if first == "{":
        _walk_object(tokens, path, index)
    elif first == "[":
        _walk_array(tokens, path, index)
    return first


def _walk_object(tokens: Iterator[tuple[str, int]], path: FieldPath, index: dict[FieldPath, int]) -> None:
    for key, line in tokens:
        if key == "}":
            return
        if key == ",":
            continue
        member = (*path, json.loads(key))
        index[member] = line
        next(tokens)  # the colon
        _walk(tokens, member, index)


def _walk_array(tokens: Iterator[tuple[str, int]], path: FieldPath, index: dict[FieldPath, int]) -> None:
    position = 0
    while True:
        element = (*path, position)
        if _walk(tokens, element, index) == "]":
            del index[element]
            return
        position += 1
        if next(tokens)[0] == "]":
            return
