"""Digests of data sets: what a unit id, a manifest and stored worlds are tied to.

A digest covers content and not its spelling. Each record is serialised as JSON with sorted keys and without
space, the records are sorted, and their SHA-256 is taken. So byte order marks, line ends, the order of lines
and keys, and whether the file is JSON Lines or a JSON list make no difference, on any machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import orjson


def content_digest(values: Iterable[Any]) -> str:
    """SHA-256, hex, over JSON values in any order."""
    total = hashlib.sha256()
    for line in sorted(orjson.dumps(value, option=orjson.OPT_SORT_KEYS) for value in values):
        total.update(line)
        total.update(b"\n")
    return total.hexdigest()


def dataset_digest(scenarios_digest: str, worlds: Iterable[Any]) -> str:
    """SHA-256, hex, over scenarios and worlds."""
    return hashlib.sha256(f"{scenarios_digest} {content_digest(worlds)}".encode()).hexdigest()
