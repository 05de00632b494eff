"""Pods come and go: drained nodes, rollouts and load cost no conversation."""

from __future__ import annotations

from pathlib import Path

import pytest

from policysweep.sweep.spec import LimitsSpec, SweepSpec

from .rendering import NAME, Installation, Workload, compose, every_installation, installation, selected
from .test_names import sweep_of

SERVICES = ("simulator", "agent", "judge", "policybank")
MARGIN_SECONDS = 20
AGE_JITTER = 1.1
"""gRPC ends a connection up to a tenth later than its age."""


def setting(workload: Workload, name: str) -> float:
    return float(workload.environment()[f"POLICYSWEEP_{workload.role.upper()}_{name}"])


def drain_seconds(workload: Workload) -> float:
    return setting(workload, "DRAIN_SECONDS")


def sleep_seconds(workload: Workload) -> int:
    """How long a pod that goes keeps on serving before it is told to drain."""
    return int(workload.main["lifecycle"]["preStop"]["sleep"]["seconds"])


def limits_of(owner: Installation, tmp_path: Path) -> list[LimitsSpec]:
    """Limits of the sweeps that are run here, and those that a sweep has by default."""
    sweeps = [each for each in owner.workloads if each.name.startswith("sweep-")]
    default: LimitsSpec = SweepSpec.model_fields["limits"].default
    return [default, *(sweep_of(each, tmp_path).limits for each in sweeps)]


@every_installation
def test_a_pod_has_longer_than_its_drain(overlay: str) -> None:
    for workload in installation(overlay).in_role(*SERVICES):
        ending = sleep_seconds(workload) + drain_seconds(workload) + MARGIN_SECONDS
        assert workload.pod["terminationGracePeriodSeconds"] >= ending, workload.name


@every_installation
def test_a_pod_drains_when_its_old_connections_are_gone(overlay: str) -> None:
    for workload in installation(overlay).in_role(*SERVICES):
        age = setting(workload, "MAX_CONNECTION_AGE_SECONDS")
        assert sleep_seconds(workload) > age * AGE_JITTER, workload.name


@every_installation
def test_a_drain_outlasts_every_call(overlay: str, tmp_path: Path) -> None:
    owner = installation(overlay)
    for limits in limits_of(owner, tmp_path):
        longest = {
            "simulator": limits.unit_seconds,
            "judge": limits.unit_seconds,
            "agent": limits.agent_call_seconds,
        }
        for workload in owner.in_role(*longest):
            assert drain_seconds(workload) >= longest[workload.role], workload.name


@every_installation
def test_an_eviction_takes_one_pod_at_a_time(overlay: str) -> None:
    owner = installation(overlay)
    lasting = [each for each in owner.workloads if each.kind != "Job"]
    covered = []
    for budget in owner.of_kind("PodDisruptionBudget"):
        (workload,) = selected(budget["spec"]["selector"]["matchLabels"], owner.workloads)
        covered.append(workload.name)
        # maxUnavailable and not minAvailable: a single replica must not block the drain of its node.
        assert budget["spec"]["maxUnavailable"] == 1
        assert budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
    assert sorted(covered) == sorted(each.name for each in lasting)


@every_installation
def test_replicas_are_spread(overlay: str) -> None:
    for workload in installation(overlay).in_role(*SERVICES, "rehearsal", "vllm"):
        constraints = workload.pod["topologySpreadConstraints"]
        assert "kubernetes.io/hostname" in [each["topologyKey"] for each in constraints]
        for constraint in constraints:
            assert constraint["labelSelector"] == workload.spec["selector"]


@every_installation
def test_a_selector_takes_the_pods_of_its_workload_alone(overlay: str) -> None:
    owner = installation(overlay)
    for workload in owner.workloads:
        if workload.kind != "Job":
            assert selected(workload.spec["selector"]["matchLabels"], owner.workloads) == [workload]


@every_installation
def test_a_rollout_begins_with_a_new_pod_where_no_gpu_is_needed(overlay: str) -> None:
    for workload in installation(overlay).in_role(*SERVICES, "rehearsal"):
        assert workload.spec["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}


@pytest.mark.parametrize("role", ["judge", "simulator"])
def test_a_second_one_of_a_service_has_pods_of_its_own(role: str, tmp_path: Path) -> None:
    second = compose(
        tmp_path,
        resources=[f"base/{role}"],
        nameSuffix="-second",
        labels=[{"pairs": {"app.kubernetes.io/instance": "second"}, "includeSelectors": True}],
    )
    owner = Installation("two", [*installation("local").resources, *second])
    assert [each.name for each in owner.behind(role)] == [role]
    assert [each.name for each in owner.behind(f"{role}-second")] == [f"{role}-second"]
    for workload in owner.in_role(role):
        assert selected(workload.spec["selector"]["matchLabels"], owner.workloads) == [workload]


def test_production_is_scaled_by_load() -> None:
    owner = installation("production")
    by_name = {each.name: each for each in owner.workloads}
    scaled = set()
    for scaler in owner.of_kind("HorizontalPodAutoscaler"):
        spec = scaler["spec"]
        workload = by_name[spec["scaleTargetRef"]["name"]]
        scaled.add(workload.role)
        assert workload.kind == spec["scaleTargetRef"]["kind"]
        # A number of replicas would be set again by every `kubectl apply`.
        assert "replicas" not in workload.spec
        assert 1 <= spec["minReplicas"] < spec["maxReplicas"]
    assert scaled == {"simulator", "agent", "judge", "vllm"}


@pytest.mark.parametrize("overlay", ["local", "gpu"])
def test_an_installation_without_metrics_adapter_has_a_fixed_size(overlay: str) -> None:
    assert not installation(overlay).of_kind("HorizontalPodAutoscaler")


@every_installation
def test_a_change_of_configuration_rolls_the_pods(overlay: str) -> None:
    """ConfigMaps of services are named after their content."""
    for workload in installation(overlay).in_role(*SERVICES):
        (source,) = (
            each["configMapRef"]["name"] for each in workload.main["envFrom"] if "configMapRef" in each
        )
        assert source.startswith(f"{workload.name}-")
        assert workload.labels[NAME] == workload.role
