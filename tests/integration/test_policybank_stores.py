"""One contract for all stores of the policy bank.

The run against a Qdrant server is enabled by POLICYSWEEP_TEST_QDRANT_URL, for example http://127.0.0.1:6333.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from qdrant_client import grpc as wire
from qdrant_client.local.persistence import CollectionPersistence

from policysweep.errors import InputError, StoreError
from policysweep.v1 import policybank_pb2 as pb
from services.policybank import qdrant_store
from services.policybank.identity import derived_id
from services.policybank.qdrant_store import EmbeddedStore, QdrantStore, open_embedded, open_server
from services.policybank.store import BankStore, MemoryStore, Vector

from .qdrant_gateway import Gateway, gateway

ROOT = Path(__file__).parents[2]
SERVER = os.environ.get("POLICYSWEEP_TEST_QDRANT_URL")
DIMENSION = 4
HOSTILE = [
    "",
    " ",
    "../../etc/passwd",
    'quote" and \\ and /',
    "line\nbreak\r\n",
    "nul\x00byte",
    "ünïcödé 日本語 \U0001f600",
    "'; DROP TABLE points; --",
    "{{template}} ${x} %s",
    "x" * 5_000,
]


async def embedded(directory: Path) -> EmbeddedStore:
    store = open_embedded(directory, "test")
    await store.prepare(DIMENSION)
    return store


async def gated(port: int, prefix: str, key: str | None = None) -> QdrantStore:
    store = await open_server("http://127.0.0.1:6333", key, port, prefix)
    await store.prepare(DIMENSION)
    return store


async def real_server(prefix: str) -> QdrantStore:
    assert SERVER is not None
    store = await open_server(SERVER, os.environ.get("POLICYSWEEP_TEST_QDRANT_KEY"), 6334, prefix)
    await store.prepare(DIMENSION)
    return store


@pytest.fixture
def gate() -> Iterator[tuple[Gateway, int]]:
    with gateway() as opened:
        yield opened


@pytest.fixture(params=["memory", "embedded", "gateway", "server"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[BankStore]:
    made: BankStore
    match request.param:
        case "memory":
            made = MemoryStore()
        case "gateway":
            _, port = request.getfixturevalue("gate")
            made = await gated(port, "test")
        case "embedded":
            made = await embedded(tmp_path)
        case _:
            if not SERVER:
                pytest.skip("POLICYSWEEP_TEST_QDRANT_URL names no Qdrant server")
            made = await real_server(f"test_{uuid.uuid4().hex}")
    yield made
    await made.close()


def revisions(first: int, last: int, note: str = "") -> list[pb.Revision]:
    return [pb.Revision(number=number, rationale=f"{note}{number}") for number in range(first, last + 1)]


def unit(*numbers: float) -> Vector:
    vector = np.array([*numbers, *[0.0] * (DIMENSION - len(numbers))], dtype=np.float32)
    return vector / np.float32(np.linalg.norm(vector))


class TestBanks:
    async def test_all_banks_are_listed_whatever_they_are_called(self, store: BankStore) -> None:
        assert await store.banks() == []
        for bank_id in HOSTILE:
            await store.append(bank_id, revisions(1, 1))
            await store.append(bank_id, revisions(2, 3))
        await store.name("b", pb.Snapshot(name="of no bank", revision=1))
        assert await store.banks() == sorted(HOSTILE)

    async def test_they_are_listed_over_many_pages(
        self, store: BankStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(qdrant_store, "_PAGE", 3)
        for number in range(10):
            await store.append(f"b{number}", revisions(1, 1))
        assert await store.banks() == [f"b{number}" for number in range(10)]


class TestHistories:
    async def test_a_bank_that_does_not_exist_has_none(self, store: BankStore) -> None:
        assert await store.history("nobody") == []

    async def test_revisions_come_back_in_order(self, store: BankStore) -> None:
        for number in range(1, 12):
            assert await store.append("b", revisions(number, number))
        assert await store.history("b") == revisions(1, 11)
        assert await store.history("b", after=9) == revisions(10, 11)
        assert await store.history("b", after=11) == []

    async def test_a_record_of_many_revisions_is_followed_by_the_next(self, store: BankStore) -> None:
        assert await store.append("b", revisions(1, 30))
        assert await store.append("b", revisions(31, 31))
        assert await store.append("b", revisions(32, 40))
        assert await store.history("b") == revisions(1, 40)
        assert await store.history("b", after=30) == revisions(31, 40)

    async def test_the_first_writer_wins(self, store: BankStore) -> None:
        assert await store.append("b", revisions(1, 1, "mine"))
        assert not await store.append("b", revisions(1, 1, "yours"))
        assert await store.history("b") == revisions(1, 1, "mine")

    async def test_one_of_many_concurrent_writers_wins(self, store: BankStore) -> None:
        attempts = [store.append("b", revisions(1, 1, f"{name} ")) for name in range(8)]
        assert sorted(await asyncio.gather(*attempts)) == [False] * 7 + [True]
        assert len(await store.history("b")) == 1

    async def test_a_large_record_is_whole(self, store: BankStore) -> None:
        large = pb.Revision(number=1, rationale="x" * 3_000_000)
        assert await store.append("b", [large])
        assert await store.history("b") == [large]

    async def test_any_string_is_a_bank(self, store: BankStore) -> None:
        for at, bank_id in enumerate(HOSTILE):
            assert await store.append(bank_id, revisions(1, 1, f"{at} "))
            await store.name(bank_id, pb.Snapshot(name=bank_id, revision=at))
        for at, bank_id in enumerate(HOSTILE):
            assert await store.history(bank_id) == revisions(1, 1, f"{at} ")
            assert await store.snapshots(bank_id) == [pb.Snapshot(name=bank_id, revision=at)]


class TestSnapshots:
    async def test_a_name_stands_for_the_first_revision_that_got_it(self, store: BankStore) -> None:
        assert await store.name("b", pb.Snapshot(name="s", revision=3)) == pb.Snapshot(name="s", revision=3)
        assert await store.name("b", pb.Snapshot(name="s", revision=4)) == pb.Snapshot(name="s", revision=3)

    async def test_they_are_listed_by_name_and_bank(self, store: BankStore) -> None:
        await store.append("b", revisions(1, 1))
        for bank_id, name in (("b", "z"), ("b", "a"), ("other", "m")):
            await store.name(bank_id, pb.Snapshot(name=name, revision=1))
        assert [each.name for each in await store.snapshots("b")] == ["a", "z"]
        assert await store.snapshots("nobody") == []


class TestVectors:
    async def test_the_nearest_come_first(self, store: BankStore) -> None:
        ids = [derived_id("v", str(at)) for at in range(4)]
        vectors = [unit(1, 0), unit(1, 1), unit(0, 1), unit(-1, 0)]
        await store.save_vectors("b", dict(zip(ids, vectors, strict=True)))
        hits = await store.nearest("b", unit(1, 0.1), ids, 3)
        assert [hit[0] for hit in hits] == [ids[0], ids[1], ids[2]]
        assert [hit[1] for hit in hits] == pytest.approx([0.995, 0.774, 0.0995], abs=1e-3)

    async def test_only_what_was_asked_for_is_searched(self, store: BankStore) -> None:
        ids = [derived_id("v", str(at)) for at in range(3)]
        await store.save_vectors("b", {each: unit(1, at) for at, each in enumerate(ids)})
        assert [hit[0] for hit in await store.nearest("b", unit(1), ids[1:], 5)] == ids[1:]
        assert await store.nearest("b", unit(1), [], 5) == []

    async def test_what_is_missing_is_told(self, store: BankStore) -> None:
        there, absent = derived_id("there"), derived_id("absent")
        await store.save_vectors("b", {there: unit(1)})
        assert await store.missing_vectors("b", [there, absent]) == {absent}
        assert [hit[0] for hit in await store.nearest("b", unit(1), [there, absent], 5)] == [there]

    async def test_saving_twice_changes_nothing(self, store: BankStore) -> None:
        for _ in range(2):
            await store.save_vectors("b", {derived_id("v"): unit(1)})
        assert len(await store.nearest("b", unit(1), [derived_id("v")], 5)) == 1


class TestEmbedded:
    async def test_a_bank_outlives_the_process(self, tmp_path: Path) -> None:
        first = await embedded(tmp_path)
        await first.append("b", revisions(1, 3))
        await first.name("b", pb.Snapshot(name="s", revision=2))
        await first.save_vectors("b", {derived_id("v"): unit(1, 2)})
        await first.close()
        second = await embedded(tmp_path)
        assert await second.history("b") == revisions(1, 3)
        assert await second.snapshots("b") == [pb.Snapshot(name="s", revision=2)]
        assert await second.missing_vectors("b", [derived_id("v")]) == set()
        await second.close()

    async def test_eight_threads_with_twenty_writes_each_lose_nothing(self, tmp_path: Path) -> None:
        store = await embedded(tmp_path)
        loop = asyncio.get_running_loop()

        def writer(thread: int) -> None:
            for number in range(1, 21):
                vectors = {derived_id(f"{thread}", f"{number}"): unit(thread + 1, number)}
                for work in (
                    store.append(f"b{thread}", revisions(number, number, f"{thread} ")),
                    store.save_vectors(f"b{thread}", vectors),
                ):
                    asyncio.run_coroutine_threadsafe(work, loop).result()

        await asyncio.gather(*(asyncio.to_thread(writer, thread) for thread in range(8)))
        await store.close()
        reopened = await embedded(tmp_path)
        for thread in range(8):
            assert await reopened.history(f"b{thread}") == revisions(1, 20, f"{thread} ")
            ids = [derived_id(f"{thread}", f"{number}") for number in range(1, 21)]
            assert await reopened.missing_vectors(f"b{thread}", ids) == set()
            best = await reopened.nearest(f"b{thread}", unit(thread + 1, 7), ids, 1)
            assert best[0][0] == ids[6]
        await reopened.close()

    async def test_a_second_process_is_refused(self, tmp_path: Path) -> None:
        store = await embedded(tmp_path)
        code = (
            "from pathlib import Path; from services.policybank.qdrant_store import open_embedded; "
            f"open_embedded(Path({str(tmp_path)!r}), 'test')"
        )
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)  # noqa: ASYNC221 - short
        assert done.returncode != 0
        assert f"{tmp_path} is open in another process: one process at a time" in done.stderr
        await store.close()

    async def test_a_file_is_no_store(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(InputError, match="file cannot hold a policy bank"):
            open_embedded(tmp_path / "file", "test")

    async def test_a_full_disk_leaves_what_was_there(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = await embedded(tmp_path)
        await store.append("b", revisions(1, 1))

        def full(*args: Any) -> None:
            raise sqlite3.OperationalError("database or disk is full")

        with monkeypatch.context() as patch:
            patch.setattr(CollectionPersistence, "persist", full)
            with pytest.raises(StoreError, match=r"cannot write a bank .*: database or disk is full"):
                await store.append("b", revisions(2, 2))
            assert await store.history("b") == revisions(1, 1)
        assert await store.append("b", revisions(2, 2))
        await store.close()

    async def test_another_dimension_is_refused(self, tmp_path: Path) -> None:
        await (await embedded(tmp_path)).close()
        store = open_embedded(tmp_path, "test")
        with pytest.raises(InputError, match=r"holds vectors of 4 numbers, but the embedder gives 8"):
            await store.prepare(8)
        await store.close()

    async def test_killed_at_any_moment_it_holds_whole_records_only(self, tmp_path: Path) -> None:
        """A child writes records without end and is killed; whatever it had reported is there."""
        child = subprocess.Popen(  # noqa: ASYNC220 - it is killed below
            [sys.executable, "-c", _ENDLESS, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        reported = [int(child.stdout.readline()) for _ in range(7)][-1]
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        store = await embedded(tmp_path)
        held = await store.history("b")
        assert len(held) >= reported
        assert held == [pb.Revision(number=each.number, rationale="x" * 20_000) for each in held]
        assert [each.number for each in held] == list(range(1, len(held) + 1))
        assert await store.append("b", [pb.Revision(number=len(held) + 1)])
        await store.close()


_ENDLESS = """
import asyncio, sys
from pathlib import Path
from policysweep.v1 import policybank_pb2 as pb
from services.policybank.qdrant_store import open_embedded

