"""Copy-on-write databases: an episode pays for the records that it touches, not for the database.

A tau2-bench database is a pydantic model whose fields are tables, dicts from id to record. A copy shares all
records with the original, and a record that is looked up by its id is copied first: tools change records in
place, and reach what they change by its id. Iterating over a table gives the shared records, which tools only
read; a test replays every gold action and finds the originals unchanged.

The hash of a database is SHA-256 over its JSON text. The text of the original is kept, one piece a record, so
that the hash of a copy costs the records that it does not share.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel

Database = TypeVar("Database", bound=BaseModel)

# How tau2-bench writes a database to compute its hash: json.dumps(..., sort_keys=True, default=str).
_ENCODER = json.JSONEncoder(sort_keys=True, default=str)


class CopyOnWriteTable(dict[str, Any]):
    """A table that shares records with another until they are looked up."""

    def __init__(self, original: Mapping[str, Any]) -> None:
        super().__init__(original)
        self._shared = set(original)

    def __getitem__(self, key: str) -> Any:
        record = super().__getitem__(key)
        if key in self._shared:
            self[key] = record = copy.deepcopy(record)
        return record

    def __setitem__(self, key: str, record: Any) -> None:
        self._shared.discard(key)
        super().__setitem__(key, record)

    def get(self, key: str, default: Any = None) -> Any:
        """The record under `key`, copied if it was shared."""
        if key not in self:
            return default
        return self[key]

    def touched(self) -> set[str]:
        """The ids of the records that are no longer shared: all others are unchanged."""
        return self.keys() - self._shared


def copy_on_write(database: Database) -> Database:
    """A copy whose tables share their records with `database`. What is no table is copied at once."""
    fields: dict[str, Any] = {}
    for name in type(database).model_fields:
        value = getattr(database, name)
        fields[name] = CopyOnWriteTable(value) if isinstance(value, dict) else copy.deepcopy(value)
    return type(database).model_construct(**fields)


class DatabaseHash:
    """Hashes copies of one database, as tau2-bench hashes them."""

    def __init__(self, original: BaseModel) -> None:
        self._entries = {
            name: {key: _entry(key, record) for key, record in table.items()}
            for name in type(original).model_fields
            if isinstance(table := getattr(original, name), dict)
        }
        self._tables = {name: _table(entries) for name, entries in self._entries.items()}
        self._names = sorted(type(original).model_fields)
        # The hash of the original up to each table: that of a copy goes on where the copy first differs.
        self._states = list(self._leading_states())

    def of(self, database: BaseModel) -> str:
        """SHA-256, hex, of a copy that `copy_on_write` made of the original."""
        texts = [self._field(name, getattr(database, name)) for name in self._names]
        same = 0
        while same < len(self._states) - 1 and texts[same] is self._tables.get(self._names[same]):
            same += 1
        digest = self._states[same].copy()
        for at in range(same, len(texts)):
            self._add(digest, at, texts[at])
        digest.update(b"}")
        return digest.hexdigest()

    def _leading_states(self) -> Iterator[hashlib._Hash]:
        digest = hashlib.sha256(b"{")
        yield digest.copy()
        for at, name in enumerate(self._names):
            if name not in self._tables:
                return
            self._add(digest, at, self._tables[name])
            yield digest.copy()

    def _add(self, digest: hashlib._Hash, at: int, text: bytes) -> None:
        digest.update(b"%b%b: " % (b", " if at else b"", _text(self._names[at])))
        digest.update(text)

    def _field(self, name: str, value: Any) -> bytes:
        if not isinstance(value, CopyOnWriteTable):
            return _text(value)
        entries = self._entries[name]
        touched = {key: _entry(key, value[key]) for key in value.touched()}
        if len(value) == len(entries) and all(entries.get(key) == touched[key] for key in touched):
            return self._tables[name]
        return _table({key: entries[key] for key in value if key not in touched} | touched)


def _table(entries: Mapping[str, bytes]) -> bytes:
    return b"{" + b", ".join([entries[key] for key in sorted(entries)]) + b"}"


def _entry(key: str, record: Any) -> bytes:
    return b"%b: %b" % (_text(key), _text(record))


def _text(value: Any) -> bytes:
    return _ENCODER.encode(_plain(value)).encode()


def _plain(value: Any) -> Any:
    """Without models. A field that holds another type than declared is written as it is."""
    if isinstance(value, BaseModel):
        return value.model_dump(warnings=False)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
