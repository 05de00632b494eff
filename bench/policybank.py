"""The policy bank, measured: how long an agent waits for headers and entries, and what a bank costs.

280 banks of 100 entries (4 methods x 2 domains x 7 models x 5 seeds, say) lie in the embedded store of one
service process. This process asks, one call after another and then several at a time.
"""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import uvloop
from rich.console import Console
from rich.table import Table

from bench.processes import cpu_seconds, memory_mb
from policysweep.launch import Launcher
from policysweep.rpc.client import Channels
from policysweep.v1 import policybank_pb2 as pb
from policysweep.v1 import policybank_pb2_grpc

RESULTS = Path(__file__).with_name("results") / "policybank.json"
BANKS = 280
ENTRIES = 100
LEARNT = 40
"""Entries of a bank that were added by feedback; the others were there from the first revision."""
RETRIEVALS = 3_000
RECALLS = 300
RECALLED_BANKS = 5
IN_FLIGHT = 16
CHOSEN = 4
SECONDS = 60.0

BUDGET = {"retrieval_p50_ms": 5, "retrieval_p99_ms": 20}

_EMBEDDER = pb.Embedder(name="all-MiniLM-L6-v2-onnx-int8", dimension=384)
_WORDS = (
    "refund",
    "exchange",
    "flight",
    "passenger",
    "insurance",
    "cabin",
    "baggage",
    "reservation",
    "certificate",
    "delay",
    "cancellation",
    "order",
    "delivery",
    "address",
    "payment",
    "item",
    "reason",
    "policy",
    "customer",
    "member",
    "airport",
    "date",
    "weather",
    "health",
    "defect",
)


