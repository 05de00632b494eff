"""Whatever a manifest calls by name is there: settings, flags, ports, health services, models, metrics."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

import click
import prometheus_client
import pytest
import yaml

import policysweep.telemetry  # noqa: F401 - declares the metrics
from policysweep import cli
from policysweep.config import ModelEndpoint, ServiceConfig, load_config
from policysweep.models.rehearsal.metrics import Metrics
from policysweep.streams.spec import StreamSpec
from policysweep.streams.spec import load_spec as load_streams
from policysweep.sweep.plan import Shard, parse_shard
from policysweep.sweep.spec import SweepSpec, load_spec
from policysweep.v1 import agent_pb2, judge_pb2, policybank_pb2, simulator_pb2
from services.agent.config import AgentConfig
from services.judge.config import JudgeConfig
from services.policybank.config import PolicyBankConfig
from services.simulator.config import SimulatorConfig

from .rendering import (
    K8S,
    ROOT,
    Installation,
    Workload,
    build,
    every_installation,
    installation,
    with_streams,
)

CONFIGS: dict[str, type[ServiceConfig]] = {
    "simulator": SimulatorConfig,
    "agent": AgentConfig,
    "judge": JudgeConfig,
    "policybank": PolicyBankConfig,
}
PROTOS = (agent_pb2, judge_pb2, policybank_pb2, simulator_pb2)


def configured(workload: Workload, monkeypatch: pytest.MonkeyPatch) -> ServiceConfig:
    """The configuration that a service reads in its pod."""
    environment = workload.environment()
    unknown = {
        name
        for name in environment
        if name.removeprefix(f"POLICYSWEEP_{workload.role.upper()}_").lower()
        not in CONFIGS[workload.role].model_fields
    }
    assert not unknown, f"{workload.name}: no such settings"
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    config = load_config(CONFIGS[workload.role], workload.role, workload.arguments())
    if isinstance(config, AgentConfig):
        config.check()
    return config


@every_installation
@pytest.mark.parametrize("role", CONFIGS)
def test_a_service_accepts_its_configuration(
    overlay: str, role: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = installation(overlay).in_role(role)
    assert found
    for workload in found:
        with monkeypatch.context() as patch:
            config = configured(workload, patch)
        assert config.listen == f"0.0.0.0:{workload.port('grpc')}"
        assert config.metrics_listen == f"0.0.0.0:{workload.port('metrics')}"


def from_secret(workload: Workload, variable: str) -> tuple[str, str]:
    """Name and key of the Secret that a variable comes from."""
    (found,) = (each for each in workload.main["env"] if each["name"] == variable)
    reference = found["valueFrom"]["secretKeyRef"]
    return reference["name"], reference["key"]


def test_the_key_of_a_hosted_model_comes_from_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    (workload,) = Installation("hosted", build(K8S / "agents" / "hosted")).workloads
    config = configured(workload, monkeypatch)
    assert isinstance(config, ModelEndpoint)
    assert from_secret(workload, config.api_key_env) == ("hosted-model", "api-key")


def test_the_bank_and_its_store_share_a_key_in_production(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = installation("production")
    (bank,), (store,) = owner.in_role("policybank"), owner.in_role("qdrant")
    config = configured(bank, monkeypatch)
    assert isinstance(config, PolicyBankConfig)
    key = from_secret(bank, config.store_api_key_env)
    assert from_secret(store, "QDRANT__SERVICE__API_KEY") == key


@every_installation
def test_the_bank_and_its_readers_find_what_they_call(overlay: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = installation(overlay)
    (bank,) = owner.in_role("policybank")
    with monkeypatch.context() as patch:
        config = configured(bank, patch)
    assert isinstance(config, PolicyBankConfig)
    url = urlsplit(config.store)
    (store,) = owner.behind(str(url.hostname))
    assert (store.role, store.port("http"), store.port("grpc")) == (
        "qdrant",
        url.port,
        config.store_grpc_port,
    )
    for agent in owner.in_role("agent"):
        if target := agent.environment().get("POLICYSWEEP_AGENT_BANK_TARGET"):
            assert target == f"dns:///{bank.name}:{bank.port('grpc')}"


@every_installation
def test_probes_ask_for_ports_and_health_services_that_exist(overlay: str) -> None:
    known = {service.full_name for proto in PROTOS for service in proto.DESCRIPTOR.services_by_name.values()}
    for workload in installation(overlay).workloads:
        numbers = {each["containerPort"] for each in workload.main.get("ports", ())}
        for kind in ("startup", "readiness", "liveness"):
            probe = workload.main.get(f"{kind}Probe", {})
            if grpc := probe.get("grpc"):
                assert grpc["port"] in numbers
                assert kind != "readiness" or grpc["service"] in known
            elif http := probe.get("httpGet"):
                assert workload.port(http["port"])


@every_installation
def test_the_ports_of_services_are_ports_of_their_pods(overlay: str) -> None:
    owner = installation(overlay)
    for service in owner.of_kind("Service"):
        (workload,) = owner.behind(service["metadata"]["name"])
        for port in service["spec"]["ports"]:
            assert workload.port(port["targetPort"]) == port["port"]


@every_installation
def test_grpc_is_balanced_by_the_clients(overlay: str) -> None:
    for service in installation(overlay).of_kind("Service"):
        if any(port["name"] == "grpc" for port in service["spec"]["ports"]):
            assert service["spec"]["clusterIP"] == "None"


# ------------------------------------------------------------------------------------------- models


def served_models(owner: Installation, host: str, port: int | None) -> str:
    """What a model server of the installation serves, as a pattern."""
    (server,) = owner.behind(host)
    assert server.port("http") == port
    return "rehearsal-.*" if server.role == "rehearsal" else re.escape(server.environment()["MODEL"])


@every_installation
def test_every_model_is_served_where_it_is_looked_for(overlay: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = installation(overlay)
    for workload in owner.in_role("simulator", "agent", "judge", "policybank"):
        with monkeypatch.context() as patch:
            config = configured(workload, patch)
        assert isinstance(config, ModelEndpoint)
        url = urlsplit(config.model_url)
        assert url.path == "/v1"
        assert re.fullmatch(served_models(owner, str(url.hostname), url.port), config.model)


# ------------------------------------------------------------------------------------------- Jobs


def parse(arguments: list[str]) -> click.Context:
    """Read a command line of `policysweep` as it would; it exits when a flag or a value does not exist."""
    assert isinstance(cli._root, click.Group)
    command = cli._root.get_command(click.Context(cli._root), arguments[0])
    assert command is not None, f"policysweep has no command {arguments[0]}"
    return command.make_context(arguments[0], arguments[1:])


def mounted(workload: Workload, name: str, tmp_path: Path) -> Path:
    """The file of this name that a driver's pod mounts."""
    (volume,) = (each for each in workload.pod["volumes"] if each["name"] == "sweep")
    file = tmp_path / name
    file.write_text(workload.configs[volume["configMap"]["name"]][name], encoding="utf-8")
    return file


