"""One scenario on a real model."""

from __future__ import annotations

from pathlib import Path

from scripts.vllm.serve import Server

from .support import write_sweep


def test_a_real_model_plays_agent_and_customer_to_an_end_that_is_recorded(
    smollm: Server, tmp_path: Path
) -> None:
    sweep = write_sweep(
        tmp_path,
        smollm,
        "smollm",
        scenarios={"limit": 1},
        judges=[],
        limits={"max_turns": 2, "agent_call_seconds": 900, "unit_seconds": 1800},
    )
    code, output = sweep.run()
    assert code == 0, output
    assert sweep.verify()[0] == 0
    (record,) = sweep.records()
    assert record.attempts == 1
    assert len(record.episode.messages) > 1
    assert not record.episode.rehearsal