def run(console: Console) -> dict[str, Any]:
    """Measure, print the figures; gives what belongs into the results."""
    with (
        tempfile.TemporaryDirectory() as folder,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        row = runner.run(_measure(Path(folder)))
    table = Table(title=f"{BANKS} banks of {ENTRIES} entries in the embedded store")
    for name in ("Figure", "Measured", "Budget"):
        table.add_column(name, justify="left" if name == "Figure" else "right")
    for name, value in row.items():
        table.add_row(name.replace("_", " "), f"{value:,}", str(BUDGET.get(name, "")))
    console.print(table)
    return {"budget": BUDGET, "measured": row}


def save(document: Mapping[str, Any]) -> None:
    """Write the figures to bench/results/."""
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


async def _measure(folder: Path) -> dict[str, float]:
    flags = ["--store", str(folder / "bank"), "--model-url", "http://127.0.0.1:9", "--model", "none"]
    row: dict[str, float] = {}
    async with Launcher(folder / "logs", print) as launcher, Channels() as channels:
        stub = policybank_pb2_grpc.PolicyBankServiceStub(
            channels.get(await launcher.start("policybank", "services.policybank", flags))
        )
        started = time.perf_counter()
        for number in range(BANKS):
            await stub.ImportBank(iter(list(_imported(number))), timeout=SECONDS)
        row["import_ms_per_bank"] = round((time.perf_counter() - started) * 1000 / BANKS, 1)
    async with Launcher(folder / "logs", print) as launcher, Channels() as channels:
        started = time.perf_counter()
        address = await launcher.start("policybank", "services.policybank", flags)
        row["start_seconds"] = round(time.perf_counter() - started, 1)
        row["start_cpu_seconds"] = round(cpu_seconds(launcher.pids()["policybank"]), 1)
        row.update(await _reads(_Reader(channels, address), launcher.pids()["policybank"]))
        row["pss_mb"] = round(memory_mb(launcher.pids().values())["pss"])
    return row


async def _reads(reader: _Reader, pid: int) -> dict[str, float]:
    chance = random.Random(7)
    row: dict[str, float] = {}
    first = [await _timed(reader.retrieve, f"bank-{number}") for number in range(BANKS)]
    row.update(_spread("first_retrieval_of_a_bank", first))
    before = cpu_seconds(pid)
    banks = [f"bank-{chance.randrange(BANKS)}" for _ in range(RETRIEVALS)]
    row.update(_spread("retrieval", [await _timed(reader.retrieve, bank) for bank in banks]))
    row["service_cpu_ms_per_retrieval"] = round((cpu_seconds(pid) - before) * 1000 / RETRIEVALS, 2)
    slots = asyncio.Semaphore(IN_FLIGHT)

    async def at_once(bank: str) -> float:
        async with slots:
            return await _timed(reader.retrieve, bank)

    row.update(_spread(f"retrieval_{IN_FLIGHT}_at_once", await asyncio.gather(*map(at_once, banks))))
    asked = [f"bank-{chance.randrange(RECALLED_BANKS)}" for _ in range(RECALLS)]
    made = [await _timed(reader.recall, f"bank-{number}") for number in range(RECALLED_BANKS)]
    row.update(_spread("first_recall_of_a_bank", made))
    row.update(_spread("recall_of_a_new_query", [await _timed(reader.recall, bank) for bank in asked]))
    return row


class _Reader:
    """Reads banks as an agent does."""

    def __init__(self, channels: Channels, address: str) -> None:
        self._stub: Any = policybank_pb2_grpc.PolicyBankServiceStub(channels.get(address))
        self._chance = random.Random(11)

    async def retrieve(self, bank_id: str) -> None:
        """Headers, then some of the entries."""
        ref = pb.BankRef(bank_id=bank_id)
        headers = (await self._stub.ListHeaders(pb.ListHeadersRequest(bank=ref), timeout=SECONDS)).headers
        chosen = [each.capability_id for each in self._chance.sample(list(headers), CHOSEN)]
        request = pb.BatchGetSpecsRequest(bank=ref, capability_ids=chosen)
        found = await self._stub.BatchGetSpecs(request, timeout=SECONDS)
        if len(headers) != ENTRIES or len(found.entries) != CHOSEN:
            raise SystemExit(f"{bank_id} does not hold what was imported: the figures would mean nothing")

    async def recall(self, bank_id: str) -> None:
        """What is nearest to a query that was not asked before."""
        query = " ".join(self._chance.choices(_WORDS, k=12))
        request = pb.RecallRequest(bank=pb.BankRef(bank_id=bank_id), query=query)
        await self._stub.Recall(request, timeout=SECONDS)


async def _timed(call: Callable[[str], Awaitable[None]], bank_id: str) -> float:
    started = time.perf_counter()
    await call(bank_id)
    return time.perf_counter() - started


def _spread(name: str, seconds: Sequence[float]) -> dict[str, float]:
    """Median and 99th percentile in milliseconds."""
    ordered = sorted(seconds)
    places = {"p50": len(ordered) // 2, "p99": min(len(ordered) - 1, len(ordered) * 99 // 100)}
    return {f"{name}_{place}_ms": round(ordered[at] * 1000, 2) for place, at in places.items()}


def _imported(number: int) -> Iterator[pb.ImportBankRequest]:
    """A bank, record by record."""
    chance = random.Random(number)
    entries = [_entry(chance, at) for at in range(ENTRIES)]
    first = pb.Revision(number=1, kind=pb.REVISION_KIND_CREATE, entries=entries[: ENTRIES - LEARNT])
    first.bank.CopyFrom(pb.BankInfo(method=pb.MEMORY_METHOD_POLICY_BANK, embedder=_EMBEDDER))
    revisions = [first]
    for entry in entries[ENTRIES - LEARNT :]:
        entry.revision = len(revisions) + 1
        added = pb.Revision(number=entry.revision, kind=pb.REVISION_KIND_ADD, after=entry)
        added.capability_id = entry.capability_id
        revisions.append(added)
    for revision in revisions:
        yield pb.ImportBankRequest(bank_id=f"bank-{number}", record=pb.BankRecord(revision=revision))
    for entry in entries:
        yield pb.ImportBankRequest(record=pb.BankRecord(entry=entry))


def _entry(chance: random.Random, at: int) -> pb.Entry:
    def words(many: int) -> str:
        return " ".join(chance.choices(_WORDS, k=many))

    spec = pb.Spec(
        trigger=words(12),
        preconditions=words(20),
        eligibility=words(30),
        action=words(40),
        key_insight=words(15),
    )
    return pb.Entry(
        capability_id=f"capability_{at:03d}", header=words(10), spec=spec, tool_names=[words(1)], revision=1
    )
