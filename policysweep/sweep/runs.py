"""From a URL to a run: a folder of a store, named after the sweep or stream file, that holds a manifest.

The manifest's name tells a sweep from a stream run.
"""

from __future__ import annotations

from policysweep.errors import InputError
from policysweep.streams.ledger import MANIFEST as STREAM_MANIFEST
from policysweep.streams.ledger import StreamLedger
from policysweep.sweep.ledger import MANIFEST, RunLedger
from policysweep.sweep.store import ResultStore


async def prepare_run(store_url: str, name: str) -> RunLedger:
    """The ledger of a new or standing run in a store that was found to be writable; `begin` it next.

    Raises InputError for a URL that is none, or when a stream run has the name; StoreError for a store that
    cannot be written.
    """
    return RunLedger(await _prepared(store_url, name, STREAM_MANIFEST))


async def prepare_stream_run(store_url: str, name: str) -> StreamLedger:
    """The same for a stream run. Raises InputError when a sweep has the name."""
    return StreamLedger(await _prepared(store_url, name, MANIFEST))


async def _prepared(store_url: str, name: str, other_manifest: str) -> ResultStore:
    await ResultStore.from_url(store_url, create=True).check_writable()
    folder = ResultStore.from_url(store_url, patient=True).within(name)
    if await folder.exists(other_manifest):
        raise InputError(f"{folder.url} holds a run of the other kind: give this one another name")
    return folder


async def open_run(url: str) -> RunLedger:
    """The ledger of a standing sweep. InputError, with the runs found one level below, when there is none."""
    ledger = await open_any_run(url)
    if isinstance(ledger, StreamLedger):
        raise InputError(f"{url}: is a stream run, and this is for the runs of sweeps")
    return ledger


async def open_any_run(url: str) -> RunLedger | StreamLedger:
    """The ledger of a standing run of either kind. InputError as `open_run`."""
    store = ResultStore.from_url(url)
    if await store.exists(MANIFEST):
        return RunLedger(ResultStore.from_url(url, patient=True))
    if await store.exists(STREAM_MANIFEST):
        return StreamLedger(ResultStore.from_url(url, patient=True))
    below = [name for name in await store.folders() if await _is_run(store.within(name))]
    found = f"; the runs in it are {', '.join(f'{store.url}/{name}' for name in below)}" if below else ""
    raise InputError(f"{url}: not a run: there is no {MANIFEST} or {STREAM_MANIFEST} in it{found}")


async def _is_run(store: ResultStore) -> bool:
    return await store.exists(MANIFEST) or await store.exists(STREAM_MANIFEST)