async def main():
    store = open_embedded(Path(sys.argv[1]), "test")
    await store.prepare(4)
    number = 0
    while True:
        number += 1
        await store.append("b", [pb.Revision(number=number, rationale="x" * 20_000)])
        print(number, flush=True)

asyncio.run(main())
"""


class TestServer:
    async def test_collections_are_laid_out_for_tenants(self, gate: tuple[Gateway, int]) -> None:
        held, port = gate
        store = await gated(port, "p")
        await store.append("b", revisions(1, 1))
        assert set(held.indexes) == {
            ("p_revisions", "bank_id", True),
            ("p_revisions", "kind", False),
            ("p_revisions", "number", False),
            ("p_vectors", "bank_id", True),
        }
        assert (held.layouts["p_vectors"].m, held.layouts["p_vectors"].payload_m) == (0, 16)
        assert held.insert_only == [True]
        await store.close()

    async def test_replicas_that_start_together_share_one_set_of_collections(
        self, gate: tuple[Gateway, int]
    ) -> None:
        held, port = gate
        stores = await asyncio.gather(*(gated(port, "p") for _ in range(6)))
        names = [each.name for each in held.qdrant.get_collections().collections]
        assert sorted(names) == ["p_revisions", "p_vectors"]
        won = await asyncio.gather(
            *(each.append("b", revisions(1, 1, f"{at} ")) for at, each in enumerate(stores))
        )
        assert sorted(won) == [False] * 5 + [True]
        histories = [await each.history("b") for each in stores]
        assert all(history == revisions(1, 1, f"{won.index(True)} ") for history in histories)
        for each in stores:
            await each.close()

    async def test_a_collection_that_another_process_created_in_between_is_taken_over(
        self, gate: tuple[Gateway, int]
    ) -> None:
        held, port = gate
        await (await gated(port, "p")).close()
        answers = [False, True] * 2

        def blind(request: Any) -> Any:
            found = wire.CollectionExists(exists=answers.pop(0))
            return wire.CollectionExistsResponse(result=found)

        held.exists = blind  # type: ignore[method-assign]  # looked up at each call
        await (await gated(port, "p")).close()
        assert answers == []

    async def test_a_server_that_fails_is_a_store_error_and_loses_nothing(
        self, gate: tuple[Gateway, int]
    ) -> None:
        held, port = gate
        store = await gated(port, "p")
        held.down = True
        for call in (store.append("b", revisions(1, 1)), store.history("b"), store.snapshots("b")):
            with pytest.raises(StoreError, match="UNAVAILABLE: shard is not available"):
                await call
        held.down = False
        assert await store.append("b", revisions(1, 1))
        await store.close()

    async def test_the_api_key_is_sent_and_a_wrong_one_is_told(self) -> None:
        with gateway(key="secret") as (_, port):
            # Over http the client warns of the key; https is the operator's choice.
            with pytest.warns(UserWarning, match="insecure"):
                await (await gated(port, "p", "secret")).close()
            with pytest.raises(StoreError, match="UNAUTHENTICATED"):
                await gated(port, "p")

    async def test_an_old_server_is_refused(self) -> None:
        refused = pytest.raises(InputError, match=r"has version 1\.16\.3, but 1\.17 or later is needed")
        with gateway(version="1.16.3") as (_, port), refused:
            await gated(port, "p")

    async def test_a_server_that_is_down_is_a_store_error(self) -> None:
        with pytest.raises(StoreError, match=r"cannot reach the server .* http://127\.0\.0\.1:9: "):
            await open_server("http://127.0.0.1:9", None, 9, "test")

    @pytest.mark.skipif(not SERVER, reason="POLICYSWEEP_TEST_QDRANT_URL names no Qdrant server")
    async def test_real_replicas_that_start_together(self) -> None:
        prefix = f"test_{uuid.uuid4().hex}"
        stores = await asyncio.gather(*(real_server(prefix) for _ in range(5)))
        results = await asyncio.gather(
            *(each.append("b", revisions(1, 1, f"{at} ")) for at, each in enumerate(stores))
        )
        assert sorted(results) == [False] * 4 + [True]
        for each in stores:
            await each.close()
