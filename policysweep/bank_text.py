"""What an entry of a policy bank says, as text for a model or a person; pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping

from policysweep.v1 import policybank_pb2 as pb

SPEC_FIELDS = ("trigger", "preconditions", "eligibility", "action", "key_insight")
"""The fields of a spec in the order of reading."""

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
