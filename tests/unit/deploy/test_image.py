"""The image: what is locked is what was tested, and each service gets all that it needs and little else."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from importlib import metadata

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from policysweep import __version__

from .rendering import K8S, ROOT, installation

SERVICES = ("simulator", "agent", "judge", "policybank", "cli")
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text("utf-8")


def pins(lock: str) -> dict[str, str]:
    """Version by package of a lock file."""
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / lock).read_text("utf-8"), re.MULTILINE))


def restricted() -> Mapping[str, Sequence[str]]:
    """The images of each package that only some get."""
    lines = (ROOT / "deploy" / "image" / "packages.txt").read_text("utf-8").splitlines()
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    assert len({row[0] for row in rows}) == len(rows)
    return {row[0]: row[1:] for row in rows}


def test_images_hold_the_versions_that_were_tested() -> None:
    tested = pins("requirements.lock")
    runtime = pins("requirements-runtime.lock")
    assert runtime == {name: tested.get(name) for name in runtime}


def test_every_dependency_is_locked_for_the_images() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["policybank"]]
    assert {canonicalize_name(Requirement(each).name) for each in wanted} <= pins(
        "requirements-runtime.lock"
    ).keys()


def test_the_table_of_packages_names_what_there_is() -> None:
    table = restricted()
    assert table.keys() <= pins("requirements-runtime.lock").keys()
    assert {image for images in table.values() for image in images} <= set(SERVICES)


def contents(image: str) -> set[str]:
    """Packages of an image."""
    table = restricted()
    return {name for name in pins("requirements-runtime.lock") if image in table.get(name, SERVICES)}


@pytest.mark.parametrize("image", SERVICES)
def test_no_package_of_an_image_lacks_what_it_requires(image: str) -> None:
    kept = contents(image)
    lacking = [
        f"{name} requires {required.name}"
        for name in kept
        for required in map(Requirement, metadata.requires(name) or ())
        if required.marker is None or required.marker.evaluate({"extra": ""})
        if canonicalize_name(required.name) not in kept
    ]
    assert not lacking


def test_the_services_do_without_the_statistics() -> None:
    for image in ("simulator", "agent", "judge"):
        assert not {"scipy", "pandas", "statsmodels", "numpy"} & contents(image)


def test_there_is_an_image_for_every_pod_of_ours() -> None:
    component = yaml.safe_load((K8S / "components" / "images" / "kustomization.yaml").read_text("utf-8"))
    ours = {
        each["name"]: each["newTag"]
        for each in component["images"]
        if each["name"].startswith("policysweep/")
    }
    assert ours == {f"policysweep/{service}": __version__ for service in SERVICES}


def test_the_vector_store_is_as_new_as_its_client() -> None:
    (workload,) = installation("local").in_role("qdrant")
    version = workload.main["image"].rpartition(":v")[2]
    assert version.split(".")[:2] == pins("requirements-runtime.lock")["qdrant-client"].split(".")[:2]


def test_the_image_runs_without_privileges() -> None:
    (user,) = re.findall(r"^USER (\d+):(\d+)$", DOCKERFILE, re.MULTILINE)
    assert int(user[0]) > 0
    groups = {
        each.pod["securityContext"].get("fsGroup")
        for each in installation("local").in_role("driver", "results")
    }
    assert groups == {int(user[1])}, "the volume of results is the group's"


def test_the_base_image_has_a_version() -> None:
    (base,) = re.findall(r"^ARG PYTHON_IMAGE=(\S+)$", DOCKERFILE, re.MULTILINE)
    assert re.fullmatch(r"python:3\.11\.\d+-slim-\w+", base)
    assert set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)) == {"${PYTHON_IMAGE}"}


def test_the_build_sees_what_it_copies_and_nothing_else() -> None:
    copied = set()
    for sources in re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE):
        copied.update(sources.split())
    ignored = (ROOT / "deploy" / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
    assert {line[1:] for line in ignored if line.startswith("!")} == copied
    assert all((ROOT / each).exists() for each in copied)
