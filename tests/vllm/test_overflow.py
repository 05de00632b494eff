"""Conversations that do not fit into the agent's context."""

from __future__ import annotations

from pathlib import Path

from policysweep.v1 import episode_pb2 as ep
from scripts.vllm.serve import Server

from .support import write_sweep


def test_a_prompt_without_room_is_a_result_of_its_own_class(narrow: Server, tmp_path: Path) -> None:
    """Policy and tools alone are longer than this context."""
    sweep = write_sweep(tmp_path, narrow, "tiny", judges=[])
    code, output = sweep.run()
    assert code == 0, output
    assert not sweep.failures()
    assert sweep.verify()[0] == 0
    for record in sweep.records():
        assert record.episode.end.reason == ep.END_REASON_CONTEXT_OVERFLOW
        assert record.episode.end.fault == ep.FAULT_PARTY_AGENT
        assert record.attempts == 1
