"""Model servers that fail in mid-sweep: what is tried again, what is listed, what never becomes a score."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest

from policysweep.models.rehearsal import RehearsalConfig, RehearsalServer
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import run_pb2

pytestmark = pytest.mark.e2e


def against(server: RehearsalServer, **changes: Any) -> dict[str, Any]:
    """A sweep of three units whose models are all on one server."""
    return {
        "scenarios": {"limit": 3},
        "agents": [{"name": "fair", "model": "rehearsal-fair", "model_url": server.url}],
        "customer": {"model": "rehearsal-customer", "model_url": server.url},
        **changes,
    }


def records(sweep: Any) -> list[run_pb2.UnitRecord]:
    return [run_pb2.UnitRecord.FromString(path.read_bytes()) for path in sweep.records]


def failures(sweep: Any) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted((sweep.folder / "failures").glob("*.json"))]


@pytest.mark.parametrize("fault", ["http_429", "http_503", "http_500", "reset", "reset_mid_body"])
async def test_passing_faults_leave_every_unit_recorded(make_sweep: Any, fault: str) -> None:
    async with RehearsalServer(RehearsalConfig(faults={fault: 0.05}, retry_after=0.1)) as server:
        sweep = make_sweep(**against(server, max_attempts=30))
        code, output = await asyncio.to_thread(sweep.run)
    assert code == 0, output
    assert len(sweep.records) == 3
    assert all(record.episode.end.fault == ep.FAULT_PARTY_UNSPECIFIED for record in records(sweep))
    assert sweep.verify()[0] == 0


async def test_what_failed_is_listed_and_alone_run_again(make_sweep: Any) -> None:
    """A garbled answer is asked for as often as configured; what is sound is not played again."""
    async with (
        RehearsalServer() as sound,
        RehearsalServer(RehearsalConfig(faults={"truncated_json": 1.0})) as broken,
    ):
        spec = against(sound, max_attempts=2)
        spec["agents"].append({"name": "strict", "model": "rehearsal-strict", "model_url": broken.url})
        sweep = make_sweep(**spec)
        code, output = await asyncio.to_thread(sweep.run)
        assert code == 1
        assert "3 failed" in output
        assert {record.unit.agent for record in records(sweep)} == {"fair"}
        assert [[attempt["reason"] for attempt in unit["attempts"]] for unit in failures(sweep)] == [
            ["MODEL_SERVER_GARBLED"] * 2
        ] * 3
        played = sweep.contents()
        broken.set_faults({})
        code, output = await asyncio.to_thread(sweep.run)
    assert code == 0
    assert "3 units recorded now, 3 before" in output
    assert played.items() <= sweep.contents().items()


async def test_a_model_that_stalls_cannot_outlive_the_deadline(make_sweep: Any) -> None:
    limits = {"agent_call_seconds": 1.0, "unit_seconds": 2.0}
    async with RehearsalServer(RehearsalConfig(faults={"stall": 1.0})) as server:
        sweep = make_sweep(**against(server, max_attempts=2, limits=limits))
        started = time.monotonic()
        code, output = await asyncio.to_thread(sweep.run)
    assert code == 1, output
    assert "TIMEOUT" in failures(sweep)[0]["attempts"][0]["reason"]
    # Generous: two attempts of two seconds, waiting, and the start of the processes.
    assert time.monotonic() - started < 100


async def test_an_outage_costs_no_attempts_and_the_sweep_goes_on(make_sweep: Any) -> None:
    async with RehearsalServer(RehearsalConfig(faults={"reset": 1.0})) as server:
        sweep = make_sweep(**against(server, max_attempts=1))
        running = asyncio.create_task(asyncio.to_thread(sweep.run))
        await asyncio.sleep(12)
        server.set_faults({})
        code, output = await running
    assert code == 0, output
    assert len(sweep.records) == 3
    assert not failures(sweep)


async def test_an_outage_that_lasts_gives_the_agent_up_and_says_so(make_sweep: Any) -> None:
    async with RehearsalServer(RehearsalConfig(faults={"http_503": 1.0}, retry_after=0.1)) as server:
        sweep = make_sweep(**against(server, outage_seconds=2.0))
        code, output = await asyncio.to_thread(sweep.run)
    assert code == 1
    assert "agent fair was given up after an outage" in output
    assert not sweep.records


@pytest.mark.parametrize(
    ("fault", "counter"),
    [("malformed_tool_call", "agent_malformed_calls"), ("unknown_tool", "agent_unknown_tools")],
)
async def test_a_model_that_misbehaves_is_recorded_with_who_failed(
    make_sweep: Any, fault: str, counter: str
) -> None:
    async with RehearsalServer() as server, RehearsalServer(RehearsalConfig(faults={fault: 1.0})) as broken:
        spec = against(server)
        spec["agents"][0]["model_url"] = broken.url
        sweep = make_sweep(**spec)
        code, output = await asyncio.to_thread(sweep.run)
    assert code == 0, output
    assert not failures(sweep)
    for record in records(sweep):
        assert record.episode.end.fault == ep.FAULT_PARTY_AGENT
        assert record.episode.outcome == ep.OUTCOME_UNSPECIFIED
        assert getattr(record.episode.errors, counter) > 0


async def test_a_customer_that_misbehaves_lowers_the_coverage_and_not_the_agent(make_sweep: Any) -> None:
    async with (
        RehearsalServer() as server,
        RehearsalServer(RehearsalConfig(faults={"empty_message": 1.0})) as broken,
    ):
        spec = against(server)
        spec["customer"]["model_url"] = broken.url
        sweep = make_sweep(**spec)
        code, output = await asyncio.to_thread(sweep.run, report=True)
    assert code == 0, output
    assert all(record.episode.end.fault == ep.FAULT_PARTY_CUSTOMER for record in records(sweep))
    summary = json.loads((sweep.folder / "report.json").read_text())
    assert summary["agents"]["fair"]["coverage"]["coverage"] == 0


async def test_a_full_context_is_tried_once_and_recorded(make_sweep: Any) -> None:
    async with RehearsalServer() as server, RehearsalServer(RehearsalConfig(max_model_len=2_000)) as small:
        spec = against(server)
        spec["agents"][0]["model_url"] = small.url
        sweep = make_sweep(**spec)
        code, output = await asyncio.to_thread(sweep.run)
    assert code == 0, output
    for record in records(sweep):
        assert record.attempts == 1
        assert record.episode.end.reason == ep.END_REASON_CONTEXT_OVERFLOW
        assert record.episode.end.fault == ep.FAULT_PARTY_AGENT
