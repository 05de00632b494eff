"""A bank as a file of JSON Lines, one record of its export a line: written and read back without loss."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from google.protobuf import json_format

from policysweep.datasets.files import write_whole
from policysweep.datasets.problems import Problem
from policysweep.errors import InputError
from policysweep.interop.lines import encode_line, read_objects
from policysweep.v1 import policybank_pb2 as pb


def encode_records(records: Iterable[pb.BankRecord]) -> bytes:
    """The lines of a file."""
    return b"".join(
        encode_line(json_format.MessageToDict(record, preserving_proto_field_name=True)) for record in records
    )


def read_bank(path: Path) -> list[pb.BankRecord]:
    """The records of a file. Raises InputError that names the first line that is none."""
    records = []
    for found in read_objects(path):
        if isinstance(found, Problem):
            raise InputError(str(found))
        try:
            record = json_format.ParseDict(found.value, pb.BankRecord())
        except (json_format.ParseError, AttributeError, TypeError) as error:
            raise InputError(f"{path}:{found.line}: not a record of a policy bank: {error}") from error
        if record.WhichOneof("record") is None:
            raise InputError(f"{path}:{found.line}: neither revision, entry nor snapshot")
        records.append(record)
    if not records:
        raise InputError(f"{path}: holds no bank; policysweep bank export writes one")
    return records


def write_file(path: Path, content: bytes, *, force: bool) -> None:
    """Write a file whole. Raises InputError when it cannot be, or is there already and not to be replaced."""
    if path.exists() and not force:
        raise InputError(f"{path} is there already: name another file, or give --force to replace it")
    try:
        write_whole(path, content)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
