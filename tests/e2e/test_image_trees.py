"""The trees that scripts/build_image_tree.sh makes: what an image holds, as plain folders.

POLICYSWEEP_IMAGE_TREES names the folder with one tree per service. tests/e2e/test_manifests.py runs a sweep
from them.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

TREES = os.environ.get("POLICYSWEEP_IMAGE_TREES")
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(TREES is None, reason="POLICYSWEEP_IMAGE_TREES names no trees: `make image-check`"),
]

MEGABYTES = {"simulator": 150, "agent": 100, "judge": 150, "policybank": 400, "cli": 480}
"""What a tree may hold. The base image adds its Python, about 130."""

EXTRAS = ("policysweep.interop.tables",)
"""Modules of optional extras, which no image has: pyarrow alone is as large as the rest."""


def tree(service: str) -> Path:
    assert TREES is not None
    return Path(TREES).absolute() / service


@pytest.mark.parametrize("service", MEGABYTES)
def test_it_starts_and_tells_its_settings(service: str) -> None:
    done = subprocess.run(
        [tree(service) / "bin" / "entrypoint", "--help"], env={}, cwd="/", capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert ("Commands:" if service == "cli" else "--listen") in done.stdout


@pytest.mark.parametrize("service", MEGABYTES)
def test_it_is_small_and_installs_nothing_more(service: str) -> None:
    files = [path for path in tree(service).rglob("*") if path.is_file() and not path.is_symlink()]
    assert sum(path.stat().st_size for path in files) < MEGABYTES[service] * 1_000_000
    assert not [path for path in files if path.name in ("pip", "uv", "pytest")]


@pytest.mark.parametrize("service", MEGABYTES)
def test_the_code_is_installed_and_compiled(service: str) -> None:
    """Nobody may write there, so bytecode that is missing would be made again at every start."""
    (installed,) = tree(service).glob("lib/python*/site-packages/policysweep")
    modules = list(installed.rglob("*.py"))
    assert modules
    assert all(list((path.parent / "__pycache__").glob(f"{path.stem}.*.pyc")) for path in modules)


@pytest.mark.parametrize("service", MEGABYTES)
def test_every_module_that_it_may_import_can_be(service: str) -> None:
    """Many are imported when they are needed: what is missing would be missed in the middle of a run."""
    package = "policysweep" if service == "cli" else f"services.{service}"
    code = (
        "import importlib, pkgutil, sys; package = importlib.import_module(sys.argv[1])\n"
        "for module in pkgutil.walk_packages(package.__path__, f'{sys.argv[1]}.'):\n"
        "    if not module.name.endswith('__main__') and module.name not in sys.argv[2:]:\n"
        "        importlib.import_module(module.name)"
    )
    done = subprocess.run(
        [tree(service) / "bin" / "python", "-c", code, package, *EXTRAS],
        env={},
        cwd="/",
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("service", ["simulator", "judge", "cli"])
def test_tau2_bench_is_there(service: str) -> None:
    code = "from policysweep.domains.tau2.domain import load_domain; load_domain('airline')"
    done = subprocess.run(
        [tree(service) / "bin" / "python", "-c", code], env={}, cwd="/", capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
