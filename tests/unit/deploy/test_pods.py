"""What every pod of an installation must be: unprivileged, bounded, watched, of a known image."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from policysweep import __version__

from .rendering import Installation, Resource, Workload, every_installation, installation

Rule = Callable[[Installation, Workload], None]
_SECRET = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)$")


def restricted(_: Installation, workload: Workload) -> None:
    """The restricted Pod Security Standard, and a root file system that cannot be written."""
    pod = workload.pod
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"].get("runAsUser") != 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for shared in ("hostNetwork", "hostPID", "hostIPC"):
        assert not pod.get(shared)
    for container in workload.containers:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
    assert not any("hostPath" in volume for volume in pod["volumes"])


def without_token(owner: Installation, workload: Workload) -> None:
    """No way to the Kubernetes API, and no variables that links of Services would add."""
    assert workload.pod["automountServiceAccountToken"] is False
    assert workload.pod["enableServiceLinks"] is False
    (account,) = owner.of_kind("ServiceAccount")
    assert workload.pod["serviceAccountName"] == account["metadata"]["name"]
    assert account["automountServiceAccountToken"] is False


def writable_where_it_writes(_: Installation, workload: Workload) -> None:
    """A /tmp, and no mount without a volume or volume without a mount."""
    claims = {each["metadata"]["name"] for each in workload.spec.get("volumeClaimTemplates", ())}
    volumes = {each["name"] for each in workload.pod["volumes"]} | claims
    mounted = {each["name"] for container in workload.containers for each in container["volumeMounts"]}
    assert volumes == mounted
    for container in workload.containers:
        assert {"name": "tmp", "mountPath": "/tmp"} in container["volumeMounts"]
    for volume in workload.pod["volumes"]:
        assert volume.get("emptyDir") != {}, "an emptyDir needs a limit"


def pinned(_: Installation, workload: Workload) -> None:
    """Images by version: ours by the version of this checkout."""
    for container in workload.containers:
        name, _, tag = container["image"].rpartition(":")
        assert name, f"{container['image']} has no tag"
        assert tag != "latest"
        if name.startswith("policysweep/"):
            assert tag == __version__


def bounded(_: Installation, workload: Workload) -> None:
    """Requests and limits of processor and memory."""
    for container in workload.containers:
        requests, limits = container["resources"]["requests"], container["resources"]["limits"]
        assert requests.keys() >= {"cpu", "memory"}
        assert limits.keys() >= {"cpu", "memory"}
        assert mebibytes(requests["memory"]) <= mebibytes(limits["memory"])


def mebibytes(quantity: str) -> int:
    return int(quantity[:-2]) * {"Mi": 1, "Gi": 1024}[quantity[-2:]]


def watched(_: Installation, workload: Workload) -> None:
    """Probes: a Job has an exit code instead. What may end a pod asks for its process, without its needs."""
    for container in workload.containers:
        probes = {name: container.get(f"{name}Probe") for name in ("startup", "readiness", "liveness")}
        if workload.kind == "Job":
            assert not any(probes.values())
            continue
        assert all(probes.values())
        liveness = container["livenessProbe"]
        for ends_the_pod in (liveness, container["startupProbe"]):
            assert "service" not in ends_the_pod.get("grpc", {})
        assert liveness["failureThreshold"] * liveness["periodSeconds"] >= 30


def secrets_by_reference(_: Installation, workload: Workload) -> None:
    """No value of a secret in a manifest: names of variables and of mounted files at most."""
    mounted = tuple(f"{each['mountPath']}/" for each in workload.main["volumeMounts"])
    for name, value in workload.environment().items():
        named = name.endswith("_API_KEY_ENV") or (name.endswith("_TLS_KEY") and value.startswith(mounted))
        assert named or not _SECRET.search(name), f"{name}={value}"


RULES: list[Rule] = [
    restricted,
    without_token,
    writable_where_it_writes,
    pinned,
    bounded,
    watched,
    secrets_by_reference,
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@every_installation
def test_pods(overlay: str, rule: Rule) -> None:
    owner = installation(overlay)
    problems = []
    for workload in owner.workloads:
        try:
            rule(owner, workload)
        except (AssertionError, KeyError) as error:
            problems.append(f"{workload.kind} {workload.name}: {error!r}")
    assert not problems


@every_installation
def test_no_secret_and_no_role_is_applied(overlay: str) -> None:
    allowed = {
        "ConfigMap", "Deployment", "HorizontalPodAutoscaler", "Job", "Namespace", "NetworkPolicy",
        "PersistentVolumeClaim", "PodDisruptionBudget", "Service", "ServiceAccount", "StatefulSet",
    }  # fmt: skip
    assert {each["kind"] for each in installation(overlay).resources} <= allowed


@every_installation
def test_the_namespace_enforces_what_the_pods_promise(overlay: str) -> None:
    owner = installation(overlay)
    (namespace,) = owner.of_kind("Namespace")
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    others = {each["metadata"]["namespace"] for each in owner.resources if each is not namespace}
    assert others == {namespace["metadata"]["name"]}


@every_installation
def test_no_two_resources_have_one_name(overlay: str) -> None:
    seen: dict[tuple[str, str], Resource] = {}
    for each in installation(overlay).resources:
        assert seen.setdefault((each["kind"], each["metadata"]["name"]), each) == each
