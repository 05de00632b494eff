"""Running the product as a user would: as processes, from a sweep file, into a store."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from policysweep.v1 import run_pb2

RUN_SECONDS = 150


@dataclass
class Sweep:
    """A sweep file with its store, and the commands that a user has for them."""

    file: Path
    store: Path
    name: str
    running: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        return self.store / self.name

    @property
    def records(self) -> list[Path]:
        return sorted((self.folder / "episodes").glob("*.binpb"))

    def start(self, *options: str, store: Path | None = None, report: bool = False) -> subprocess.Popen[str]:
        """Start `policysweep run`; without the report, whose statistics take seconds to import."""
        options = (*options, "--report" if report else "--no-report")
        process = subprocess.Popen(
            policysweep("run", str(self.file), "--store", str(store or self.store), *options),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.running.append(process)
        return process

    def run(self, *options: str, store: Path | None = None, report: bool = False) -> tuple[int, str]:
        """Run to the end: exit code and what was printed."""
        return finish(self.start(*options, store=store, report=report))

    def verify(self) -> tuple[int, str]:
        return command("verify", str(self.folder))

    def wait_for_records(self, number: int) -> None:
        deadline = time.monotonic() + RUN_SECONDS
        while len(self.records) < number:
            assert time.monotonic() < deadline, f"only {len(self.records)} records"
            time.sleep(0.02)

    def contents(self) -> dict[str, bytes]:
        """What decides results: manifest, inputs and records, by name."""
        kept = [*self.folder.glob("manifest.json"), *self.folder.glob("inputs/*"), *self.records]
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in kept}


def policysweep(*args: str) -> Sequence[str]:
    return (sys.executable, "-m", "policysweep", *args)


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    output, _ = process.communicate(timeout=RUN_SECONDS)
    return process.returncode, output


def command(*args: str) -> tuple[int, str]:
    """Run `policysweep ARGS`: exit code and what was printed."""
    done = subprocess.run(
        policysweep(*args), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=RUN_SECONDS
    )
    return done.returncode, done.stdout


@pytest.fixture(name="command")
def command_fixture() -> Callable[..., tuple[int, str]]:
    return command


@pytest.fixture
def make_sweep(tmp_path: Path) -> Iterator[Callable[..., Sweep]]:
    """Write a sweep file; the keyword arguments replace or add top-level keys."""
    made: list[Sweep] = []

    def make(**changes: Any) -> Sweep:
        spec = {
            "name": "small",
            "dataset": "builtin",
            "scenarios": {"limit": 12},
            "agents": [
                {"name": "strict", "model": "rehearsal-strict"},
                {"name": "lenient", "model": "rehearsal-lenient"},
            ],
            "concurrency": 8,
        }
        spec.update(changes)
        file = tmp_path / f"sweep-{len(made)}.yaml"
        file.write_text(yaml.safe_dump(spec), encoding="utf-8")
        made.append(Sweep(file, tmp_path / "store", str(spec["name"])))
        return made[-1]

    yield make
    for sweep in made:
        for process in sweep.running:
            if process.poll() is None:
                process.kill()
                process.communicate()


def settled(data: bytes) -> run_pb2.UnitRecord:
    """A record without what may differ between two runs: times, attempts and cache hits."""
    record = run_pb2.UnitRecord.FromString(data)
    record.ClearField("recorded_at")
    record.ClearField("attempts")
    record.episode.ClearField("duration_seconds")
    for call in record.episode.model_calls:
        call.usage.ClearField("latency_seconds")
        call.usage.ClearField("cached_prompt_tokens")
    return record


@pytest.fixture(name="settled")
def settled_fixture() -> Callable[[bytes], run_pb2.UnitRecord]:
    return settled