def sweep_of(workload: Workload, tmp_path: Path) -> SweepSpec:
    """The sweep file that a driver's pod mounts."""
    return load_spec(mounted(workload, "sweep.yaml", tmp_path))


def streams_of(workload: Workload, tmp_path: Path) -> StreamSpec:
    """The stream file that a driver's pod mounts."""
    return load_streams(mounted(workload, "streams.yaml", tmp_path))


@every_installation
def test_every_index_of_a_sweep_runs_its_own_shard(overlay: str) -> None:
    (job,) = (each for each in installation(overlay).workloads if each.name.startswith("sweep-"))
    shards = job.spec["completions"]
    assert job.spec["parallelism"] == shards
    indexes = []
    for index in range(shards):
        context = parse(job.arguments(JOB_COMPLETION_INDEX=str(index)))
        shard = parse_shard(context.params["shard"])
        assert shard.count == shards
        indexes.append(shard.index)
        assert context.params["sweep"] == Path("/etc/policysweep/sweep.yaml")
        assert context.params["report"] is False
        assert context.params["metrics_listen"] == f"0.0.0.0:{job.port('metrics')}"
    assert indexes == list(range(shards))


@every_installation
def test_a_sweep_names_services_that_exist(overlay: str, tmp_path: Path) -> None:
    owner = installation(overlay)
    (job,) = (each for each in owner.workloads if each.name.startswith("sweep-"))
    spec = sweep_of(job, tmp_path)
    assert job.name == f"sweep-{spec.name}"
    targets = {
        **{each.target: "agent" for each in spec.agents},
        **{each.target: "judge" for each in spec.judges},
    }
    targets |= dict.fromkeys(spec.simulators or (), "simulator")
    assert set(targets.values()) == {"agent", "judge", "simulator"}
    for target, role in targets.items():
        assert behind(owner, str(target)).role == role


