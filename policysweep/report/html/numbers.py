"""Figures of report.json as they stand in a table cell: the value, then its interval in secondary text.

A figure that is not given shows why instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from policysweep.report.html.markup import Child, Markup, el
from policysweep.report.html.parts import dim
from policysweep.report.judging_sentences import signed
from policysweep.report.sentences import bounds, count, decimal, interval, percent

Json = Mapping[str, Any]


def why(reason: str | None) -> Markup:
    """Stands for a figure that is not given."""
    return el("span", reason or "none", class_="dim why")


def sizes(counts: Mapping[str, int]) -> str:
    """The n of each of several, in words; one number when all are the same."""
    if len(set(counts.values())) == 1:
        return f"n = {count(next(iter(counts.values())))} each"
    return ", ".join(f"{name} n = {count(number)}" for name, number in counts.items())


def share(value: float | None, limits: list[float] | None, reason: str | None = None) -> Child:
    """A share in percent."""
    if value is None:
        return why(reason)
    return [percent(value), " ", dim(interval(limits))]


def estimate(found: Json) -> Child:
    """A coefficient like kappa or alpha."""
    if found["value"] is None:
        return why(found["reason"])
    return [decimal(found["value"]), " ", dim(bounds(found["interval"]))]


def grade(found: Json) -> Child:
    """A mean score, tinted by its place on the scale."""
    value = found["mean"]
    if value is None:
        return why(found["reason"])
    return [el("span", decimal(value), class_=f"grade s{round(value)}"), " ", dim(bounds(found["interval"]))]


def difference(found: Json | None, *, certain: bool = False) -> Child:
    """A mean that may be negative, with its n; bold when it is `certain`."""
    if found is None or found["mean"] is None:
        return why(found["reason"] if found else None)
    told = signed(found["mean"])
    shown: Child = el("strong", told) if certain else told
    return [shown, " ", dim(f"{bounds(found['interval'])} n {count(found['n'])}")]
