"""Entries compared: with each other, and as the text that a query is compared with; pure.

An entry is either a policy entry (header and spec) or a memory of one of the other methods (`text`, found by
the `query` of the task that it comes from).
"""

from __future__ import annotations

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
