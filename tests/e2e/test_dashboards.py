"""A real Prometheus scrapes a live rehearsal sweep: every query that we ship finds data.

All processes are those that a cluster runs, and are scraped by the shipped configuration: only the discovery
of pods is replaced, by a list of the local ports under the labels that Kubernetes would give. The rehearsal
model fails some calls, so that failures, retries and back-off are there to be seen. A target where nothing
listens makes one alert pending. Alerts are asked for without their thresholds: what those do is tested by
promtool, in tests/unit/telemetry. Calls go over TLS, as certificates have metrics too. Qdrant takes no part:
it has no server here, and the bank keeps what it has in memory.
"""

from __future__ import annotations

import contextlib
import json
import math
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml

from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import policybank_pb2 as pb
from policysweep.v1 import policybank_pb2_grpc, scenario_pb2
from tests.unit.telemetry.queries import PROMETHEUS, ROOT, panel_queries, recordings, signals

pytestmark = pytest.mark.e2e

SECONDS = 90
SCRAPE = ROOT / "deploy" / "k8s" / "prometheus-scrape.yaml"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True)
class Target:
    """What Prometheus scrapes, as Kubernetes would describe it."""

    service: str
    port: int

    def discovered(self) -> dict[str, Any]:
        name = "http" if self.service in ("rehearsal", "qdrant") else "metrics"
        return {
            "targets": [f"127.0.0.1:{self.port}"],
            "labels": {
                "__meta_kubernetes_namespace": "policysweep",
                "__meta_kubernetes_pod_name": f"{self.service}-{self.port}",
                "__meta_kubernetes_pod_container_port_name": name,
                "__meta_kubernetes_pod_label_app_kubernetes_io_name": self.service,
                "__meta_kubernetes_pod_label_app_kubernetes_io_instance": self.service,
            },
        }


