"""What a dashboard is to us: rows of panels, and panels of queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Query = tuple[str, str]
"""PromQL and the legend of its series."""


@dataclass(frozen=True)
class Panel:
    """One panel. `kind`: stat (a number), bars (a bar per series), graph, stack (areas on one another).

    `limits` colour values from a number on. `alert` is the alert whose section of the guide it links to.
    """

    kind: str
    title: str
    unit: str
    about: str
    queries: Sequence[Query]
    width: int = 8
    limits: Mapping[float, str] = field(default_factory=dict)
    base: str = "green"
    alert: str = ""


@dataclass(frozen=True)
class Board:
    """One dashboard. `variables`: name to the series and the label that its values come from."""

    uid: str
    title: str
    about: str
    variables: Mapping[str, tuple[str, str]]
    rows: Mapping[str, Sequence[Panel]]


def quantiles(metric: str, matchers: str, by: str, legend: str) -> Sequence[Query]:
    """Median and 95th percentile of a histogram."""
    labels = ", ".join(filter(None, (by, "le")))
    rate = f"sum by ({labels}) (rate({metric}_bucket{{{matchers}}}[$__rate_interval]))"
    return [(f"histogram_quantile({q}, {rate})", f"{legend} p{100 * q:g}".strip()) for q in (0.5, 0.95)]


def rate(metric: str, matchers: str, by: str) -> str:
    """Increase per second, summed."""
    return f"sum by ({by}) (rate({metric}{{{matchers}}}[$__rate_interval]))"
