"""What entries and revisions of a policy bank say, as text for a model or a person; pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping

from google.protobuf.message import Message

from policysweep.v1 import policybank_pb2 as pb

SPEC_FIELDS = ("trigger", "preconditions", "eligibility", "action", "key_insight")
"""The fields of a spec in the order of reading."""

_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")
_LABELS = {field: field.replace("_", " ").upper() for field in SPEC_FIELDS}


def entry_text(entry: pb.Entry) -> str:
    """The entry as a model reads it: a memory's own text, or header and spec. Empty sections are left out."""
    if entry.text:
        return entry.text
    lines = [entry.header] if entry.header else []
    lines += [
        f"{_LABELS[field]}: {value}" for field in SPEC_FIELDS if (value := getattr(entry.spec, field).strip())
    ]
    if entry.tool_names:
        lines.append(f"TOOLS: {', '.join(entry.tool_names)}")
    return "\n".join(lines)


def entry_diff(before: pb.Entry | None, after: pb.Entry | None) -> str:
    """Unified diff of an entry's text; "" when it says the same. None stands for no entry."""
    old, new = (entry_text(entry).splitlines() if entry is not None else [] for entry in (before, after))
    return "\n".join(difflib.unified_diff(old, new, _label(before), _label(after), lineterm="", n=3))


def _label(entry: pb.Entry | None) -> str:
    # Capability ids may hold line breaks, so the label names the revision alone.
    return "(none)" if entry is None else f"revision {entry.revision}"


def bank_diff(old: Mapping[str, pb.Entry], new: Mapping[str, pb.Entry]) -> str:
    """Unified diffs of all entries that differ between two states of a bank, sorted by capability id."""
    return "\n".join(_bank_diff(old, new))


def _bank_diff(old: Mapping[str, pb.Entry], new: Mapping[str, pb.Entry]) -> Iterator[str]:
    for capability_id in sorted(old.keys() | new.keys()):
        before, after = old.get(capability_id), new.get(capability_id)
        if before != after and (diff := entry_diff(before, after)):
            yield diff


def word(message: Message, field: str) -> str:
    """The value of an enum field in words: "policy gap" for FAILURE_TYPE_POLICY_GAP, "" for unspecified."""
    enum, value = message.DESCRIPTOR.fields_by_name[field].enum_type, getattr(message, field)
    assert enum is not None
    if not value:
        return ""
    if value not in enum.values_by_number:  # a newer service knows it
        return f"number {value}"
    prefix = f"{_CAPITAL.sub('_', enum.name).upper()}_"
    return enum.values_by_number[value].name.removeprefix(prefix).replace("_", " ").lower()


_TYPES = {pb.FAILURE_TYPE_POLICY_VIOLATION: "type I: ", pb.FAILURE_TYPE_POLICY_GAP: "type II: "}


def failure_text(revision: pb.Revision) -> str:
    """What the curator saw go wrong, "type II: policy gap, ambiguous scope"; "" for nothing."""
    seen = word(revision, "failure_type")
    gap = word(revision, "gap_class")
    return _TYPES.get(revision.failure_type, "") + ", ".join(part for part in (seen, gap) if part)


def source_text(source: pb.Provenance) -> str:
    """Which feedback on which episode, "task 39, episode e, request r"."""
    parts = {"task": source.task_id, "episode": source.episode_id, "request": source.request_id}
    return ", ".join(f"{label} {value}" for label, value in parts.items() if value)


def evidence_text(revision: pb.Revision) -> str:
    """Which feedback a revision rests on, "task 39, episode e, request r, reward 0"; "" for none."""
    reward = f"reward {revision.reward:g}" if revision.HasField("reward") else ""
    return ", ".join(part for part in (source_text(revision.provenance), reward) if part)


def when_text(revision: pb.Revision) -> str:
    """When a revision was written, "2026-01-02 03:04:05 UTC"."""
    return f"{revision.created_at.ToDatetime():%Y-%m-%d %H:%M:%S} UTC"
