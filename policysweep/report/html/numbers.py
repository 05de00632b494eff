"""Figures of report.json as they stand in a table cell: the value, then its interval in secondary text.

A figure that is not given shows why instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from policysweep.report.html.markup import Child, el
from policysweep.report.html.parts import dim
from policysweep.report.sentences import count, decimal, interval, percent

Json = Mapping[str, Any]


def share(value: float | None, bounds_: list[float] | None, reason: str | None = None) -> Child:
    """A share in percent."""
    if value is None:
        return dim(reason or "none")
    return [percent(value), " ", dim(interval(bounds_))]


def estimate(found: Json) -> Child:
    """A coefficient like kappa or alpha."""
    if found["value"] is None:
        return dim(found["reason"] or "none")
    return [decimal(found["value"]), " ", dim(bounds(found["interval"]))]


def grade(found: Json) -> Child:
    """A mean score, tinted by its place on the scale."""
    value = found["mean"]
    if value is None:
        return dim(found["reason"] or "none")
    return [el("span", decimal(value), class_=f"grade s{round(value)}"), " ", dim(bounds(found["interval"]))]


def difference(found: Json | None, *, certain: bool = False) -> Child:
    """A mean that may be negative, with its n; bold when it is `certain`."""
    if found is None or found["mean"] is None:
        return dim((found and found["reason"]) or "none")
    told = f"{'+' if found['mean'] > 0 else ''}{decimal(found['mean'])}"
    shown: Child = el("strong", told) if certain else told
    return [shown, " ", dim(f"{bounds(found['interval'])} n {count(found['n'])}")]


def bounds(interval_: list[float] | None) -> str:
    """An interval of plain numbers, as in "[2.73, 2.96]"; "" when there is none."""
    return f"[{decimal(interval_[0])}, {decimal(interval_[1])}]" if interval_ else ""
