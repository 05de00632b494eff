"""Every folder of deploy/k8s renders, to resources that the oldest and the newest Kubernetes accept."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from .rendering import K8S, SWEEPS_OF, Resource, build, compose, folders, named

kubernetes_validate = pytest.importorskip("kubernetes_validate", reason="`make setup` brings the schemas")

OLDEST = "1.33"
"""The first Kubernetes with `backoffLimitPerIndex` for good."""


@pytest.fixture(scope="module", autouse=True)
def _schemas_read_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        utils = kubernetes_validate.utils
        patch.setattr(utils, "schema_contents", functools.cache(utils.schema_contents))
        yield


def check(resource: Resource) -> None:
    for version in (OLDEST, kubernetes_validate.latest_version()):
        kubernetes_validate.validate(resource, version, strict=True)


@pytest.mark.parametrize("folder", folders("Kustomization"), ids=named)
def test_it_renders_to_valid_resources(folder: Path) -> None:
    resources = build(folder)
    assert resources
    for resource in resources:
        check(resource)


def test_an_unknown_field_would_be_found() -> None:
    (job,) = (each for each in build(K8S / "sweeps" / "rehearsal") if each["kind"] == "Job")
    spec = {**job["spec"], "backoffLimitPerIndexes": 1}
    with pytest.raises(kubernetes_validate.ValidationError, match="backoffLimitPerIndexes"):
        check({**job, "spec": spec})


def test_every_component_is_taken_in_somewhere_or_tested_below() -> None:
    used = {
        (file.parent / path).resolve()
        for file in K8S.rglob("kustomization.yaml")
        for path in yaml.safe_load(file.read_text("utf-8")).get("components", ())
    }
    optional = {K8S / "components" / name for name in ("kueue", "external-model-servers")}
    assert set(folders("Component")) == used | optional


@pytest.mark.parametrize("job", ["sweeps/rehearsal", "sweeps/rehearsal/report", "streams/open-models"])
def test_a_job_can_wait_in_a_queue(tmp_path: Path, job: str) -> None:
    resources = compose(tmp_path, resources=[job], components=["components/kueue"])
    (queued,) = (each for each in resources if each["kind"] == "Job")
    check(queued)
    assert queued["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "policysweep"
    assert queued["spec"]["suspend"] is True


def test_models_can_be_served_elsewhere(tmp_path: Path) -> None:
    resources = compose(
        tmp_path, resources=["base", "agents/hosted"], components=["components/external-model-servers"]
    )
    for resource in resources:
        check(resource)


def test_every_overlay_has_its_sweep() -> None:
    assert {each.name for each in (K8S / "overlays").iterdir()} == set(SWEEPS_OF)
    assert {each.name for each in (K8S / "sweeps").iterdir()} == set(SWEEPS_OF.values())


@pytest.mark.parametrize(
    "name", ["agents/rehearsal-strict", "agents/qwen3-8b", "models/qwen3-8b", "models/gpt-oss-20b"]
)
def test_a_model_is_a_folder_of_a_few_lines(name: str) -> None:
    (file,) = (K8S / name).iterdir()
    lines = [line for line in file.read_text("utf-8").splitlines() if not line.startswith("#")]
    assert len(lines) <= 15
