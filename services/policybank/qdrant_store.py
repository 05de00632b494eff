"""Banks in Qdrant: two collections for all banks, a bank being a tenant of both.

    <prefix>_revisions   no vectors; a point is a record of a history, or a snapshot
    <prefix>_vectors     a point is the vector of one text in one bank

Point ids are derived from what the point is (see identity.py), so any string is a bank, a snapshot or a
text. Records are read by id and never searched for. They are inserted where none is (`insert_only`) and read
back, which tells the writer that lost a race.

The client is called in threads: the embedded Qdrant is synchronous and must not be entered twice, so it gets
one thread; a server gets several.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import grpc
import numpy as np
from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import ApiException, UnexpectedResponse

from policysweep.errors import InputError, StoreError
from policysweep.v1 import policybank_pb2 as pb
from services.policybank.identity import derived_id
from services.policybank.qdrant_payload import (
    condition,
    record_payload,
    revisions_of,
    snapshot_of,
    snapshot_payload,
)
from services.policybank.store import Hit, Vector, rank

OLDEST_SERVER = (1, 17)
"""The first server version that honours `insert_only`; an older one ignores it and overwrites."""

_SERVER_THREADS = 16
_TIMEOUT_SECONDS = 30
_READ_AHEAD = 4
_READ_MOST = 256
_PAGE = 1000
_MAJORITY = models.ReadConsistencyType.MAJORITY

Args = ParamSpec("Args")
Result = TypeVar("Result")


@contextmanager
def _storing(action: str, where: str) -> Iterator[None]:
    """Turn any refusal of Qdrant into a StoreError: what could not be done, where and why."""
    try:
        yield
    except (ApiException, grpc.RpcError, OSError, ValueError, sqlite3.Error) as error:
        raise StoreError(f"cannot {action} in the policy bank store {where}: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    if isinstance(error, grpc.Call):
        return f"{error.code().name}: {error.details()}"
    if isinstance(error, UnexpectedResponse):
        return f"{error.status_code} {error.content.decode('utf-8', 'replace')[:200]}"
    return str(getattr(error, "source", error)) or type(error).__name__


class QdrantStore:
    """Banks behind a Qdrant client. Implements BankStore. Made by the functions below."""

    def __init__(
        self, client: QdrantClient, threads: ThreadPoolExecutor, where: str, prefix: str, *, shared: bool
    ) -> None:
        self._client = client
        self._threads = threads
        self._where = where
        self._revisions = f"{prefix}_revisions"
        self._vectors = f"{prefix}_vectors"
        self._shared = shared

    @property
    def shared(self) -> bool:
        """Whether other processes may write to it."""
        return self._shared

    async def _run(
        self, action: str, call: Callable[Args, Result], *args: Args.args, **kwargs: Args.kwargs
    ) -> Result:
        with _storing(action, self._where):
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, partial(call, *args, **kwargs))

    # ------------------------------------------------------------------ layout

    async def check_version(self) -> None:
        """Raises InputError when the server is older than what we rely on."""
        version = (await self._run("reach the server", self._client.info)).version
        if _parsed(version) < OLDEST_SERVER:
            oldest = ".".join(map(str, OLDEST_SERVER))
            raise InputError(
                f"the Qdrant server at {self._where} has version {version}, but {oldest} or later is needed: "
                "older ones would overwrite what another process wrote"
            )

    async def prepare(self, dimension: int) -> None:
        """Create what is missing; several processes may do so at once.

        Raises InputError when the store holds vectors of another dimension.
        """
        await self._run("create collections", self._prepare)
        await self._run("create collections", self._create_vectors, dimension)
        held = await self._run("read collections", self._client.get_collection, self._vectors)
        size = getattr(held.config.params.vectors, "size", None)
        if size != dimension:
            raise InputError(
                f"the policy bank store {self._where} holds vectors of {size} numbers, but the embedder "
                f"gives {dimension}: start with the embedder that the store was made with, or choose "
                "another --store or --collection-prefix"
            )

    def _prepare(self) -> None:
        self._create(self._revisions, vectors_config={})
        self._index(self._revisions, "kind", models.PayloadSchemaType.KEYWORD)
        self._index(self._revisions, "number", models.PayloadSchemaType.INTEGER)

    def _create_vectors(self, dimension: int) -> None:
        # No graph over all vectors, only one for each bank that is large enough to need one.
        self._create(
            self._vectors,
            vectors_config=models.VectorParams(size=dimension, distance=models.Distance.COSINE),
            hnsw_config=models.HnswConfigDiff(m=0, payload_m=16),
        )

    def _create(self, collection: str, **layout: Any) -> None:
        if not self._client.collection_exists(collection):
            try:
                self._client.create_collection(collection, **layout)
            except (ApiException, grpc.RpcError, ValueError):
                # Another process was faster, or else it is an error.
                if not self._client.collection_exists(collection):
                    raise
        tenant = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True)
        self._index(collection, "bank_id", tenant)

    def _index(self, collection: str, field: str, index: models.PayloadFieldSchema) -> None:
        if self._shared:  # the embedded Qdrant has no indexes
            self._client.create_payload_index(collection, field, field_schema=index)

    # --------------------------------------------------------------- histories

    async def banks(self) -> list[str]:
        """See BankStore."""
        return await self._run("list the banks", self._banks)

    def _banks(self) -> list[str]:
        beginnings = self._found(condition("kind", "record"), condition("number", 1))
        return sorted(str(payload["bank_id"]) for payload in beginnings)

    async def history(self, bank_id: str, after: int = 0) -> list[pb.Revision]:
        """See BankStore."""
        return await self._run("read a bank", self._history, bank_id, after)

    def _history(self, bank_id: str, after: int) -> list[pb.Revision]:
        revisions: list[pb.Revision] = []
        ahead = _READ_AHEAD
        while True:
            reached = after + len(revisions)
            records = self._records(bank_id, range(reached + 1, reached + 1 + ahead))
            while (number := after + len(revisions) + 1) in records:
                revisions += records[number]
            # The last record may have held several revisions, and lie on beyond what was asked for.
            if number <= reached + ahead:
                return revisions
            ahead = min(4 * ahead, _READ_MOST)

    def _records(self, bank_id: str, numbers: Sequence[int]) -> dict[int, list[pb.Revision]]:
        ids = [derived_id("record", bank_id, str(number)) for number in numbers]
        points = self._client.retrieve(self._revisions, ids, with_payload=True, consistency=_MAJORITY)
        return {point.payload["number"]: revisions_of(point.payload) for point in points if point.payload}

    async def append(self, bank_id: str, revisions: Sequence[pb.Revision]) -> bool:
        """See BankStore."""
        return await self._run("write a bank", self._append, bank_id, revisions)

    def _append(self, bank_id: str, revisions: Sequence[pb.Revision]) -> bool:
        payload = record_payload(bank_id, revisions)
        held = self._insert(derived_id("record", bank_id, str(payload["number"])), payload)
        return bool(held["revisions"] == payload["revisions"])

    def _insert(self, identifier: str, payload: dict[str, Any]) -> dict[str, Any]:
        """Write a point where none is, and give the payload of the one that is there then."""
        self._client.upsert(
            self._revisions,
            [models.PointStruct(id=identifier, vector={}, payload=payload)],
            ordering=models.WriteOrdering.STRONG,
            update_mode=models.UpdateMode.INSERT_ONLY,
        )
        (point,) = self._client.retrieve(self._revisions, [identifier], consistency=_MAJORITY)
        return point.payload or {}

    # --------------------------------------------------------------- snapshots

    async def name(self, bank_id: str, snapshot: pb.Snapshot) -> pb.Snapshot:
        """See BankStore."""
        identifier = derived_id("snapshot", bank_id, snapshot.name)
        payload = snapshot_payload(bank_id, snapshot)
        return snapshot_of(await self._run("write a snapshot", self._insert, identifier, payload))

    async def snapshots(self, bank_id: str) -> list[pb.Snapshot]:
        """See BankStore."""
        return await self._run("read snapshots", self._snapshots, bank_id)

    def _snapshots(self, bank_id: str) -> list[pb.Snapshot]:
        found = self._found(condition("bank_id", bank_id), condition("kind", "snapshot"))
        return sorted(map(snapshot_of, found), key=lambda snapshot: snapshot.name)

    def _found(self, *conditions: models.FieldCondition) -> Iterator[dict[str, Any]]:
        """The payloads of all points that meet the conditions, without the histories in them."""
        offset: Any = None
        while True:
            points, offset = self._client.scroll(
                self._revisions,
                scroll_filter=models.Filter(must=list(conditions)),
                limit=_PAGE,
                offset=offset,
                with_payload=["bank_id", "name", "number"],
                consistency=_MAJORITY,
            )
            yield from (point.payload or {} for point in points)
            if offset is None:
                return

    # ----------------------------------------------------------------- vectors

    async def save_vectors(self, bank_id: str, vectors: Mapping[str, Vector]) -> None:
        """See BankStore."""
        points = [
            models.PointStruct(id=identifier, vector=vector.tolist(), payload={"bank_id": bank_id})
            for identifier, vector in vectors.items()
        ]
        for at in range(0, len(points), _PAGE):
            await self._run("write vectors", self._client.upsert, self._vectors, points[at : at + _PAGE])

    async def missing_vectors(self, bank_id: str, ids: Collection[str]) -> set[str]:
        """See BankStore."""
        points = await self._run(
            "read vectors", self._client.retrieve, self._vectors, list(ids), with_payload=False
        )
        return set(ids) - {str(point.id) for point in points}

    async def nearest(self, bank_id: str, query: Vector, ids: Collection[str], limit: int) -> list[Hit]:
        """See BankStore. The search is exact: a bank is small, and its answers are not to vary."""
        if not ids:
            return []
        response = await self._run(
            "search",
            self._client.query_points,
            self._vectors,
            query=query.tolist(),
            query_filter=models.Filter(
                must=[condition("bank_id", bank_id), models.HasIdCondition(has_id=list(ids))]
            ),
            search_params=models.SearchParams(exact=True) if self._shared else None,
            with_payload=False,
            limit=limit,
        )
        hits = [(str(point.id), point.score) for point in response.points]
        return sorted(hits, key=lambda hit: (-hit[1], hit[0]))

    async def close(self) -> None:
        """See BankStore."""
        await self._run("close", self._client.close)
        self._threads.shutdown()


class EmbeddedStore(QdrantStore):
    """Qdrant in this process. It has no index: a filtered search visits all banks, reading by id does not."""

    async def nearest(self, bank_id: str, query: Vector, ids: Collection[str], limit: int) -> list[Hit]:
        """See BankStore."""
        points = await self._run(
            "search", self._client.retrieve, self._vectors, list(ids), with_payload=False, with_vectors=True
        )
        vectors = {str(point.id): np.asarray(point.vector, dtype=np.float32) for point in points}
        return rank(query, vectors, limit)


# ------------------------------------------------------------------ ways to open one


def open_embedded(directory: Path, prefix: str) -> EmbeddedStore:
    """Qdrant in `directory`, which is created. InputError when another process has it open."""
    threads = ThreadPoolExecutor(1, thread_name_prefix="qdrant")
    try:
        client = threads.submit(_embedded_client, str(directory)).result()
    except RuntimeError as error:
        raise InputError(
            f"{directory} is open in another process: one process at a time serves an embedded policy bank. "
            "Stop the other one, or run a Qdrant server and give its URL to both"
        ) from error
    except (OSError, ValueError) as error:
        raise InputError(f"{directory} cannot hold a policy bank: {error}") from error
    return EmbeddedStore(client, threads, str(directory), prefix, shared=False)


def _embedded_client(path: str) -> QdrantClient:
    return QdrantClient(path=path)


async def open_server(url: str, api_key: str | None, grpc_port: int, prefix: str) -> QdrantStore:
    """A Qdrant server. TLS by the scheme of the URL. InputError when it is older than what we rely on."""
    threads = ThreadPoolExecutor(_SERVER_THREADS, thread_name_prefix="qdrant")
    client = QdrantClient(
        url=url,
        prefer_grpc=True,
        grpc_port=grpc_port,
        api_key=api_key,
        timeout=_TIMEOUT_SECONDS,
        check_compatibility=False,
    )
    store = QdrantStore(client, threads, url, prefix, shared=True)
    await store.check_version()
    return store


def _parsed(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("-")[0].split(".")[:2] if part.isdigit())
