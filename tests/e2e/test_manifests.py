"""The local installation, run from its manifests on this machine.

Each workload gets a loopback address, and names in what is rendered are replaced by addresses; commands,
settings, ports, probes and exit codes are taken as they are. With POLICYSWEEP_IMAGE_TREES the processes are
those of the trees that scripts/build_image_tree.sh made, else those of this checkout. Qdrant has no server
here: the bank keeps what it has in memory.
"""

from __future__ import annotations

import functools
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml
from grpc_health.v1 import health_pb2, health_pb2_grpc

from policysweep.commands.interrupt import EXIT_INTERRUPTED
from tests.unit.deploy.rendering import Workload, installation
from tests.unit.deploy.test_jobs import action

pytestmark = pytest.mark.e2e

STARTED = ("rehearsal", "simulator", "agent", "judge", "policybank", "results")
REPLACED = {"POLICYSWEEP_POLICYBANK_STORE": "memory"}
SECONDS = 120
_TREES = os.environ.get("POLICYSWEEP_IMAGE_TREES")
_USER = 10001
_IMAGE = re.compile(r"policysweep/(\w+):")


def entrypoint(workload: Workload) -> list[str]:
    """What the image of a workload starts, or what its manifest starts instead."""
    (service,) = _IMAGE.findall(workload.main["image"])
    if "command" in workload.main:
        return []
    if _TREES:
        return [f"{Path(_TREES).absolute()}/{service}/bin/entrypoint"]
    module = "policysweep" if service == "cli" else f"services.{service}"
    return [sys.executable, "-m", module]


@functools.cache
def unprivileged() -> int | None:
    """The user of the images, where trees are run by root and that user can reach them; None elsewhere."""
    if _TREES is None or os.geteuid() != 0:
        return None
    probe = ["/bin/sh", "-c", f"exec {Path(_TREES).absolute()}/cli/bin/python -c ''"]
    reached = subprocess.run(probe, user=_USER, group=_USER, extra_groups=(), stderr=subprocess.DEVNULL)
    return _USER if reached.returncode == 0 else None


class Machine:
    """This machine as the cluster."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = folder / "results"
        self.store.mkdir()
        self.store.chmod(0o777)
        self.installation = installation("local")
        services = [each["metadata"]["name"] for each in self.installation.of_kind("Service")]
        self._addresses = {name: f"127.0.77.{number}" for number, name in enumerate(services, start=1)}
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def address(self, workload: Workload, index: int = 0) -> str:
        """Where a workload's pod is; nobody calls those of Jobs."""
        return self._addresses.get(workload.name, f"127.0.78.{1 + index}")

    def here(self, text: str, address: str = "") -> str:
        """A text of a manifest with addresses for names, and folders of this machine for mounts."""
        text = re.sub(
            r"//([a-z][a-z0-9-]*):(\d)", lambda match: f"//{self._addresses[match[1]]}:{match[2]}", text
        )
        text = text.replace("0.0.0.0", address)
        text = text.replace("/etc/policysweep/", f"{self.folder}/")
        return re.sub(r"(?<![\w.])/results\b", str(self.store), text)

    def start(self, workload: Workload, **variables: str) -> subprocess.Popen[bytes]:
        """Start the container of a workload's pod."""
        tools = Path(_TREES).absolute() / "cli" / "bin" if _TREES else Path(sys.executable).parent
        environment = {"PATH": f"{tools}:/usr/bin:/bin", "HOME": "/", "PYTHONDONTWRITEBYTECODE": "1"}
        address = self.address(workload, int(variables.get("JOB_COMPLETION_INDEX", 0)))
        settings = workload.environment()
        settings |= {name: value for name, value in REPLACED.items() if name in settings}
        environment |= {name: self.here(value, address) for name, value in settings.items()}
        arguments = [self.here(word, address) for word in workload.arguments(**variables)]
        user = unprivileged()
        with (self.folder / f"{workload.name}.log").open("ab") as log:
            return subprocess.Popen(
                [*entrypoint(workload), *arguments],
                env=environment | variables,
                cwd=self.folder if _TREES else None,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                user=user,
                group=user,
                extra_groups=None if user is None else (),
            )

    def start_services(self) -> None:
        """Start all Deployments; returns when they have started and are ready, in whatever order they do."""
        for workload in self.installation.in_role(*STARTED):
            self._running[workload.name] = self.start(workload)
        for kind in ("startup", "readiness"):
            for workload in self.installation.in_role(*STARTED):
                self.wait_for(workload, kind)

    def wait_for(self, workload: Workload, kind: str) -> None:
        """Returns when a probe succeeds."""
        deadline = time.monotonic() + SECONDS
        while not self.probe(workload, kind):
            code = self._running[workload.name].poll()
            assert code is None, f"{workload.name} ended with code {code}: {self.log(workload)}"
            assert time.monotonic() < deadline, f"{workload.name}: {kind} fails: {self.log(workload)}"
            time.sleep(0.1)

    def probe(self, workload: Workload, kind: str) -> bool:
        """What the kubelet would find out."""
        probe = workload.main[f"{kind}Probe"]
        if "grpc" in probe:
            return serving(
                f"{self.address(workload)}:{probe['grpc']['port']}", probe["grpc"].get("service", "")
            )
        port = workload.port(probe["httpGet"]["port"])
        try:
            return bool(self.fetch(workload, port, probe["httpGet"]["path"]) is not None)
        except OSError:
            return False

    def fetch(self, workload: Workload, port: int | None, path: str) -> bytes:
        url = f"http://{self.address(workload)}:{port}{path}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return bytes(answer.read())

    def log(self, workload: Workload) -> str:
        return (self.folder / f"{workload.name}.log").read_text("utf-8", "replace")[-2000:]

    def job(self, name: str) -> Workload:
        (job,) = (each for each in self.installation.workloads if each.name == name)
        return job

    def write_sweep(self, **changes: Any) -> Workload:
        """Put the sweep file where the Job finds it; the Job."""
        job = self.job("sweep-rehearsal")
        (config,) = (data for name, data in self.installation.configs.items() if "sweep.yaml" in data)
        content = yaml.safe_load(self.here(config["sweep.yaml"])) | changes
        (self.folder / "sweep.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
        return job

    def records(self) -> int:
        return len(list(self.store.glob("rehearsal/episodes/*.binpb")))

    def stop(self) -> dict[str, int]:
        """End the pods as the kubelet does: SIGTERM; their exit codes."""
        for process in self._running.values():
            process.terminate()
        return {name: process.wait(SECONDS) for name, process in self._running.items()}

    def kill(self) -> None:
        for process in self._running.values():
            process.kill()
            process.wait()


def serving(target: str, service: str) -> bool:
    """Whether a server answers the probe of a health service."""
    with grpc.insecure_channel(target) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        try:
            answer = stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=5)
        except grpc.RpcError:
            return False
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


