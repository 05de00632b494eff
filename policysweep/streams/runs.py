"""From a URL to a run of either kind: a sweep's folder holds a manifest, a stream run's a stream manifest."""

from __future__ import annotations

from policysweep.errors import InputError
from policysweep.streams.ledger import MANIFEST as STREAM_MANIFEST
from policysweep.streams.ledger import StreamLedger
from policysweep.sweep.ledger import MANIFEST, RunLedger
from policysweep.sweep.store import ResultStore


async def open_any_run(url: str) -> RunLedger | StreamLedger:
    """The ledger of a standing run. InputError, with the runs found one level below, when there is none."""
    store = ResultStore.from_url(url)
    if await store.exists(STREAM_MANIFEST):
        return StreamLedger(store)
    if await store.exists(MANIFEST):
        return RunLedger(store)
    below = [name for name in await store.folders() if await _is_run(store.within(name))]
    found = f"; the runs in it are {', '.join(f'{store.url}/{name}' for name in below)}" if below else ""
    raise InputError(f"{url}: not a run: there is no {MANIFEST} or {STREAM_MANIFEST} in it{found}")


async def _is_run(store: ResultStore) -> bool:
    return await store.exists(MANIFEST) or await store.exists(STREAM_MANIFEST)
