"""The wheel that images are made of holds every file that the code reads at run time."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from .rendering import ROOT

_BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"


def test_it_holds_every_prompt_rubric_data_set_and_asset(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for name in ("policysweep", "services"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, source)
    files = {str(path.relative_to(source)) for path in source.glob("*/**/*") if path.is_file()}
    done = subprocess.run(
        [sys.executable, "-c", _BUILD, str(tmp_path)], cwd=source, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert packed == files
    kinds = {Path(name).suffix for name in packed}
    assert kinds >= {".py", ".md", ".toml", ".json", ".jsonl", ".js", ".css"}
