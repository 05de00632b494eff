"""Deadlines shrink as they travel: the innermost call gives up first, and its error can still be told."""

from __future__ import annotations

from typing import Any

import grpc

_MARGIN_SHARE = 0.05
_MARGIN_SECONDS = 1.0


def budget(context: grpc.aio.ServicerContext[Any, Any], cap: float = float("inf")) -> float:
    """Seconds that a call made on behalf of this one may take: what is left, less a margin, at most `cap`."""
    left: float | None = context.time_remaining()
    return cap if left is None else min(cap, shrink(left))


def shrink(left: float) -> float:
    """`left` seconds less a margin of 5%, at most one second; never negative."""
    return max(0.0, left - min(_MARGIN_SECONDS, left * _MARGIN_SHARE))