@every_installation
def test_what_follows_a_sweep_looks_at_its_run(overlay: str, tmp_path: Path) -> None:
    owner = installation(overlay)
    (sweep,) = (each for each in owner.workloads if each.name.startswith("sweep-"))
    name = sweep_of(sweep, tmp_path).name
    following = [each for each in owner.workloads if each.environment().get("RUN") == name]
    assert {each.name for each in following} >= {f"report-{name}"}
    for job in following:
        assert job.environment()["STORE"] == sweep.environment()["STORE"]


@every_installation
def test_every_job_runs_something_or_looks_at_a_run(overlay: str, tmp_path: Path) -> None:
    jobs = [each for each in installation(overlay).workloads if each.kind == "Job"]
    runs = {sweep_of(each, tmp_path).name for each in jobs if each.name.startswith("sweep-")}
    runs |= {streams_of(each, tmp_path).name for each in jobs if each.name.startswith("streams-")}
    looking = [each.environment()["RUN"] for each in jobs if not each.name.startswith(("sweep-", "streams-"))]
    assert set(looking) == runs


@with_streams
def test_every_index_of_a_stream_run_has_its_own_shard(overlay: str) -> None:
    (job,) = (each for each in installation(overlay).workloads if each.name.startswith("streams-"))
    shards = job.spec["completions"]
    contexts = [parse(job.arguments(JOB_COMPLETION_INDEX=str(index))) for index in range(shards)]
    assert [parse_shard(each.params["shard"]) for each in contexts] == [
        Shard(index, shards) for index in range(shards)
    ]
    for context in contexts:
        assert context.params["streams"] == Path("/etc/policysweep/streams.yaml")
        assert context.params["report"] is False
        assert context.params["metrics_listen"] == f"0.0.0.0:{job.port('metrics')}"


@with_streams
def test_a_stream_run_names_services_that_use_their_memory_as_it_says(overlay: str, tmp_path: Path) -> None:
    owner = installation(overlay)
    (job,) = (each for each in owner.workloads if each.name.startswith("streams-"))
    spec = streams_of(job, tmp_path)
    assert job.name == spec.name
    roles = {str(spec.judge.target): "judge", str(spec.bank.target): "policybank"}
    roles |= dict.fromkeys(spec.simulators or (), "simulator")
    for target, role in roles.items():
        assert behind(owner, target).role == role
    for agent in spec.agents:
        for mode, target in (agent.targets or {}).items():
            environment = behind(owner, target).environment()
            assert environment.get("POLICYSWEEP_AGENT_MEMORY", "none") == mode


def behind(owner: Installation, target: str) -> Workload:
    """The workload that a gRPC target means."""
    match = re.fullmatch(r"dns:///([a-z0-9-]+):(\d+)", target)
    assert match, f"{target}: only dns:/// finds every pod"
    (workload,) = owner.behind(match[1])
    assert workload.port("grpc") == int(match[2])
    return workload


@every_installation
def test_the_commands_of_jobs_and_rehearsal_exist(overlay: str) -> None:
    for workload in installation(overlay).workloads:
        if not workload.main["image"].startswith("policysweep/cli:") or workload.role == "results":
            continue
        command = workload.main.get("command")
        if command is None:
            parse(workload.arguments(JOB_COMPLETION_INDEX="0"))
            continue
        assert command == ["/bin/sh", "-c"]
        (script,) = workload.main["args"]
        calls = re.findall(r"policysweep (\w+) (\S+)", script)
        assert [name for name, _ in calls] == ["report", "verify"]
        for name, argument in calls:
            parse([name, argument])


