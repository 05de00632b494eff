"""What is installed in the box, and the work that it is given.

Two model servers; two simulators, three agents of two models, one more with a memory, two judges, a policy
bank with an embedded store; an S3 server; Prometheus. Ports are those of deploy/k8s.
"""

from __future__ import annotations

import ipaddress
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from policysweep.datasets.tau2 import load_tau2
from policysweep.datasets.tau2_gold import write_gold
from policysweep.streams.selection import load_played
from policysweep.streams.spec import load_spec
from tests.cluster.names import NameServer
from tests.cluster.pods import PodSpec
from tests.object_store.server import BUCKET, S3Server

ROOT = Path(__file__).parents[2]
PORTS = {"simulator": 50051, "agent": 50052, "judge": 50053, "policybank": 50054}
METRICS, MODEL, PROMETHEUS = 9100, 8100, 9090
SWEEP, STREAMS = "box", "box-streams"
DOMAIN = "airline"
DRAIN_SECONDS = 30.0
CONNECTION_SECONDS = 5.0


@dataclass(frozen=True)
class Size:
    """How much work there is, and how hard it is disturbed."""

    scenarios: int
    concurrency: int
    """Of each of the four drivers of the sweep."""
    parents: tuple[str, ...]
    """The tasks of the streams; their sisters come with them."""
    stream_trials: int
    first_token: float
    """Latency of the model servers, in seconds."""
    kills: int
    """Of each kind of process."""
    store_restarts: int
    seconds: float
    """No run takes longer, on a machine that is as busy as can be."""

    @property
    def units(self) -> int:
        return 2 * self.scenarios


FULL = Size(
    scenarios=160,
    concurrency=8,
    parents=("airline-39", "airline-7", "airline-1"),
    stream_trials=6,
    first_token=0.35,
    kills=3,
    store_restarts=2,
    seconds=900,
)
SHORT = Size(
    scenarios=32,
    concurrency=4,
    parents=("airline-39",),
    stream_trials=6,
    first_token=0.25,
    kills=1,
    store_restarts=1,
    seconds=270,
)


