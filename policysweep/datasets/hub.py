"""Reads a data set from the Hugging Face hub, through the optional extra `hub`."""

from __future__ import annotations

import importlib
import os
import re
from pathlib import Path
from typing import Any

import orjson

from policysweep.datasets.files import Record
from policysweep.errors import InputError

PREFIX = "hub:"
_NAME = re.compile(r"(?P<name>[\w-][\w.-]*/[\w-][\w.-]*)(?:@(?P<revision>[\w][\w./-]*))?")


def parse_name(source: str) -> tuple[str, str | None]:
    """Name and revision from `hub:OWNER/NAME` or `hub:OWNER/NAME@REVISION`. Raises InputError."""
    parts = _NAME.fullmatch(source.removeprefix(PREFIX))
    if parts is None:
        raise InputError(f"{source!r} is no hub source; write hub:OWNER/NAME or hub:OWNER/NAME@REVISION")
    return parts["name"], parts["revision"]


def worlds_folder(source: str) -> Path:
    """Where worlds made for a hub data set are kept, as it has no file of ours to keep them beside."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "policysweep" / f"{parse_name(source)[0].replace('/', '--')}.worlds"


def read_table(source: str, config: str) -> list[Record]:
    """The rows of one of the data set's configs: scenarios, tasks or personas.

    Raises InputError when the extra is not installed, or when the hub does not give the table.
    """
    name, revision = parse_name(source)
    rows = _load(name, config, revision)
    file = f"{source}/{config}"
    return [Record(file, number, _plain(row, file, number)) for number, row in enumerate(rows, start=1)]


def _plain(row: Any, file: str, number: int) -> Any:
    """The row as JSON, like one that was read from a file."""
    try:
        return orjson.loads(orjson.dumps(row))
    except TypeError as fault:
        raise InputError(f"{file}:{number}: is not JSON: {fault}") from fault


def _load(name: str, config: str, revision: str | None) -> Any:
    try:
        hub = importlib.import_module("datasets")
    except ImportError as fault:
        told = f"hub:{name} needs the optional extra 'hub': pip install 'policysweep[hub]'"
        raise InputError(told) from fault
    try:
        return hub.load_dataset(name, config, split="train", revision=revision)
    except (OSError, ValueError, RuntimeError) as fault:
        # What the package raises for an unknown name, config or revision, and for a hub out of reach.
        raise InputError(f"the hub does not give {config!r} of {name}: {fault}") from fault
