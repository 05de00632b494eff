"""`policysweep probe` against real vLLM servers."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from scripts.vllm.serve import MODELS, Server

from .support import SECONDS, command


def test_the_probe_finds_what_the_server_was_started_with(tiny: Server, tmp_path: Path) -> None:
    """Whether a model with random weights is of use is another question: the exit code is not looked at."""
    out = tmp_path / "probe"
    done = subprocess.run(
        command("probe", tiny.url, "--quick", "--time-limit", str(SECONDS), "--out", str(out), "--json"),
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode in (0, 1), done.stderr
    found = json.loads(done.stdout)
    assert (found["model"], found["rehearsal"]) == ("tiny", False)
    verdicts = {name: finding["verdict"] for name, finding in found["findings"].items()}
    for capability in ("served", "chat", "json schema", "logprobs", "usage", "prefix cache", "tool results"):
        assert verdicts[capability] == "yes", found["findings"][capability]
    # Greedy nonsense may fill a call to the token limit. It is held to the schema all the same.
    for capability in ("tools required", "tools strict"):
        assert verdicts[capability] in ("yes", "unknown"), found["findings"][capability]
    assert str(MODELS["tiny"].context) in json.dumps(found["findings"]["context length"])
    assert json.loads((out / "probe.json").read_text())["findings"] == found["findings"]
