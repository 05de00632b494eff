"""A sweep whose agents read a policy bank, every service a process. The rehearsal model plays all parts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import pytest

from policysweep.bank_client import BankClient
from policysweep.launch import Launcher
from policysweep.rpc.client import Channels
from policysweep.v1 import policybank_pb2 as pb
from policysweep.v1 import policybank_pb2_grpc, run_pb2

from .conftest import Sweep

NO_CURATOR = ("--model-url", "http://127.0.0.1:9/v1", "--model", "none")


@pytest.fixture
async def launcher(tmp_path: Path) -> AsyncIterator[Launcher]:
    async with Launcher(tmp_path / "logs", print) as launcher:
        yield launcher


@pytest.fixture
async def bank(tmp_path: Path, launcher: Launcher, command: Callable[..., tuple[int, str]]) -> str:
    """The address of a service, with a curator, that has the bank `returns`."""
    store = str(tmp_path / "banks")
    argv = ("bank", "create", "returns", "--dataset", "builtin", "--store", store)
    code, output = await asyncio.to_thread(command, *argv, "--model", "rehearsal-judge")
    assert code == 0, output
    rehearsal = await launcher.start("rehearsal", "policysweep rehearsal")
    curator = ("--model-url", f"http://{rehearsal}/v1", "--model", "rehearsal-judge")
    return await launcher.start("policybank", "services.policybank", ["--store", store, *curator])


def agents(bank: str) -> list[Mapping[str, object]]:
    named = {"id": "returns", "revision": 1, "target": bank}
    return [
        {"name": "plain", "model": "rehearsal-fair"},
        {"name": "reader", "model": "rehearsal-fair", "memory": "retrieve", "bank": named},
    ]


def records(sweep: Sweep) -> dict[str, list[run_pb2.UnitRecord]]:
    """By agent, in the order of scenarios."""
    found = [run_pb2.UnitRecord.FromString(path.read_bytes()) for path in sweep.records]
    found.sort(key=lambda record: record.unit.scenario_id)
    return {name: [each for each in found if each.unit.agent == name] for name in ("plain", "reader")}


def consulted(record: run_pb2.UnitRecord) -> list[str]:
    return [each for call in record.episode.model_calls for each in call.consulted_spec_ids]


async def teach(channels: Channels, target: str, record: run_pb2.UnitRecord) -> pb.Revision:
    """A lesson about the very words of a customer, who would find it first."""
    stub: policybank_pb2_grpc.PolicyBankServiceAsyncStub = policybank_pb2_grpc.PolicyBankServiceStub(
        channels.get(target)
    )
    opening = record.episode.messages[0].content
    request = pb.RecordFeedbackRequest(
        request_id="lesson",
        bank_id="returns",
        expected_revision=1,
        episode=record.episode,
        task_id=record.unit.task_id,
        task_query=opening,
        explanation=f"{opening} In this case a gift card is due.",
        regime=pb.FEEDBACK_REGIME_EXPLANATION,
    )
    return (await stub.RecordFeedback(request, timeout=60)).revision


async def altered(channels: Channels, source: str, target: str) -> None:
    """Put the bank of one service into another, with one header changed."""
    found = await BankClient(channels, source).read(pb.BankRef(bank_id="returns", revision=1))
    content = list(found.records())
    content[0].revision.entries[0].header = "Something else."
    next(each for each in content if each.HasField("entry")).entry.header = "Something else."
    await BankClient(channels, target).restore("returns", content)


async def test_every_unit_reads_the_bank_as_the_manifest_has_it(
    make_sweep: Callable[..., Sweep], bank: str, launcher: Launcher
) -> None:
    sweep = make_sweep(scenarios={"limit": 2}, agents=agents(bank))
    code, output = await asyncio.to_thread(sweep.run)
    assert code == 0, output
    first = records(sweep)
    assert [len(each) for each in first.values()] == [2, 2]
    assert not any(map(consulted, first["plain"]))
    assert all(map(consulted, first["reader"]))
    async with Channels() as channels:
        entries = (await BankClient(channels, bank).read(pb.BankRef(bank_id="returns"))).entries
        lesson = await teach(channels, bank, first["reader"][0])
    assert {each for record in first["reader"] for each in consulted(record)} <= entries.keys()
    assert (lesson.number, lesson.kind) == (2, pb.REVISION_KIND_ADD)

    # The bank has moved on. What is played now still reads the first revision, and comes out the same.
    for path in sweep.records:
        path.unlink()
    code, output = await asyncio.to_thread(sweep.run)
    assert (code, "4 units recorded now" in output) == (0, True), output
    again = records(sweep)["reader"]
    assert list(map(consulted, again)) == list(map(consulted, first["reader"]))
    assert [each.episode.messages for each in again] == [each.episode.messages for each in first["reader"]]
    code, output = await asyncio.to_thread(sweep.verify)
    assert (code, output) == (0, "4 of 4 planned units have exactly one record.\n")

    other = await launcher.start("other", "services.policybank", ["--store", "memory", *NO_CURATOR])
    async with Channels() as channels:
        await altered(channels, bank, other)
    elsewhere = make_sweep(scenarios={"limit": 2}, agents=agents(other))
    code, output = await asyncio.to_thread(elsewhere.run)
    assert code == 2
    told = " ".join(output.split())
    assert "agent reader: bank 'returns' at revision 1 holds other entries than when the run began" in told
