"""What an entry of a policy bank says, as text for a model or a person; pure."""

from __future__ import annotations

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
