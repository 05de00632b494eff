"""Sweeps as a user runs them, what they left behind, and what the vLLM server counted."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.request
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from prometheus_client.parser import text_string_to_metric_families

from policysweep.v1 import run_pb2
from scripts.vllm.serve import Server

SECONDS = 3000
"""Far more than any step takes on a busy machine: a hang is to be found, slowness is not."""


@dataclass(frozen=True)
class Sweep:
    """A sweep file with its store."""

    file: Path
    store: Path
    name: str

    @property
    def folder(self) -> Path:
        return self.store / self.name

    def start(self, *options: str) -> subprocess.Popen[str]:
        """`policysweep run`, with the report."""
        return subprocess.Popen(
            command("run", str(self.file), "--store", str(self.store), *options),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *options: str) -> tuple[int, str]:
        """Run to the end: exit code and what was printed."""
        return finish(self.start(*options))

    def verify(self) -> tuple[int, str]:
        done = subprocess.run(
            command("verify", str(self.folder)), capture_output=True, text=True, timeout=SECONDS
        )
        return done.returncode, done.stdout + done.stderr

    def record_files(self) -> list[Path]:
        return sorted((self.folder / "episodes").glob("*.binpb"))

    def records(self) -> list[run_pb2.UnitRecord]:
        return [run_pb2.UnitRecord.FromString(path.read_bytes()) for path in self.record_files()]

    def verdicts(self) -> list[run_pb2.VerdictRecord]:
        found = sorted((self.folder / "verdicts").rglob("*.binpb"))
        return [run_pb2.VerdictRecord.FromString(path.read_bytes()) for path in found]

    def failures(self) -> list[str]:
        return [path.read_text() for path in sorted((self.folder / "failures").glob("*.json"))]


def write_sweep(folder: Path, server: Server, model: str, **changes: Any) -> Sweep:
    """A sweep whose agent, customer and judge are all `model` on `server`, except for `changes`.

    The temperature is 1: at 0 a model with random weights writes one word for ever.
    """
    served = {"model": model, "model_url": server.url, "temperature": 1.0, "model_timeout_seconds": 900}
    spec: dict[str, Any] = {
        "name": f"on-{model}",
        "scenarios": {"limit": 2},
        "agents": [{"name": model, **served, "max_tokens": 64}],
        "customer": {**served, "max_tokens": 64},
        "judges": [{"name": "judge", **served, "max_tokens": 1500}],
        "limits": {"max_turns": 3, "agent_call_seconds": 900, "unit_seconds": 1800},
        "concurrency": 2,
    }
    spec.update(changes)
    file = folder / "sweep.yaml"
    file.write_text(yaml.safe_dump(spec), encoding="utf-8")
    return Sweep(file, folder / "store", str(spec["name"]))


def command(*args: str) -> list[str]:
    return [sys.executable, "-m", "policysweep", *args]


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    output, _ = process.communicate(timeout=SECONDS)
    return process.returncode, output


def wait_until(true: Any, what: str) -> None:
    """Wait until `true()` is."""
    deadline = time.monotonic() + SECONDS
    while not true():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.1)


def counters(server: Server) -> Counter[str]:
    """The server's counters, summed over their labels, by name."""
    with urllib.request.urlopen(f"{server.root}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    found: Counter[str] = Counter()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if family.type == "counter" and sample.name.endswith("_total"):
                found[sample.name] += sample.value  # type: ignore[assignment] # a sum of floats
    return found
