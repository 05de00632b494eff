"""Prometheus in the box: the shipped scrape job and rules, and what it saw.

Only the discovery of pods is replaced: by a file that lists them under the labels that Kubernetes gives.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.installation import METRICS, MODEL, ROOT
from tests.unit.telemetry.queries import PROMETHEUS as RULES

SCRAPE = ROOT / "deploy" / "k8s" / "prometheus-scrape.yaml"
_RANGE = "30m"
_IN_FLIGHT = "policysweep_grpc_server_calls_in_flight"
_LABELS = "__meta_kubernetes_pod_label_app_kubernetes_io"


def program() -> str:
    """Prometheus, which Debian has."""
    found = shutil.which("prometheus")
    assert found, "prometheus is not installed: apt-get install --no-install-recommends prometheus"
    return found


class Watch:
    """What Prometheus is told to scrape, and asked."""

    def __init__(self, folder: Path, url: str) -> None:
        self._folder = folder
        self._url = url
        self._targets: dict[str, dict[str, Any]] = {}

    def configure(self) -> Path:
        """Write its configuration; gives the file."""
        (job,) = yaml.safe_load(SCRAPE.read_text("utf-8"))["scrape_configs"]
        del job["kubernetes_sd_configs"]
        job["file_sd_configs"] = [{"files": [str(self._folder / "targets.json")], "refresh_interval": "1s"}]
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s", "scrape_timeout": "1s"},
            "rule_files": [str(RULES / name) for name in ("recording.yaml", "alerts.yaml")],
            "scrape_configs": [job],
        }
        path = self._folder / "prometheus.yaml"
        path.write_text(yaml.safe_dump(config), encoding="utf-8")
        self._write()
        return path

    def discover(self, kind: str, name: str, address: str) -> None:
        """From now on there is this pod."""
        port, named, service = (MODEL, "http", "rehearsal") if kind == "model" else (METRICS, "metrics", kind)
        self._targets[name] = {
            "targets": [f"{address}:{port}"],
            "labels": {
                "__meta_kubernetes_namespace": "policysweep",
                "__meta_kubernetes_pod_name": name,
                "__meta_kubernetes_pod_container_port_name": named,
                f"{_LABELS}_name": service,
                f"{_LABELS}_instance": name.rpartition("-")[0] or name,
            },
        }
        self._write()

    def forget(self, name: str) -> None:
        """The pod was deleted, or its Job is complete."""
        del self._targets[name]
        self._write()

    def _write(self) -> None:
        temporary = self._folder / "targets.tmp"
        temporary.write_text(json.dumps(list(self._targets.values()), indent=1), encoding="utf-8")
        temporary.rename(self._folder / "targets.json")

    # --------------------------------------------------------------- questions

    async def ask(self, query: str) -> list[dict[str, Any]]:
        """The series that answer a query."""
        return list(await asyncio.to_thread(self._ask, query))

    def _ask(self, query: str) -> Iterable[dict[str, Any]]:
        parameters = urllib.parse.urlencode({"query": query})
        with urllib.request.urlopen(f"{self._url}/api/v1/query?{parameters}", timeout=10) as answer:
            return list(json.load(answer)["data"]["result"])

    async def busy(self, address: str) -> None:
        """Returns when a service has calls in flight, by its own word: Prometheus comes by too seldom."""
        while True:
            page = await asyncio.to_thread(_page, f"http://{address}:{METRICS}/metrics")
            series = [line for line in page.splitlines() if line.startswith(f"{_IN_FLIGHT}{{")]
            if any(not line.endswith(" 0.0") for line in series):
                return
            await asyncio.sleep(0.02)

    async def failed_rules(self) -> list[str]:
        """Names of the rules that could not be evaluated the last time."""
        groups = await asyncio.to_thread(self._rules)
        return [rule["name"] for group in groups for rule in group["rules"] if rule["health"] != "ok"]

    def _rules(self) -> list[dict[str, Any]]:
        with urllib.request.urlopen(f"{self._url}/api/v1/rules", timeout=10) as answer:
            return list(json.load(answer)["data"]["groups"])

    async def number(self, query: str) -> float:
        """The sum over the series that answer; 0 when none does."""
        return sum(float(series["value"][1]) for series in await self.ask(query))

    async def units_done(self, run: str, stage: str) -> int:
        """Units of a run that have their record, as the drivers say that live or have lived."""
        of = f'policysweep_units{{run="{run}",stage="{stage}",state="done"}}[{_RANGE}]'
        return int(await self.number(f"sum(max by (pod, agent) (max_over_time({of})))"))

    async def counted(self, selector: str, label: str) -> Counter[str]:
        """What counters counted, by a label, over all lives of their processes.

        The steps between scrapes are added up, a counter that begins anew included. Unlike increase(), that
        gives whole numbers; what a process counted after its last scrape is lost with it.
        """
        found: Counter[str] = Counter()
        for series in await self.ask(f"{selector}[{_RANGE}]"):
            before = 0.0
            for _, text in series["values"]:
                value = float(text)
                found[series["metric"].get(label, "")] += round(value - before if value >= before else value)
                before = value
        return found

    async def alerts(self) -> Mapping[str, Sequence[str]]:
        """Names of the alerts that were ever pending or firing, and of those that are firing now."""
        ever = f'max_over_time(ALERTS{{alertstate="%s"}}[{_RANGE}])'
        asked = {
            "pending": ever % "pending",
            "firing": ever % "firing",
            "firing now": 'ALERTS{alertstate="firing"}',
        }
        return {
            state: sorted({each["metric"]["alertname"] for each in await self.ask(query)})
            for state, query in asked.items()
        }


def _page(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return str(answer.read().decode())
