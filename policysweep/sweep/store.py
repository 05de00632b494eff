"""The results store: named blobs under a URL, written whole or not at all, the first writer winning.

    DIRECTORY  file:///DIRECTORY                               one machine, or a shared volume
    s3://BUCKET/PATH  gs://BUCKET/PATH  az://CONTAINER/PATH    object stores
    memory://                                                  this process; for tests

Credentials and endpoints of object stores come from the environment only (AWS_*, GOOGLE_*, AZURE_*).

All of it rests on one operation: `create` writes a blob only where none is. Object stores do that with a
conditional put, whose answer may be lost; a put that is repeated then finds its own blob, so what is in the
blob tells whose it is. A directory does it with a staging file `NAME#1` that is linked into place: a process
that dies in between leaves at most such a file, and no listing shows it. A blob survives the death of any
process; a loss of power can still empty the last files of a directory, since nothing is flushed to the disk
one by one.

An object store that does not answer is waited for (`store_outage`); a directory never is.

obstore is called from threads and not through its coroutines: those end in a thread of its own that may
still want the interpreter when the process is about to end, which then aborts instead of exiting.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import uuid
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar
from urllib.parse import unquote, urlsplit

import obstore
import obstore.store
from obstore.exceptions import AlreadyExistsError

from policysweep.errors import InputError, StoreError, StoreUnavailable
from policysweep.sweep.store_errors import is_missing_bucket, storing
from policysweep.sweep.store_outage import Outage

if TYPE_CHECKING:
    from obstore.store import ObjectStore, RetryConfig

SCHEMES = ("file", "s3", "gs", "az", "memory")

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*")
_READ_BATCH = 64
"""Blobs read at once; the next batch is read while the caller works on one."""
_LIST_BATCH = 1000
_THREADS = ThreadPoolExecutor(32, thread_name_prefix="store")
"""Operations in flight at once, over all stores of the process."""

Args = ParamSpec("Args")
Result = TypeVar("Result")

# The client repeats a request of its own, such as one page of a listing, before it reports a fault.
_REQUEST_RETRIES: RetryConfig = {"max_retries": 3, "retry_timeout": timedelta(seconds=10)}

_PATIENT_SECONDS = 300.0
"""How long an outage is sat out in mid-run: as long as that of an agent (`outage_seconds` of a sweep)."""
_PROMPT_SECONDS = 3.0
"""The same where a person waits for the answer."""


class ResultStore:
    """Blobs under a URL. Names are ours (ids, constants), never text from elsewhere; others are a ValueError.

    All methods raise StoreError when the store refuses, except where they say otherwise.
    """

    def __init__(
        self, url: str, backend: ObjectStore, outage: Outage, root: Path | None = None, prefix: str = ""
    ) -> None:
        self._base = url
        self._backend = backend
        self._outage = outage
        self._root = root
        """The local directory, when there is one: reading files directly is 20 times faster."""
        self._prefix = prefix

    @classmethod
    def from_url(cls, url: str, *, create: bool = False, patient: bool = False) -> ResultStore:
        """The store at a URL or local path.

        `create` makes a local directory that does not exist. A `patient` store sits out an outage of minutes,
        any other one of seconds. Raises InputError when the URL is none of ours or the directory
        does not exist.
        """
        scheme, separator, _ = url.partition("://")
        if not separator:
            return cls._local(Path(url), create)
        _check_url(url, scheme)
        if scheme == "file":
            return cls._local(Path(unquote(urlsplit(url).path)), create)
        if scheme == "memory":
            return cls("memory://", obstore.store.MemoryStore(), Outage("memory://", 0))
        with storing("open", url):
            backend = obstore.store.from_url(url, retry_config=_REQUEST_RETRIES)
        return cls(url.rstrip("/"), backend, Outage(url, _PATIENT_SECONDS if patient else _PROMPT_SECONDS))

    @classmethod
    def _local(cls, directory: Path, create: bool) -> ResultStore:
        if not create and not directory.is_dir():
            raise InputError(f"{directory}: {'is not a' if directory.exists() else 'no such'} directory")
        with storing("open", str(directory)):
            backend = obstore.store.LocalStore(directory.absolute(), mkdir=create)
        return cls(str(directory), backend, Outage(str(directory), 0), directory.absolute())

    def within(self, name: str) -> ResultStore:
        """The part of this store that lies under a folder. Nothing is created."""
        root = self._root / _checked(name) if self._root else None
        return ResultStore(self._base, self._backend, self._outage, root, f"{self._key(name)}/")

    @property
    def url(self) -> str:
        """Where the blobs are, as the user wrote it."""
        return f"{self._base}/{self._prefix}".rstrip("/") if self._prefix else self._base

    async def create(self, name: str, data: bytes) -> bool:
        """Write a blob where none is; whether the blob is `data` now.

        False, and nothing changes, when another one was there first. Who writes the very bytes that are there
        is told that they stand: they are its own, as a rule, from a put whose answer was lost.
        """
        key = self._key(name)
        return await self._outage.sat_out(lambda: self._create(name, key, data))

    async def _create(self, name: str, key: str, data: bytes) -> bool:
        with storing("write", self.url, name):
            try:
                await _in_thread(obstore.put, self._backend, key, data, mode="create")
            except AlreadyExistsError as error:
                if (standing := await self._read(name)) is not None:
                    return standing == data
                # S3 answers 409 to a put beside another one, which may come to nothing.
                raise StoreUnavailable(f"cannot write {self.url}/{name}: others are writing it") from error
            return True

    async def replace(self, name: str, data: bytes) -> None:
        """Write a blob whether there is one or not; readers see the old or the new one, never a part."""
        key = self._key(name)

        async def put() -> None:
            with storing("write", self.url, name):
                await _in_thread(obstore.put, self._backend, key, data, use_multipart=False)

        await self._outage.sat_out(put)

    async def read(self, name: str) -> bytes | None:
        """A blob; None when there is none."""
        return await self._outage.sat_out(lambda: self._read(name))

    async def _read(self, name: str) -> bytes | None:
        with storing("read", self.url, name):
            try:
                return await _in_thread(self._get, name)
            except FileNotFoundError as error:
                if is_missing_bucket(error):
                    raise
                return None

    async def exists(self, name: str) -> bool:
        """Whether there is a blob of this name."""
        key = self._key(name)

        async def head() -> bool:
            with storing("read", self.url, name):
                try:
                    await _in_thread(obstore.head, self._backend, key)
                except FileNotFoundError:
                    return False
                return True

        return await self._outage.sat_out(head)

    async def list_names(self) -> AsyncGenerator[str]:
        """Names of all blobs, those in folders below included, in no order.

        Names that others put there can be any text: match them, never use them as they are.
        """

        async def names() -> Sequence[str]:
            with storing("list", self.url):
                return await _in_thread(self._list)

        for name in await self._outage.sat_out(names):
            yield name

    async def folders(self) -> list[str]:
        """Names of the folders directly below, sorted; only such that `within` accepts."""

        async def prefixes() -> Sequence[str]:
            with storing("list", self.url):
                found = await _in_thread(obstore.list_with_delimiter, self._backend, self._prefix or None)
                return found["common_prefixes"]

        names = (path.rstrip("/").rpartition("/")[2] for path in await self._outage.sat_out(prefixes))
        return sorted(name for name in names if _NAME.fullmatch(name))

    async def read_many(self, names: Iterable[str]) -> AsyncGenerator[tuple[str, bytes]]:
        """Blobs in the order of `names`, reading ahead by a bounded number. A missing one is a StoreError."""
        remaining = iter(names)
        batch = list(itertools.islice(remaining, _READ_BATCH))
        reading = asyncio.create_task(self._read_batch(batch))
        try:
            while batch:
                blobs = await reading
                following = list(itertools.islice(remaining, _READ_BATCH))
                reading = asyncio.create_task(self._read_batch(following))
                for pair in zip(batch, blobs, strict=True):
                    yield pair
                batch = following
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def check_writable(self) -> None:
        """StoreError unless the store can be written and keeps the first of two writers. Leaves no blob."""
        probe = f"write-check-{uuid.uuid4().hex}"
        await self.create(probe, b"first")
        try:
            kept_second = await self.create(probe, b"second")
        finally:
            with storing("delete", self.url, probe):
                await _in_thread(obstore.delete, self._backend, self._key(probe))
        if kept_second:
            raise StoreError(
                f"{self.url} does not honour create-if-absent, so a record could be written twice: "
                "use a store with conditional writes"
            )

    def _key(self, name: str) -> str:
        return self._prefix + _checked(name)

    def _list(self) -> Sequence[str]:
        batches = obstore.list(self._backend, self._prefix or None, chunk_size=_LIST_BATCH)
        return [entry["path"][len(self._prefix) :] for batch in batches for entry in batch]

    def _get(self, name: str) -> bytes:
        return bytes(obstore.get(self._backend, self._key(name)).bytes())

    async def _read_batch(self, names: Sequence[str]) -> Sequence[bytes]:
        if self._root:
            return await _in_thread(self._read_blobs, names)
        return await asyncio.gather(*(self._outage.sat_out(partial(self._read_one, name)) for name in names))

    async def _read_one(self, name: str) -> bytes:
        return await _in_thread(self._read_blob, name)

    def _read_blobs(self, names: Sequence[str]) -> Sequence[bytes]:
        return [self._read_blob(name) for name in names]

    def _read_blob(self, name: str) -> bytes:
        with storing("read", self.url, name):
            return (self._root / _checked(name)).read_bytes() if self._root else self._get(name)


async def _in_thread(call: Callable[Args, Result], *args: Args.args, **kwargs: Args.kwargs) -> Result:
    return await asyncio.get_running_loop().run_in_executor(_THREADS, partial(call, *args, **kwargs))


def _check_url(url: str, scheme: str) -> None:
    parts = urlsplit(url)
    if scheme not in SCHEMES:
        raise InputError(f"store {url!r}: unknown scheme {scheme}://; use a directory or {_written(SCHEMES)}")
    if scheme == "file" and parts.netloc:
        raise InputError(f"store {url!r}: a file URL has three slashes, as in file:///absolute/path")
    if parts.username or parts.password or parts.query:
        raise InputError("store: the URL must hold no credentials or parameters: set them in the environment")
    if scheme not in ("file", "memory") and not parts.netloc:
        raise InputError(f"store {url!r}: names no bucket, as in {scheme}://bucket/path")


def _written(schemes: Sequence[str]) -> str:
    return ", ".join(f"{scheme}://" for scheme in schemes)


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a name of ours")
    return name
