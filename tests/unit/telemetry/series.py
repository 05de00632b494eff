"""The series that there are, and those that a query names."""

from __future__ import annotations

import functools
import re

import prometheus_client

import policysweep.sweep.metrics
import policysweep.telemetry  # noqa: F401 - declares the others
from policysweep.models.rehearsal.metrics import Metrics

from .queries import rules

OF_PROMETHEUS = {"up", "ALERTS"}
"""What Prometheus itself adds."""

_SERIES = re.compile(
    r"(?<![\w:$\"])((?:[a-z]+:)?(?:policysweep|vllm|process|python)[\w:]*|up|ALERTS)\b(?!\")"
)


@functools.cache
def exposed() -> frozenset[str]:
    """All series of our processes, of a model server, of the recording rules and of Prometheus."""
    server = Metrics()
    server.add_model("any", lambda: 0, lambda: 0)
    texts = (prometheus_client.generate_latest(), server.render())
    lines = (line for text in texts for line in text.decode().splitlines())
    typed = {line.split()[2]: line.split()[3] for line in lines if line.startswith("# TYPE ")}
    found = {
        name + suffix
        for name, kind in typed.items()
        for suffix in (("_sum", "_count", "_bucket") if kind == "histogram" else ("",))
    }
    return frozenset(found | {rule["record"] for rule in rules("record")} | OF_PROMETHEUS)


def named(query: str) -> set[str]:
    """The series that a query asks for."""
    return set(_SERIES.findall(re.sub(r'"[^"]*"', '""', query)))
