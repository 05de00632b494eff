"""The benchmark of a real server's prefix cache, against the rehearsal server, which counts as vLLM does."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import __main__, vllm
from policysweep.models.rehearsal import RehearsalConfig, RehearsalServer

MODELS = {"agent": "rehearsal-fair", "customer": "rehearsal-customer", "judge": "rehearsal-judge"}


@pytest.mark.e2e
async def test_the_servers_own_count_stands_beside_the_ideal_of_the_same_requests(tmp_path: Path) -> None:
    async with RehearsalServer(RehearsalConfig()) as server:
        figures = await vllm.measure(server.url, str(tmp_path), MODELS)
    counted, ideal = figures["server"], figures["ideal"]
    assert counted["queries"] > counted["hits"] > 0
    assert {role for role, row in ideal.items() if row["calls"]} == {"agent", "customer", "judge", "all"}
    assert ideal["all"]["calls"] == sum(ideal[role]["calls"] for role in vllm.ROLES)
    # The rehearsal server has an unlimited cache of 16-token blocks, as the ideal has, one for each model.
    assert counted["share"] == pytest.approx(ideal["all"]["over_sweep"], abs=0.03)


def test_without_a_server_the_case_is_left_out_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(vllm.URL, raising=False)
    __main__.main([__main__.VLLM])
    assert f"left out: {vllm.URL} names no vLLM server" in capsys.readouterr().out
