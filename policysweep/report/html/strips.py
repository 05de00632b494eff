"""Small bars of outcomes for table cells, drawn without a script, so that they are there on paper as well."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from policysweep.report.html.markup import Markup, el
from policysweep.report.outcomes import DISPLAY

_WIDTH, _HEIGHT = 160, 8


def strips(outcomes: Mapping[str, Counter[str]]) -> Markup:
    """One bar for each name: the composition of its outcomes, in reading order."""
    return el("div", [_strip(name, counts) for name, counts in outcomes.items()], class_="strips")


def _strip(name: str, counts: Counter[str]) -> Markup:
    total = counts.total()
    told = ", ".join(f"{counts[key]} {shown}" for key, shown in DISPLAY.items() if counts[key]) or "none"
    parts, at = [], 0.0
    for key in DISPLAY:
        width = _WIDTH * counts[key] / total if total else 0.0
        if width:
            parts.append(
                el("rect", x=round(at, 2), y=0, width=round(width, 2), height=_HEIGHT, class_=f"o-{key}")
            )
        at += width
    bar = el(
        "svg",
        el("title", f"{name}: {told}"),
        parts,
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        width=_WIDTH,
        height=_HEIGHT,
        role="img",
        preserveAspectRatio="none",
    )
    return el("div", el("span", name), bar)
