"""Mutual TLS in an installation: who serves it, who calls with what, and who asks for health without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from policysweep.config import load_config
from policysweep.rpc.tls import TlsFiles, tls_files

from .rendering import Installation, Workload, compose, installation
from .test_names import CONFIGS, parse
from .test_network import between

SERVICES = tuple(CONFIGS)
FOLDER = Path("/etc/policysweep-tls")
FILES = TlsFiles(FOLDER / "tls.crt", FOLDER / "tls.key", FOLDER / "ca.crt")


def secret(workload: Workload) -> str:
    """The Secret whose keys are the files, mounted where the files are looked for and read only."""
    (mount,) = (each for each in workload.main["volumeMounts"] if each["name"] == "tls")
    assert mount == {"name": "tls", "mountPath": str(FOLDER), "readOnly": True}
    (volume,) = (each for each in workload.pod["volumes"] if each["name"] == "tls")
    return str(volume["secret"]["secretName"])


@pytest.fixture(name="production")
def production_fixture() -> Installation:
    return installation("production")


def test_every_service_shows_the_certificate_of_its_role(
    production: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    for workload in production.in_role(*SERVICES):
        with monkeypatch.context() as patch:
            for name, value in workload.environment().items():
                patch.setenv(name, value)
            config = load_config(CONFIGS[workload.role], workload.role, [])
        assert tls_files(config.tls_cert, config.tls_key, config.tls_ca) == FILES
        assert secret(workload) == f"{workload.role}-tls"
        assert config.health_listen == f"0.0.0.0:{workload.port('health')}"


def test_every_driver_calls_with_its_own(production: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    drivers = production.in_role("driver")
    assert {each.name.partition("-")[0] for each in drivers} == {"sweep", "streams", "rejudge"}
    for workload in drivers:
        with monkeypatch.context() as patch:
            for name, value in workload.environment().items():
                patch.setenv(name, value)
            options = parse(workload.arguments(JOB_COMPLETION_INDEX="0")).params
        assert tls_files(options["tls_cert"], options["tls_key"], options["tls_ca"]) == FILES
        assert secret(workload) == "driver-tls"


def test_the_kubelet_asks_where_no_certificate_is_asked_for(production: Installation) -> None:
    """And no other pod can: the port is in no rule."""
    for workload in production.in_role(*SERVICES):
        port = workload.port("health")
        assert port != workload.port("grpc")
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            assert workload.main[probe]["grpc"]["port"] == port
        assert not any(
            port in between(production, workload, "Ingress", other) for other in production.workloads
        )


def test_without_the_component_the_same_jobs_use_no_tls() -> None:
    for workload in installation("local").in_role("driver"):
        assert not [name for name in workload.environment() if "TLS" in name]
        (volume,) = (each for each in workload.pod["volumes"] if each["name"] == "tls")
        assert volume["secret"]["optional"] is True


def test_an_agent_with_settings_of_its_own_keeps_them(tmp_path: Path) -> None:
    resources = compose(
        tmp_path,
        resources=["base", "agents/hosted"],
        components=["components/external-model-servers", "components/tls"],
        namespace="policysweep",
    )
    (agent,) = Installation("hosted", resources).in_role("agent")
    assert {each["name"] for each in agent.main["env"]} >= {"MODEL_API_KEY", "POLICYSWEEP_AGENT_TLS_CERT"}
    assert secret(agent) == "agent-tls"