class Installation:
    """The specification of every pod, and the files that they read."""

    def __init__(self, folder: Path, names: NameServer, size: Size) -> None:
        self._folder = folder
        self._names = names
        self._size = size
        self._addresses = _addresses()
        self.s3 = S3Server(folder / "s3")
        self.models = [next(self._addresses), next(self._addresses)]
        self.prometheus = next(self._addresses)
        self.gold = folder / "gold.json"
        self.bank = names.target("policybank", PORTS["policybank"])

    def prepare(self) -> None:
        """Write what the pods read."""
        script = (sys.executable, str(ROOT / "scripts" / "dev_certificates.py"), str(self._folder / "tls"))
        agents = "agent=agent-fair,agent-strict,agent-memory"
        subprocess.run([*script, "simulator", "judge", "policybank", "driver", agents], check=True)
        write_gold(self.gold, [load_tau2(DOMAIN)])

    # -------------------------------------------------------------------- pods

    def service_pods(self) -> Iterator[PodSpec]:
        """What runs when a sweep begins, in the order of who calls whom, those called first."""
        for number, at in enumerate(self.models):
            latency = (
                "--first-token",
                str(self._size.first_token),
                "--per-token",
                "0.002",
                "--jitter",
                "0.3",
            )
            argv = [*_python("policysweep", "rehearsal"), "--listen", f"{at}:{MODEL}", *latency]
            yield PodSpec("model", f"model-{number}", at, [*argv, "--tau2-gold", str(self.gold)])
        bank = ("--model", "rehearsal-judge", "--store", str(self._folder / "banks"))
        yield self._service("policybank", "policybank", "policybank", 1, *bank)
        for number in range(2):
            yield self._service("judge", "judge", f"judge-{number}", 1, "--model", "rehearsal-judge")
        for number in range(2):
            yield self.agent("fair", number)
        yield self.agent("strict", 0)
        memory = ("--memory", "retrieve", "--bank-target", self.bank, "--model", "rehearsal-fair")
        yield self._service("agent", "agent-memory", "agent-memory-0", 0, *memory)
        for number in range(2):
            customer = ("--model", "rehearsal-customer")
            yield self._service("simulator", "simulator", f"simulator-{number}", 0, *customer)

    def agent(self, name: str, number: int) -> PodSpec:
        """A replica of an agent."""
        server = 0 if name == "fair" else 1
        model = ("--model", f"rehearsal-{name}")
        return self._service("agent", f"agent-{name}", f"agent-{name}-{number}", server, *model)

    def prometheus_pod(self, program: str, config: Path) -> PodSpec:
        """Prometheus with a configuration."""
        at = f"{self.prometheus}:{PROMETHEUS}"
        argv = [
            program,
            f"--config.file={config}",
            f"--storage.tsdb.path={self._folder / 'tsdb'}",
            f"--web.listen-address={at}",
        ]
        return PodSpec("prometheus", "prometheus", self.prometheus, argv, ready_url=f"http://{at}/-/ready")

    def _service(self, kind: str, service: str, name: str, server: int, *flags: str) -> PodSpec:
        at = next(self._addresses)
        argv = [
            *_python(f"services.{kind}"),
            *("--listen", f"{at}:{PORTS[kind]}", "--metrics-listen", f"{at}:{METRICS}"),
            *("--model-url", f"http://{self.models[server]}:{MODEL}/v1", *self.tls(kind)),
            *("--drain-seconds", str(DRAIN_SECONDS)),
            *("--max-connection-age-seconds", str(CONNECTION_SECONDS)),
            *flags,
        ]
        return PodSpec(kind, name, at, argv, service=service)

    def tls(self, name: str) -> Sequence[str]:
        """The certificate of a role, as flags."""
        at = self._folder / "tls" / name
        return (f"--tls-cert={at}/tls.crt", f"--tls-key={at}/tls.key", f"--tls-ca={at}/ca.crt")

    # -------------------------------------------------------------------- work

    def driver_addresses(self, number: int) -> list[str]:
        """Addresses for the pods of a Job."""
        return [next(self._addresses) for _ in range(number)]

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables of a driver: which store, and its credentials."""
        return {"STORE": f"s3://{BUCKET}/runs", **self.s3.environment()}

    def sweep_file(self) -> Path:
        """The sweep: two agents, played and judged."""
        size = self._size
        spec = {
            "name": SWEEP,
            "scenarios": {"limit": size.scenarios},
            "agents": [self._named(name, f"agent-{name}", "agent") for name in ("fair", "strict")],
            "simulators": [self._names.target("simulator", PORTS["simulator"])],
            "judges": [self._named("judge", "judge", "judge")],
            "concurrency": size.concurrency,
        }  # fmt: skip
        return self._write("sweep.yaml", yaml.safe_dump(spec))

    def stream_file(self) -> Path:
        """The streams: one agent that learns from three tasks that policy gaps make unsolvable."""
        spec = {
            "name": STREAMS,
            "domains": [DOMAIN],
            "agents": [
                {
                    "name": "memory",
                    "targets": {"retrieve": self._names.target("agent-memory", PORTS["agent"])},
                }
            ],
            "methods": ["policy_bank"],
            "simulators": [self._names.target("simulator", PORTS["simulator"])],
            "judge": self._named("judge", "judge", "judge"),
            "bank": {"target": self.bank},
            "originals": {"tasks": list(self._size.parents)},
            "seeds": 1,
            "trials": self._size.stream_trials,
            "concurrency": 4,
        }
        return self._write("streams.yaml", yaml.safe_dump(spec))

    def stream_tasks(self) -> int:
        """The tasks that the streams play, all together."""
        played = load_played(load_spec(self.stream_file()))
        return len(played.inputs.tasks) * self._size.stream_trials

    def _named(self, name: str, service: str, kind: str) -> dict[str, str]:
        return {"name": name, "target": self._names.target(service, PORTS[kind])}

    def _write(self, name: str, text: str) -> Path:
        path = self._folder / name
        path.write_text(text, encoding="utf-8")
        return path


def _python(*words: str) -> tuple[str, ...]:
    return (sys.executable, "-m", *words)


def _addresses() -> Iterator[str]:
    """Loopback addresses of this box alone, so that two boxes can stand side by side."""
    second, third = divmod(os.getpid(), 250)
    base = ipaddress.IPv4Address(f"127.{100 + second % 150}.{third}.1")
    return (str(base + offset) for offset in range(200))
