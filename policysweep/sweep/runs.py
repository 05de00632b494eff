"""From a URL to a run. A run is a folder of a store, named after the sweep, that holds a manifest."""

from __future__ import annotations

from policysweep.errors import InputError
from policysweep.sweep.ledger import MANIFEST, RunLedger
from policysweep.sweep.store import ResultStore


async def prepare_run(store_url: str, name: str) -> RunLedger:
    """The ledger of a new or standing run in a store that was found to be writable; `begin` it next.

    Raises InputError for a URL that is none, StoreError for a store that cannot be written.
    """
    await ResultStore.from_url(store_url, create=True).check_writable()
    return RunLedger(ResultStore.from_url(store_url, patient=True).within(name))


async def open_run(url: str) -> RunLedger:
    """The ledger of a standing run. InputError, with the runs found one level below, when there is none."""
    store = ResultStore.from_url(url)
    if await store.exists(MANIFEST):
        return RunLedger(store)
    below = [name for name in await store.folders() if await store.within(name).exists(MANIFEST)]
    found = f"; the runs in it are {', '.join(f'{store.url}/{name}' for name in below)}" if below else ""
    raise InputError(f"{url}: not a run: there is no {MANIFEST} in it{found}")