class Machine:
    """The processes of an installation, with the ports of their metrics."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.targets: list[Target] = []
        self._certificates = folder / "certificates"
        make = [sys.executable, str(ROOT / "scripts" / "dev_certificates.py"), str(self._certificates)]
        subprocess.run(make, check=True)
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self, *argv: str) -> subprocess.Popen[bytes]:
        with (self.folder / "processes.log").open("ab") as log:
            process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=log, cwd=ROOT)
        self._running.append(process)
        return process

    def tls(self, name: str) -> list[str]:
        """The flags by which a process shows its certificate."""
        folder = self._certificates / name
        files = {"cert": "tls.crt", "key": "tls.key", "ca": "ca.crt"}
        return [part for flag, file in files.items() for part in (f"--tls-{flag}", str(folder / file))]

    def channel(self, target: str) -> grpc.Channel:
        """A channel to a service of ours, as the driver opens it."""
        key, certificate, authority = (
            (self._certificates / "driver" / file).read_bytes() for file in ("tls.key", "tls.crt", "ca.crt")
        )
        return grpc.secure_channel(target, grpc.ssl_channel_credentials(authority, key, certificate))

    def serve(self, module: str, *flags: str) -> str:
        """Start a service of ours; the address that it announces."""
        process = self.start(sys.executable, "-m", *module.split(), "--listen", "127.0.0.1:0", *flags)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, self.log()
        return str(json.loads(line)["address"])

    def service(self, name: str, *flags: str) -> str:
        """Start a gRPC service with metrics."""
        self.targets.append(Target(name, free_port()))
        metrics = f"127.0.0.1:{self.targets[-1].port}"
        return self.serve(f"services.{name}", "--metrics-listen", metrics, *self.tls(name), *flags)

    def log(self) -> str:
        return (self.folder / "processes.log").read_text("utf-8", "replace")[-3000:]

    def stop(self) -> None:
        for process in reversed(self._running):
            process.kill()
            process.communicate()


def sweep_file(folder: Path, simulator: str, agents: Mapping[str, str], judge: str) -> Path:
    file = folder / "sweep.yaml"
    content = {
        "name": "watched",
        "scenarios": {"limit": 20},
        "agents": [{"name": name, "target": target} for name, target in agents.items()],
        "simulators": [simulator],
        "judges": [{"name": "judge", "target": judge}],
        "concurrency": 8,
    }
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    return file


def prometheus(machine: Machine) -> str:
    """Start Prometheus with the shipped rules and the shipped scrape job; its URL."""
    program = shutil.which("prometheus")
    assert program, "prometheus is not installed: apt-get install --no-install-recommends prometheus"
    (job,) = yaml.safe_load(SCRAPE.read_text("utf-8"))["scrape_configs"]
    del job["kubernetes_sd_configs"]
    job["static_configs"] = [target.discovered() for target in machine.targets]
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s", "scrape_timeout": "1s"},
        "rule_files": [str(PROMETHEUS / name) for name in ("recording.yaml", "alerts.yaml")],
        "scrape_configs": [job],
    }
    (machine.folder / "prometheus.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    port = free_port()
    machine.start(
        program,
        f"--config.file={machine.folder}/prometheus.yaml",
        f"--storage.tsdb.path={machine.folder}/tsdb",
        f"--web.listen-address=127.0.0.1:{port}",
    )
    return f"http://127.0.0.1:{port}"


def ask(url: str, path: str, **parameters: str) -> Any:
    with urllib.request.urlopen(f"{url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}") as answer:
        return json.load(answer)["data"]


def has_data(url: str, query: str) -> bool:
    """Whether a query gives a number."""
    found = ask(url, "query", query=query)["result"]
    return any(math.isfinite(float(each["value"][1])) for each in found)


class BankUser(threading.Thread):
    """Does with a bank what agents with a memory and the driver of a stream do, until told to stop.

    The model behind the bank fails now and then; what failed is asked again, as everywhere.
    """

    def __init__(self, channel: grpc.Channel) -> None:
        super().__init__(daemon=True)
        self._channel = channel
        self._stopped = threading.Event()

    def run(self) -> None:
        revision = 0
        with self._channel as channel:
            stub = policybank_pb2_grpc.PolicyBankServiceStub(channel)
            while not self._stopped.wait(0.3):
                try:
                    revision = revision or stub.CreateBank(creation(), timeout=30).revision.number
                    read(stub)
                    revision = stub.RecordFeedback(feedback(revision), timeout=30).revision.number
                except grpc.RpcError as error:
                    if error.code() != grpc.StatusCode.UNAVAILABLE:
                        raise

    def stop(self) -> None:
        self._stopped.set()
        self.join()


def creation() -> pb.CreateBankRequest:
    tool = ep.ToolDefinition(name="get_order", description="Looks an order up.", parameters_json="{}")
    text = "Returns within 30 days. Opened goods are exchanged."
    policy = scenario_pb2.Policy(primary=scenario_pb2.PolicyDocument(text=text))
    method = pb.MEMORY_METHOD_POLICY_BANK
    return pb.CreateBankRequest(bank_id="b", method=method, policy=policy, tools=[tool])


def read(stub: Any) -> None:
    ref = pb.BankRef(bank_id="b")
    headers = stub.ListHeaders(pb.ListHeadersRequest(bank=ref), timeout=30).headers
    ids = [header.capability_id for header in headers[:2]]
    stub.BatchGetSpecs(pb.BatchGetSpecsRequest(bank=ref, capability_ids=ids), timeout=30)
    stub.Recall(pb.RecallRequest(bank=ref, query="an opened box", limit=2), timeout=30)


def feedback(revision: int) -> pb.RecordFeedbackRequest:
    return pb.RecordFeedbackRequest(
        bank_id="b",
        request_id=f"r-{revision}",
        expected_revision=revision,
        task_id="1",
        task_query="Return an opened box.",
        explanation=f"Rule {'abcdefgh'[revision % 8] * 9} applies to opened boxes.",
        regime=pb.FEEDBACK_REGIME_EXPLANATION,
        episode=ep.Episode(
            episode_id=f"e-{revision}", messages=[ep.Message(role=ep.ROLE_CUSTOMER, content="It is open.")]
        ),
    )


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    try:
        yield machine
    finally:
        machine.stop()


def without_data(url: str, queries: Sequence[tuple[str, str]], driver: subprocess.Popen[bytes]) -> list[str]:
    """The queries that gave no number while the sweep ran, each asked until it did."""
    open_ones = list(dict.fromkeys(queries))
    deadline = time.monotonic() + SECONDS
    while open_ones and driver.poll() is None and time.monotonic() < deadline:
        open_ones = [each for each in open_ones if not has_data(url, each[1])]
        time.sleep(0.5)
    return [f"{name}: {query}" for name, query in open_ones]


def test_every_query_finds_data(machine: Machine) -> None:
    faults = ("--fault", "http_503_bare=0.01", "--fault", "reset=0.005")
    model = machine.serve("policysweep rehearsal", "--first-token", "0.15", "--per-token", "0.002", *faults)
    machine.targets.append(Target("rehearsal", int(model.rpartition(":")[2])))
    url = ("--model-url", f"http://{model}/v1")
    simulator = machine.service("simulator", *url, "--model", "rehearsal-customer")
    agents = {
        name: machine.service("agent", *url, "--model", f"rehearsal-{name}") for name in ("strict", "lenient")
    }
    judge = machine.service("judge", *url, "--model", "rehearsal-judge")
    bank = machine.service("policybank", *url, "--model", "rehearsal-judge", "--store", "memory")
    metrics = free_port()
    machine.targets += [Target("driver", metrics), Target("simulator", free_port())]
    watching = prometheus(machine)
    sweep = sweep_file(machine.folder, simulator, agents, judge)
    driver = machine.start(
        sys.executable, "-m", "policysweep", "run", str(sweep), "--store", str(machine.folder / "store"),
        "--no-report", "--metrics-listen", f"127.0.0.1:{metrics}", *machine.tls("driver"),
    )  # fmt: skip
    user = BankUser(machine.channel(bank))
    user.start()
    wait_for(watching)
    try:
        missing = without_data(watching, [*panel_queries("10s"), *recordings(), *signals()], driver)
        assert not missing, "\n".join([*missing, machine.log()])
        check_health(watching, nobody=machine.targets[-1])
    finally:
        user.stop()


def wait_for(url: str) -> None:
    deadline = time.monotonic() + SECONDS
    while True:
        with contextlib.suppress(OSError):
            ask(url, "query", query="1")
            return
        assert time.monotonic() < deadline, "Prometheus did not start"
        time.sleep(0.1)


def check_health(url: str, nobody: Target) -> None:
    """Rules are evaluated without errors, and all targets but the one without a process are scraped."""
    rules = [rule for group in ask(url, "rules")["groups"] for rule in group["rules"]]
    assert {rule["name"]: rule.get("lastError") for rule in rules if rule["health"] != "ok"} == {}
    targets = ask(url, "targets", state="active")["activeTargets"]
    down = {each["labels"]["instance"] for each in targets if each["health"] != "up"}
    assert down == {f"127.0.0.1:{nobody.port}"}
