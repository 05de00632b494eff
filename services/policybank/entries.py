"""Entries compared: with each other, and as the text that a query is compared with; pure.

An entry is either a policy entry (header and spec) or a memory of one of the other methods (`text`, found by
the `query` of the task that it comes from).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping

from policysweep.bank_text import entry_text
from policysweep.v1 import policybank_pb2 as pb


def vector_text(entry: pb.Entry) -> str:
    """What a query is compared with: the task query behind a memory, or what a policy entry is about."""
    if entry.query:
        return entry.query
    return "\n".join(part for part in (entry.header, entry.spec.trigger, entry.spec.key_insight) if part)


def same_content(first: pb.Entry, second: pb.Entry) -> bool:
    """Whether two entries say the same, wherever they come from."""
    return _content(first) == _content(second)


def _content(entry: pb.Entry) -> pb.Entry:
    content = pb.Entry()
    content.CopyFrom(entry)
    content.ClearField("provenance")
    content.ClearField("revision")
    return content


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
