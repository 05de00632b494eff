"""Human labels of a run: imported once, kept beside the records, read back for calibration.

    label file -> rows -> labels -> labels/<sha-256 of the content>.jsonl

One file an import, in protobuf JSON Lines of `HumanLabel`, sorted, without repetitions. So the same labels
always have the same name, and importing them again changes nothing. A label that contradicts one that stands
is refused: who wants to correct one deletes its file and imports again.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import orjson
from google.protobuf import json_format

from policysweep.datasets.problems import Problem
from policysweep.errors import InputError, StoreError
from policysweep.interop.contents import read_contents
from policysweep.interop.label_files import Row, read_rows
from policysweep.interop.label_reader import LabelReader, Metrics
from policysweep.sweep.ledger import RunLedger
from policysweep.sweep.records import DamagedRecord
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import run_pb2

LABELS = "labels"
"""The folder of a run that holds them."""

_FILE = re.compile(r"([0-9a-f]{64})\.jsonl")
_SPEAKERS = (ep.ROLE_AGENT, ep.ROLE_CUSTOMER)
_NO_MESSAGE = -1

Subject = tuple[str, str, int, str]
"""What a label is about: unit, metric, message and annotator."""


@dataclass(frozen=True, slots=True)
class LabelImport:
    """What an import did."""

    labels: int
    """Labels in the file, repetitions apart."""
    name: str
    """Where they are, below the run."""
    new: bool
    """Whether they were not there before."""


async def import_labels(ledger: RunLedger, path: Path, metrics: Metrics | None) -> LabelImport:
    """Check a label file against a run and keep its labels there.

    `metrics` are those of the run's rubric, None when it knows none. InputError that lists everything that is
    wrong, with file, line and column; nothing is kept then.
    """
    rows, problems = read_rows(path)
    contents = await read_contents(ledger)
    reader = LabelReader(contents.units, metrics)
    found = [(row, label) for row in rows if (label := reader.label(row)) is not None]
    problems += reader.problems
    problems += await _message_problems(ledger, found)
    problems += await _contradictions(ledger, found)
    if problems:
        listed = "".join(f"\n  {problem}" for problem in sorted(problems))
        raise InputError(f"{path}: nothing was imported, because of {len(problems)} errors:{listed}")
    if not found:
        raise InputError(f"{path}: no label in it")
    content = _encode(label for _, label in found)
    name = f"{hashlib.sha256(content).hexdigest()}.jsonl"
    folder = ledger.folder(LABELS)
    new = not await folder.exists(name)
    await folder.create(name, content)
    return LabelImport(content.count(b"\n"), f"{LABELS}/{name}", new)


async def read_labels(ledger: RunLedger) -> list[run_pb2.HumanLabel]:
    """All labels of a run, sorted by unit, metric, message and annotator, repetitions apart.

    Raises StoreError for a file that was damaged and InputError for labels that contradict each other.
    """
    standing = await _standing(ledger)
    return [standing.labels[subject] for subject in sorted(standing.labels)]


@dataclass(slots=True)
class _Standing:
    """Labels of a run by what they are about, with their file."""

    labels: dict[Subject, run_pb2.HumanLabel] = field(default_factory=dict)
    files: dict[Subject, str] = field(default_factory=dict)

    def add(self, label: run_pb2.HumanLabel, name: str, where: str) -> None:
        """Take in a label of a file in a folder. InputError when it contradicts one before."""
        subject = _subject(label)
        first = self.labels.setdefault(subject, label)
        self.files.setdefault(subject, name)
        if first != label:
            raise InputError(
                f"{where}: {self.files[subject]} and {name} contradict each other on unit {label.unit_id}, "
                f"{label.metric}, by {label.annotator}: delete one of the two files"
            )


async def _standing(ledger: RunLedger) -> _Standing:
    folder, standing = ledger.folder(LABELS), _Standing()
    names = sorted([name async for name in folder.list_names() if _FILE.fullmatch(name)])
    async with contextlib.aclosing(folder.read_many(names)) as files:
        async for name, content in files:
            for label in _decode(f"{folder.url}/{name}", name, content):
                standing.add(label, name, folder.url)
    return standing


def _subject(label: run_pb2.HumanLabel) -> Subject:
    message = label.message_index if label.HasField("message_index") else _NO_MESSAGE
    return label.unit_id, label.metric, message, label.annotator


def _encode(labels: Iterable[run_pb2.HumanLabel]) -> bytes:
    by_subject = {_subject(label): label for label in labels}
    lines = (
        json_format.MessageToDict(by_subject[subject], preserving_proto_field_name=True)
        for subject in sorted(by_subject)
    )
    return b"".join(
        orjson.dumps(line, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE) for line in lines
    )


def _decode(where: str, name: str, content: bytes) -> list[run_pb2.HumanLabel]:
    if f"{hashlib.sha256(content).hexdigest()}.jsonl" != name:
        raise StoreError(
            f"{where}: its content is not what was imported; delete the file and import it again"
        )
    return [json_format.Parse(line, run_pb2.HumanLabel()) for line in content.split(b"\n") if line]


async def _message_problems(
    ledger: RunLedger, found: Sequence[tuple[Row, run_pb2.HumanLabel]]
) -> list[Problem]:
    """Labels of a message that the conversation does not have, or that neither side wrote."""
    turns = [(row, label) for row, label in found if label.HasField("message_index")]
    roles: dict[str, Sequence[ep.Role.ValueType]] = {}
    scan = ledger.scan_records(sorted({label.unit_id for _, label in turns}))
    async with contextlib.aclosing(scan) as records:
        async for record in records:
            if isinstance(record, DamagedRecord):
                raise StoreError(f"the record of unit {record.unit_id} is damaged: see `policysweep verify`")
            roles[record.unit.unit_id] = [message.role for message in record.episode.messages]
    problems = []
    for row, label in turns:
        messages = roles[label.unit_id]
        if label.message_index >= len(messages):
            told = f"is {label.message_index}, the conversation has {len(messages)} messages, from 0"
            problems.append(row.problem("message_index", told))
        elif messages[label.message_index] not in _SPEAKERS:
            told = f"is {label.message_index}, a tool's answer: label messages of agent or customer"
            problems.append(row.problem("message_index", told))
    return problems


async def _contradictions(
    ledger: RunLedger, found: Sequence[tuple[Row, run_pb2.HumanLabel]]
) -> list[Problem]:
    """Labels of one annotator on the same thing that differ, in the file or from what stands."""
    standing = await _standing(ledger)
    seen: dict[Subject, tuple[str, run_pb2.HumanLabel]] = {
        subject: (f"in {LABELS}/{standing.files[subject]}, which stands", label)
        for subject, label in standing.labels.items()
    }
    problems = []
    for row, label in found:
        place, first = seen.setdefault(_subject(label), (f"in line {row.line}", label))
        if first != label:
            told = f"{label.annotator} said {_told(first)} of the same {place}"
            problems.append(row.problem("value", told))
    return problems


def _told(label: run_pb2.HumanLabel) -> str:
    if label.outcome:
        return ep.Outcome.Name(label.outcome).removeprefix("OUTCOME_")
    return f"{label.value:g}"


def count_labels(labels: Iterable[run_pb2.HumanLabel]) -> Mapping[tuple[str, str], int]:
    """Labels by metric and annotator, sorted."""
    counts: dict[tuple[str, str], int] = {}
    for label in labels:
        key = label.metric, label.annotator
        counts[key] = counts.get(key, 0) + 1
    return dict(sorted(counts.items()))
