"""All that Prometheus is asked: the queries of the dashboards, the recording rules, the alerts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]
PROMETHEUS = ROOT / "deploy" / "prometheus"
DASHBOARDS = sorted((ROOT / "deploy" / "grafana").glob("*.json"))

_OPERANDS = re.compile(r"\s+(?:and|unless)\s+on\s+\([a-z, ]+\)\s+")
_CONDITION = re.compile(r"\s(?:==|!=|>=|<=|>|<)\s-?[0-9.]+$")


def panels() -> Iterator[tuple[str, dict[str, Any]]]:
    """The panels of all dashboards, with a name each."""
    for file in DASHBOARDS:
        for panel in json.loads(file.read_text("utf-8"))["panels"]:
            if panel["type"] != "row":
                yield f"{file.stem}: {panel['title']}", panel


def panel_queries(interval: str) -> Iterator[tuple[str, str]]:
    """The queries of all panels as Grafana sends them: all values of variables, rates over `interval`."""
    for name, panel in panels():
        for target in panel["targets"]:
            query = target["expr"].replace("$__rate_interval", interval)
            yield name, re.sub(r"\$[a-z_]+", ".*", query)


def rules(kind: str) -> Iterator[dict[str, Any]]:
    """The rules that are of a kind: record or alert."""
    for file in sorted(PROMETHEUS.glob("*.yaml")):
        for group in yaml.safe_load(file.read_text("utf-8")).get("groups", ()):
            yield from (rule for rule in group["rules"] if kind in rule)


def recordings() -> Iterator[tuple[str, str]]:
    """Names and expressions of the recording rules."""
    for rule in rules("record"):
        yield rule["record"], rule["record"]
        yield rule["record"], rule["expr"]


def conditions(alert: str) -> list[str]:
    """The comparisons that an alert's expression joins."""
    return [part.strip() for part in _OPERANDS.split(alert)]


def signal(condition: str) -> str:
    """What a comparison compares. An alert is only as good as the series that it looks at."""
    assert _CONDITION.search(condition), f"{condition!r} compares with no number"
    return _CONDITION.sub("", condition)


def signals() -> Iterator[tuple[str, str]]:
    """What the alerts look at, without their thresholds."""
    for rule in rules("alert"):
        for condition in conditions(rule["expr"]):
            yield rule["alert"], signal(condition)
