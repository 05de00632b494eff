"""What the points of the revisions collection hold: a record of a history, or a snapshot."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from google.protobuf.message import DecodeError
from qdrant_client import models

from policysweep.v1 import policybank_pb2 as pb


def condition(field: str, value: str | int) -> models.FieldCondition:
    """The condition that a field of the payload has a value."""
    return models.FieldCondition(key=field, match=models.MatchValue(value=value))


def record_payload(bank_id: str, revisions: Sequence[pb.Revision]) -> dict[str, Any]:
    """Revisions that are written in one piece. `what` is for people who look at the collection."""
    return {
        "kind": "record",
        "bank_id": bank_id,
        "number": revisions[0].number,
        "what": [pb.RevisionKind.Name(revision.kind) for revision in revisions],
        "revisions": [base64.b64encode(revision.SerializeToString()).decode() for revision in revisions],
    }


def revisions_of(payload: Mapping[str, Any]) -> list[pb.Revision]:
    """The revisions of a record. Raises ValueError when it is damaged."""
    try:
        return [pb.Revision.FromString(base64.b64decode(each)) for each in payload["revisions"]]
    except DecodeError as error:
        raise ValueError(f"record {payload['number']} of bank {payload['bank_id']!r} is damaged") from error


def snapshot_payload(bank_id: str, snapshot: pb.Snapshot) -> dict[str, Any]:
    """A name of a revision."""
    return {
        "kind": "snapshot",
        "bank_id": bank_id,
        "name": snapshot.name,
        "number": snapshot.revision,
    }


def snapshot_of(payload: Mapping[str, Any]) -> pb.Snapshot:
    """The snapshot of a payload."""
    return pb.Snapshot(name=payload["name"], revision=payload["number"])