@pytest.fixture
def machine() -> Iterator[Machine]:
    # Not pytest's own folder, which only its user may enter.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        machine = Machine(Path(folder))
        try:
            yield machine
        finally:
            machine.kill()


def finish(process: subprocess.Popen[bytes]) -> int:
    return process.wait(SECONDS)


def preempt_first_index(machine: Machine, job: Workload) -> None:
    """Start index 0, tell it to stop as soon as it has recorded something, and ask what that counts as."""
    driver = machine.start(job, JOB_COMPLETION_INDEX="0")
    deadline = time.monotonic() + SECONDS
    while not machine.records():
        assert time.monotonic() < deadline, machine.log(job)
        assert driver.poll() is None, machine.log(job)
        time.sleep(0.02)
    driver.send_signal(signal.SIGTERM)
    code = finish(driver)
    assert code == EXIT_INTERRUPTED, machine.log(job)
    assert action(job, code) == "Ignore"


def test_a_sweep_runs_as_its_job_says(machine: Machine) -> None:
    machine.start_services()
    services = machine.installation.in_role(*STARTED)
    assert all(machine.probe(each, kind) for each in services for kind in ("readiness", "liveness"))

    job = machine.write_sweep(scenarios={"limit": 8}, concurrency=1)
    preempt_first_index(machine, job)
    drivers = [
        machine.start(job, JOB_COMPLETION_INDEX=str(index)) for index in range(job.spec["completions"])
    ]
    assert [finish(driver) for driver in drivers] == [0, 0], machine.log(job)
    assert machine.records() == 16

    report = machine.job("report-rehearsal")
    assert finish(machine.start(report)) == 0, machine.log(report)
    assert "16 of 16 planned units have exactly one record" in machine.log(report)
    (results,) = machine.installation.in_role("results")
    page = machine.fetch(results, results.port("http"), "/rehearsal/report.html")
    assert b"</html>" in page

    (simulator,) = machine.installation.in_role("simulator")
    assert b"policysweep_episodes_running" in machine.fetch(simulator, simulator.port("metrics"), "/metrics")
    codes = machine.stop()
    # The web server of Python knows no orderly end.
    assert codes.pop(results.name) == -signal.SIGTERM
    assert set(codes.values()) == {0}


def test_a_sweep_file_that_is_wrong_fails_the_job(machine: Machine) -> None:
    job = machine.write_sweep(trails=3)
    code = finish(machine.start(job, JOB_COMPLETION_INDEX="0"))
    assert "trails" in machine.log(job)
    assert action(job, code) == "FailJob"


def test_services_that_are_not_there_yet_are_tried_again(machine: Machine) -> None:
    job = machine.write_sweep()
    code = finish(machine.start(job, JOB_COMPLETION_INDEX="0"))
    assert action(job, code) == "Count", machine.log(job)
    assert not (machine.store / "rehearsal" / "manifest.json").exists()
