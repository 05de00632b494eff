"""The store's promises over a network and a server that are not well."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from functools import partial

import pytest

from policysweep.errors import StoreError, StoreUnavailable
from policysweep.sweep.ledger import RunLedger
from policysweep.sweep.store import ResultStore
from tests.object_store.proxy import Fault, FaultyProxy
from tests.object_store.server import S3Server, secret
from tests.unit.sweep import samples

OURS, THEIRS = b"ours" * 1000, b"theirs" * 1000

REFUSED = (Fault.ERROR, Fault.UNAVAILABLE, Fault.IDLE, Fault.CONFLICT, Fault.RESET)
"""What the server never sees."""
DONE = (Fault.LOST, Fault.LOST_BEHIND_ERROR)
"""What the server does, and the client cannot know."""


@pytest.fixture
def store(proxy: FaultyProxy, prefix: str) -> ResultStore:
    return ResultStore.from_url(prefix, patient=True)


async def names_in(store: ResultStore) -> list[str]:
    return sorted([name async for name in store.list_names()])


@pytest.mark.parametrize("fault", [Fault.SLOW, *REFUSED, *DONE])
async def test_a_put_that_met_a_fault_is_ours(store: ResultStore, proxy: FaultyProxy, fault: Fault) -> None:
    """Our own blob, found when the put is repeated, is no duplicate by somebody else."""
    proxy.faults = iter([fault])
    assert await store.create("unit", OURS) is True
    assert proxy.injected == {fault: 1}
    assert await store.read("unit") == OURS
    assert await store.create("unit", THEIRS) is False
    assert await store.read("unit") == OURS


@pytest.mark.parametrize("fault", [*REFUSED, *DONE])
async def test_a_fault_makes_nobody_elses_blob_ours(
    store: ResultStore, proxy: FaultyProxy, fault: Fault
) -> None:
    assert await store.create("unit", THEIRS)
    proxy.faults = iter([fault, fault])
    assert await store.create("unit", OURS) is False
    assert await store.read("unit") == THEIRS


@pytest.mark.parametrize("megabytes", [6, 16])
async def test_a_large_blob_is_one_put_with_its_condition(
    store: ResultStore, proxy: FaultyProxy, megabytes: int
) -> None:
    """An upload in parts would have no condition that holds for all of it."""
    ours, theirs = b"o" * (megabytes << 20), b"t" * (megabytes << 20)
    proxy.faults = iter([Fault.LOST])
    assert await store.create("unit", ours) is True
    assert await store.create("unit", theirs) is False
    await store.replace("other", theirs)
    read = [await store.read(name) for name in ("unit", "other")]
    # Not compared in the assertion, which would tell the difference of megabytes, for minutes.
    same = [found == written for found, written in zip(read, (ours, theirs), strict=True)]
    assert same == [True, True]
    assert proxy.requests == {"PUT": 4, "GET": 4}


async def test_one_fault_after_another(store: ResultStore, proxy: FaultyProxy) -> None:
    proxy.faults = iter([Fault.RESET, Fault.ERROR, Fault.CONFLICT, Fault.LOST])
    assert await store.create("unit", OURS) is True
    assert proxy.injected.total() == 4
    assert await store.read("unit") == OURS


@pytest.mark.parametrize("fault", [Fault.UNAVAILABLE, Fault.RESET, Fault.LOST])
async def test_a_blob_is_replaced_whatever_happens(
    store: ResultStore, proxy: FaultyProxy, fault: Fault
) -> None:
    await store.replace("report", THEIRS)
    proxy.faults = iter([fault])
    await store.replace("report", OURS)
    assert await store.read("report") == OURS


@pytest.mark.parametrize("fault", [Fault.UNAVAILABLE, Fault.LOST, Fault.CUT])
async def test_reading_goes_on(store: ResultStore, proxy: FaultyProxy, fault: Fault) -> None:
    names = [f"n{number:02}" for number in range(20)]
    await asyncio.gather(*(store.create(name, name.encode() * 500) for name in names))
    proxy.method, proxy.faults = "GET", iter([fault])
    assert await names_in(store) == names
    proxy.faults = iter([None, fault, None, fault])
    async with aclosing(store.read_many(names)) as blobs:
        assert [blob async for blob in blobs] == [(name, name.encode() * 500) for name in names]
    assert proxy.injected == {fault: 3}
    assert await store.read("none") is None


async def test_a_prompt_store_gives_up_in_words(proxy: FaultyProxy, prefix: str) -> None:
    store = ResultStore.from_url(prefix)

    def down() -> Iterator[Fault]:
        while True:
            yield Fault.UNAVAILABLE

    proxy.faults = down()
    with pytest.raises(StoreUnavailable) as raised:
        await store.create("unit", OURS)
    assert str(raised.value).startswith(f"cannot write {prefix}/unit: SlowDown; ")
    proxy.faults = iter(())
    assert await names_in(store) == []


# ------------------------------------------------------------------ concurrent writers


async def test_of_fifty_concurrent_writers_one_wins_and_all_others_are_told(
    use: S3Server, prefix: str
) -> None:
    stores = [ResultStore.from_url(prefix, patient=True) for _ in range(50)]
    blobs = [b"%04d" % number * 1000 for number in range(50)]
    written = await asyncio.gather(
        *(store.create("unit", blob) for store, blob in zip(stores, blobs, strict=True))
    )
    assert Counter(written) == {True: 1, False: 49}
    assert await stores[0].read("unit") == blobs[written.index(True)]


async def test_of_drivers_that_begin_at_once_one_manifest_stands(use: S3Server, prefix: str) -> None:
    ledgers = [RunLedger(ResultStore.from_url(f"{prefix}/small", patient=True)) for _ in range(8)]
    manifests = []
    for number in range(len(ledgers)):
        manifests.append(samples.manifest())
        manifests[-1].created_at.nanos = number
    notes: Sequence[Sequence[str]] = await asyncio.gather(
        *(
            ledger.begin(manifest, samples.inputs())
            for ledger, manifest in zip(ledgers, manifests, strict=True)
        )
    )
    assert not any(notes)
    standing = await ledgers[0].read_manifest()
    assert standing in manifests
    assert await ledgers[0].read_inputs() == samples.inputs()


async def test_a_driver_with_another_plan_is_refused_though_it_begins_at_once(
    use: S3Server, prefix: str
) -> None:
    ledgers = [RunLedger(ResultStore.from_url(f"{prefix}/small", patient=True)) for _ in range(2)]
    other = samples.manifest()
    other.trials = 3
    began = await asyncio.gather(
        ledgers[0].begin(samples.manifest(), samples.inputs()),
        ledgers[1].begin(other, samples.inputs()),
        return_exceptions=True,
    )
    refused = [error for error in began if isinstance(error, BaseException)]
    assert len(refused) == 1
    assert "trials was" in str(refused[0])


# ------------------------------------------------------------------ refusals


async def test_a_bucket_that_is_not_there_is_said_so(use: S3Server) -> None:
    store = ResultStore.from_url("s3://no-such-bucket/runs")
    for ask in (store.check_writable, store.folders, partial(store.read, "x")):
        with pytest.raises(StoreError, match=r"NoSuchBucket; create it first; the store does not do that$"):
            await ask()


async def test_who_may_not_write_is_told_at_once_and_never_what_the_key_is(
    use: S3Server, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in use.environment("reader").items():
        monkeypatch.setenv(name, value)
    store = ResultStore.from_url(prefix, patient=True)
    with pytest.raises(StoreError, match="AccessDenied; check the store's credentials") as raised:
        await store.check_writable()
    assert not isinstance(raised.value, StoreUnavailable)
    assert await names_in(store) == []
    assert secret("reader") not in f"{raised.value!r} {raised.value.__cause__!r}"