def test_judging_again_asks_the_judge_of_the_installation() -> None:
    owner = installation("production")
    (job,) = (each for each in owner.workloads if each.name.startswith("rejudge-"))
    (target,) = parse(job.arguments()).params["targets"]
    name, _, address = target.partition("=")
    assert parse(job.arguments()).params["metrics_listen"] == f"0.0.0.0:{job.port('metrics')}"
    assert (name, address) == ("judge", f"dns:///judge:{owner.behind('judge')[0].port('grpc')}")


def test_the_example_names_the_services_of_an_installation() -> None:
    spec = load_spec(ROOT / "examples" / "kubernetes.yaml")
    owner = installation("production")
    for target in [*(each.target for each in (*spec.agents, *spec.judges)), *(spec.simulators or ())]:
        host, _, port = str(target).removeprefix("dns:///").partition(":")
        (workload,) = owner.behind(host)
        assert workload.port("grpc") == int(port)


# ---------------------------------------------------------------------------------------- metrics


def exposed() -> set[str]:
    """Names of all series that our processes and a model server expose."""
    server = Metrics()
    server.add_model("any", lambda: 0, lambda: 0)
    texts = (prometheus_client.generate_latest(), server.render())
    lines = (line for text in texts for line in text.decode().splitlines())
    typed = {line.split()[2]: line.split()[3] for line in lines if line.startswith("# TYPE ")}
    return {
        name + suffix
        for name, kind in typed.items()
        for suffix in (("_sum", "_count", "_bucket") if kind == "histogram" else ("",))
    }


def adapter() -> dict[str, str]:
    """What the metrics adapter serves: the metric's name and the series that it comes from."""
    rules = yaml.safe_load((K8S / "prometheus-adapter.yaml").read_text("utf-8"))["rules"]["custom"]
    series = [re.split(r"{", rule["seriesQuery"])[0] for rule in rules]
    return {rule.get("name", {}).get("as", name): name for rule, name in zip(rules, series, strict=True)}


def test_the_adapter_reads_series_that_exist() -> None:
    assert set(adapter().values()) <= exposed()


def test_autoscaling_uses_what_the_adapter_serves() -> None:
    scalers = installation("production").of_kind("HorizontalPodAutoscaler")
    used = {metric["pods"]["metric"]["name"] for each in scalers for metric in each["spec"]["metrics"]}
    assert used == set(adapter())


@every_installation
def test_every_pod_with_metrics_is_scraped_once(overlay: str) -> None:
    """The rule that keeps targets takes exactly the ports that NetworkPolicies open to monitoring."""
    (job,) = yaml.safe_load((K8S / "prometheus-scrape.yaml").read_text("utf-8"))["scrape_configs"]
    (keep,) = (rule["regex"] for rule in job["relabel_configs"] if rule.get("action") == "keep")
    for workload in installation(overlay).workloads:
        names = [port["name"] for port in workload.main.get("ports", ())]
        kept = [name for name in names if re.fullmatch(keep, f"{workload.role};{name}")]
        assert len(kept) == (workload.role not in ("report", "results")), workload.name


@pytest.mark.parametrize(
    ("phase", "dropped"), [("Pending", False), ("Running", False), ("Succeeded", True), ("Failed", True)]
)
def test_a_pod_that_has_ended_is_not_a_target_that_is_down(phase: str, dropped: bool) -> None:
    """Pods of Jobs stay until ttlSecondsAfterFinished, with their addresses."""
    (job,) = yaml.safe_load((K8S / "prometheus-scrape.yaml").read_text("utf-8"))["scrape_configs"]
    (rule,) = (rule for rule in job["relabel_configs"] if rule.get("action") == "drop")
    assert rule["source_labels"] == ["__meta_kubernetes_pod_phase"]
    assert (re.fullmatch(rule["regex"], phase) is not None) is dropped
