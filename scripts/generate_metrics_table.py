"""Writes the table of docs/metrics.md from the metrics that the code declares; with --check, checks it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from prometheus_client import Counter, Gauge, Histogram, Metric

from policysweep import telemetry
from policysweep.sweep.metrics import SWEEP_METRICS

FILE = Path(__file__).parents[1] / "docs" / "metrics.md"
_BEGIN, _END = "<!-- table: make dashboards -->\n", "<!-- end of table -->\n"

SERVED_BY = {
    "policysweep_build": "services, drivers",
    "policysweep_grpc": "simulator, agent, judge, policy bank",
    "policysweep_model": "simulator, agent, judge, policy bank",
    "policysweep_episode": "simulator",
    "policysweep_judge": "judge",
    "policysweep_bank": "policy bank",
    "policysweep_tls": "services, drivers",
    "policysweep_unit": "driver",
    "policysweep_attempt": "driver",
    "policysweep_backoff": "driver",
    "policysweep_oldest": "driver",
    "policysweep_failing": "driver",
}
"""Who has a metric, by the beginning of its name."""


def declared() -> Iterator[tuple[Metric, tuple[str, ...]]]:
    """All metrics of ours with their labels."""
    for found in SWEEP_METRICS.describe():
        # The library has no other way to ask for the names of labels.
        yield found, tuple(found._labelnames)  # type: ignore[attr-defined]
    for metric in vars(telemetry).values():
        if isinstance(metric, Counter | Gauge | Histogram):
            (found,) = metric.describe()
            yield found, tuple(metric._labelnames)


def table() -> str:
    """The table in Markdown."""
    rows = ["| metric | type | labels | of | what it says |", "|---|---|---|---|---|"]
    for metric, labels in declared():
        name = f"{metric.name}_total" if metric.type == "counter" else metric.name
        (owner,) = (who for prefix, who in SERVED_BY.items() if name.startswith(prefix))
        named = ", ".join(f"`{label}`" for label in labels)
        rows.append(f"| `{name}` | {metric.type} | {named} | {owner} | {metric.documentation} |")
    return "\n".join(rows) + "\n"


def current(text: str) -> str:
    """The page with the table of now."""
    before, _, rest = text.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}\n{table()}\n{_END}{after}"


def main() -> int:
    """Write the page, or check it."""
    text = FILE.read_text("utf-8")
    if "--check" not in sys.argv:
        FILE.write_text(current(text), encoding="utf-8")
    elif text != current(text):
        sys.stderr.write("the table of docs/metrics.md is not current: run `make dashboards`\n")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
