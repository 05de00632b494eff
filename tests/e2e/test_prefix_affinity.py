"""Two replicas of a model server behind a router that keeps a session on one of them."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from bench.model_proxy import ModelProxy, pick
from policysweep.launch import Launcher
from policysweep.models.rehearsal import RehearsalConfig, RehearsalServer
from policysweep.sweep.driver import Driver, load_inputs
from policysweep.sweep.runs import prepare_run
from policysweep.sweep.spec import SweepSpec

pytestmark = pytest.mark.e2e


async def _cached_share(folder: Path, *, affine: bool) -> tuple[float, dict[str, set[str]]]:
    """Cached share of the prompt tokens of a small sweep, and the models that each session asked for."""
    sessions = defaultdict[str, set[str]](set)

    def keep(session: str, body: bytes) -> None:
        sessions[session].add("customer" if b'"rehearsal-customer"' in body else "agent")

    async with RehearsalServer(RehearsalConfig()) as one, RehearsalServer(RehearsalConfig()) as two:
        servers = [url.removesuffix("/v1") for url in (one.url, two.url)]
        async with ModelProxy(servers, keep, affine=affine) as proxy:
            model = {"model_url": f"{proxy.url}/v1"}
            spec = SweepSpec.model_validate(
                {
                    "name": "affine",
                    "scenarios": {"limit": 8},
                    "agents": [{"name": "fair", "model": "rehearsal-fair", **model}],
                    "customer": {"model": "rehearsal-customer", **model},
                }
            )
            ledger = await prepare_run(str(folder), spec.name)
            async with Launcher(folder / "logs", print) as launcher:
                assert (await Driver(spec, load_inputs(spec)).run(ledger, launcher)).complete
    calls = [call.usage async for record in ledger.read_records() for call in record.episode.model_calls]
    cached = sum(usage.cached_prompt_tokens for usage in calls)
    return cached / sum(usage.prompt_tokens for usage in calls), dict(sessions)


async def test_a_session_finds_its_prefix_again(tmp_path: Path) -> None:
    affine, sessions = await _cached_share(tmp_path / "affine", affine=True)
    in_turn, _ = await _cached_share(tmp_path / "in-turn", affine=False)
    # A conversation of the agent and one of the customer for each of the eight scenarios, told apart.
    assert len(sessions) == 16
    assert all(len(asked) == 1 for asked in sessions.values())
    assert 1 - affine < 0.85 * (1 - in_turn)


def test_sessions_spread_over_the_servers() -> None:
    servers = ["a", "b", "c"]
    chosen = [pick(str(session), servers) for session in range(300)]
    assert all(chosen.count(server) > 60 for server in servers)
    assert pick("x", servers) == pick("x", servers)
