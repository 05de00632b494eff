"""The time as records keep it."""

from __future__ import annotations

from google.protobuf.timestamp_pb2 import Timestamp


def now() -> Timestamp:
    """The present moment."""
    moment = Timestamp()
    moment.GetCurrentTime()
    return moment
