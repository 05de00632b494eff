"""Rubric files: read with clear messages, and found by name and version."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from policysweep.errors import InputError
from policysweep.v1 import judge_pb2
from services.judge.rubric import Panel, Rubric


def read_rubric(path: Path) -> Rubric:
    """The rubric in a TOML file. Raises InputError that names the file, the key and what is wrong."""
    try:
        content = path.read_bytes()
        document = tomllib.loads(content.decode("utf-8-sig"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path}: not valid TOML: {error}") from error
    if "digest" in document:
        raise InputError(f"{path}: digest: not a key of a rubric, it is computed")
    try:
        return Rubric(**document, digest=hashlib.sha256(content).hexdigest())
    except ValidationError as error:
        problems = (f"{_place(document, detail['loc'])}{_said(detail)}" for detail in error.errors())
        raise InputError(f"{path}: " + "; ".join(problems)) from None


def _said(detail: Any) -> str:
    if detail["type"] == "missing":
        return "is missing"
    if detail["type"] == "extra_forbidden":
        return "is not a key of a rubric"
    if detail["type"] == "value_error":
        return str(detail["ctx"]["error"])
    return f"{detail['msg']} (got {detail['input']!r})"


def _place(document: Any, loc: Sequence[str | int]) -> str:
    """For example "panels[0] (dialogue).metrics[3] (verbosity).anchors: "; "" for the whole file."""
    place, at = "", document
    for part in loc:
        if isinstance(part, str):
            place += f".{part}" if place else part
            at = at.get(part) if isinstance(at, dict) else None
        else:
            at = at[part] if isinstance(at, list) and part < len(at) else None
            named = f" ({at['key']})" if isinstance(at, dict) and "key" in at else ""
            place += f"[{part}]{named}"
    return f"{place}: " if place else ""


class RubricLibrary:
    """The rubrics that a judge serves, by name and version."""

    def __init__(self, rubrics: Iterable[Rubric]) -> None:
        """Raises InputError when two have the same name and version."""
        self._by_ref: dict[tuple[str, int], Rubric] = {}
        for rubric in sorted(rubrics, key=lambda each: (each.name, each.version)):
            if self._by_ref.setdefault((rubric.name, rubric.version), rubric) is not rubric:
                raise InputError(f"two rubric files are {rubric.ref}: raise the version in one of them")

    @classmethod
    def read(cls, folder: Path) -> RubricLibrary:
        """All *.toml files of a folder. Raises InputError when there is none, or for a file that is wrong."""
        paths = sorted(folder.glob("*.toml"))
        if not paths:
            raise InputError(f"{folder}: holds no rubric (*.toml)")
        return cls(read_rubric(path) for path in paths)

    def __iter__(self) -> Iterator[Rubric]:
        return iter(self._by_ref.values())

    def find(self, ref: judge_pb2.RubricRef) -> Rubric:
        """Raises InputError that names the known ones."""
        rubric = self._by_ref.get((ref.name, ref.version))
        if rubric is None:
            known = ", ".join(each.ref for each in self._by_ref.values())
            raise InputError(f"unknown rubric {ref.name}@{ref.version}; this judge serves {known}")
        return rubric

    @staticmethod
    def panels(rubric: Rubric, keys: Sequence[str]) -> Sequence[Panel]:
        """The panels with these keys in the rubric's order; all without keys. Raises InputError."""
        by_key = {panel.key: panel for panel in rubric.panels}
        for key in keys:
            if key not in by_key:
                known = ", ".join(by_key)
                raise InputError(f"unknown panel {key!r}; the panels of {rubric.ref} are {known}")
        return [panel for panel in rubric.panels if not keys or panel.key in keys]
