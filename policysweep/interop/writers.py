"""The formats of an export, each a writer that takes one unit at a time.

A writer opens its files in the folder and leaves it to the export's stack to close them. Names of agents,
judges and rubrics become names of folders, so they are held against the rule for such names first: what lies
in a store can be written by others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, Protocol

from google.protobuf import json_format
from google.protobuf.message import Message

from policysweep.errors import InputError
from policysweep.interop.contents import RunContents
from policysweep.interop.dripr import conversation
from policysweep.interop.dripr.evaluation import evaluation_record
from policysweep.interop.lines import encode_line
from policysweep.sweep.spec_fields import agent_name
from policysweep.v1 import run_pb2


class Writer(Protocol):
    """Writes a run, one unit at a time."""

    def add(self, record: run_pb2.UnitRecord, verdicts: Sequence[run_pb2.VerdictRecord]) -> None:
        """Write a unit with the verdicts on it."""


class _Files:
    """Line files that are opened when their first line is written."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self._open: dict[str, BinaryIO] = {}

    def write(self, name: str, line: bytes) -> None:
        file = self._open.get(name)
        if file is None:
            path = self._folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            file = self._open[name] = self._stack.enter_context(path.open("wb"))
        file.write(line)


class JsonLines:
    """`units.jsonl` and `verdicts.jsonl`: the messages of the contract as protobuf JSON, one a line."""

    def __init__(self, folder: Path, contents: RunContents, stack: ExitStack) -> None:
        self._files = _Files(folder, stack)
        self._files.write("units.jsonl", b"")

    def add(self, record: run_pb2.UnitRecord, verdicts: Sequence[run_pb2.VerdictRecord]) -> None:
        """Write a unit with the verdicts on it."""
        self._files.write("units.jsonl", _line(record))
        for verdict in verdicts:
            self._files.write("verdicts.jsonl", _line(verdict))


def _line(message: Message) -> bytes:
    return encode_line(json_format.MessageToDict(message, preserving_proto_field_name=True))


class Dripr:
    """The public code's files: per agent its conversations, and per judge and rubric their evaluations."""

    def __init__(self, folder: Path, contents: RunContents, stack: ExitStack) -> None:
        self._files = _Files(folder, stack)
        self._contents = contents
        for agent in contents.manifest.agents:
            self._files.write(f"{_part(agent.name, 'agent')}/conversations.jsonl", b"")

    def add(self, record: run_pb2.UnitRecord, verdicts: Sequence[run_pb2.VerdictRecord]) -> None:
        """Write a unit with the verdicts on it."""
        unit = record.unit
        folder = _part(unit.agent, "agent")
        row = self._contents.rows[unit.unit_id]
        written = conversation.write(record, self._contents.scenarios[unit.scenario_id], row)
        self._files.write(f"{folder}/conversations.jsonl", encode_line(written))
        by_judge: dict[tuple[str, str], list[run_pb2.VerdictRecord]] = {}
        for verdict in verdicts:
            rubric = f"{_part(verdict.rubric.name, 'rubric')}-{verdict.rubric.version}"
            by_judge.setdefault((_part(verdict.judge, "judge"), rubric), []).append(verdict)
        for (judge, rubric), group in by_judge.items():
            evaluation = evaluation_record(written["scenario_id"], judge, group)
            self._files.write(
                f"{folder}/evaluations/{judge}/{rubric}/evaluations.jsonl", encode_line(evaluation)
            )


def _part(name: str, what: str) -> str:
    """A name that may be one part of a path; InputError otherwise."""
    try:
        return agent_name(name)
    except ValueError as error:
        raise InputError(f"the run has {what} {name!r}, which cannot name a folder: {error}") from error


MakeWriter = Callable[[Path, RunContents, ExitStack], Writer]
"""A folder, what is written into it, and the stack that closes the files."""
