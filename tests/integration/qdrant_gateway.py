"""A Qdrant server for tests: its gRPC interface over the client's in-memory Qdrant.

No server can be installed where the tests run. This one takes and gives real messages of the real interface,
so it shows what the client makes of our calls and of errors; what a server does with them it cannot show.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
from qdrant_client import QdrantClient, models
from qdrant_client import grpc as wire
from qdrant_client.conversions.conversion import GrpcToRest, RestToGrpc
from qdrant_client.grpc import collections_service_pb2_grpc, points_service_pb2_grpc, qdrant_pb2_grpc


class Gateway:
    """What a server holds and was asked. When `down` it answers UNAVAILABLE; it wants the API key `key`."""

    def __init__(self, version: str, key: str) -> None:
        self.version = version
        self.key = key
        self.down = False
        self.indexes: list[tuple[str, str, bool]] = []
        self.layouts: dict[str, Any] = {}
        self.insert_only: list[bool] = []
        self.qdrant = QdrantClient(":memory:")
        self._lock = threading.Lock()

    def served(self, answer: str) -> Callable[[Any, Any], Any]:
        """The method of a servicer that `answer` names: one call at a time, errors as a server words them."""

        def method(request: Any, context: Any) -> Any:
            keys = [value for name, value in context.invocation_metadata() if name == "api-key"]
            if self.key and keys != [self.key]:
                context.abort(grpc.StatusCode.UNAUTHENTICATED, "Must provide an API key")
            if self.down:
                context.abort(grpc.StatusCode.UNAVAILABLE, "shard is not available")
            with self._lock:
                try:
                    return getattr(self, answer)(request)
                except ValueError as error:
                    code = (
                        grpc.StatusCode.ALREADY_EXISTS
                        if "already exists" in str(error)
                        else grpc.StatusCode.INVALID_ARGUMENT
                    )
                    context.abort(code, str(error))

        return method

    # ------------------------------------------------------------- collections

    def exists(self, request: Any) -> Any:
        found = self.qdrant.collection_exists(request.collection_name)
        return wire.CollectionExistsResponse(result=wire.CollectionExists(exists=found))

    def create(self, request: Any) -> Any:
        vectors = GrpcToRest.convert_vectors_config(request.vectors_config)
        self.qdrant.create_collection(request.collection_name, vectors_config=vectors)
        self.layouts[request.collection_name] = request.hnsw_config
        return wire.CollectionOperationResponse(result=True)

    def get_collection(self, request: Any) -> Any:
        info = self.qdrant.get_collection(request.collection_name)
        return wire.GetCollectionInfoResponse(result=RestToGrpc.convert_collection_info(info))

    def index(self, request: Any) -> Any:
        tenant = request.field_index_params.keyword_index_params.is_tenant
        self.indexes.append((request.collection_name, request.field_name, tenant))
        return self._updated()

    # ------------------------------------------------------------------ points

    def upsert(self, request: Any) -> Any:
        mode = (
            GrpcToRest.convert_update_mode(request.update_mode) if request.HasField("update_mode") else None
        )
        self.insert_only.append(mode is models.UpdateMode.INSERT_ONLY)
        assert request.wait
        points = [GrpcToRest.convert_point_struct(point) for point in request.points]
        self.qdrant.upsert(request.collection_name, points, update_mode=mode)
        return self._updated()

    def get(self, request: Any) -> Any:
        records = self.qdrant.retrieve(
            request.collection_name,
            [GrpcToRest.convert_point_id(each) for each in request.ids],
            with_vectors=request.with_vectors.enable,
        )
        return wire.GetResponse(result=[RestToGrpc.convert_retrieved_point(each) for each in records])

    def scroll(self, request: Any) -> Any:
        offset = GrpcToRest.convert_point_id(request.offset) if request.HasField("offset") else None
        records, following = self.qdrant.scroll(
            request.collection_name,
            scroll_filter=GrpcToRest.convert_filter(request.filter),
            limit=request.limit,
            offset=offset,
            with_payload=GrpcToRest.convert_with_payload_selector(request.with_payload),
        )
        return wire.ScrollResponse(
            result=[RestToGrpc.convert_retrieved_point(each) for each in records],
            next_page_offset=None if following is None else wire.PointId(uuid=str(following)),
        )

    def query(self, request: Any) -> Any:
        assert request.params.exact
        found = self.qdrant.query_points(
            request.collection_name,
            query=list(request.query.nearest.dense.data),
            query_filter=GrpcToRest.convert_filter(request.filter),
            limit=request.limit,
        )
        return wire.QueryResponse(result=[RestToGrpc.convert_scored_point(each) for each in found.points])

    def _updated(self) -> Any:
        return wire.PointsOperationResponse(result=wire.UpdateResult(status=wire.UpdateStatus.Completed))

    def health(self, request: Any) -> Any:
        return wire.HealthCheckReply(title="qdrant", version=self.version)


_METHODS = {
    "Collections": {"CollectionExists": "exists", "Create": "create", "Get": "get_collection"},
    "Points": {
        "Upsert": "upsert", "Get": "get", "Scroll": "scroll", "Query": "query", "CreateFieldIndex": "index",
    },
    "Qdrant": {"HealthCheck": "health"},
}  # fmt: skip


@contextmanager
def gateway(version: str = "1.17.0", key: str = "") -> Iterator[tuple[Gateway, int]]:
    """A server with the port that it listens on."""
    held = Gateway(version, key)
    server = grpc.server(ThreadPoolExecutor(8))
    modules: dict[str, Any] = {
        "Collections": collections_service_pb2_grpc,
        "Points": points_service_pb2_grpc,
        "Qdrant": qdrant_pb2_grpc,
    }
    for service, methods in _METHODS.items():
        servicer = getattr(modules[service], f"{service}Servicer")()
        for name, answer in methods.items():
            setattr(servicer, name, held.served(answer))
        getattr(modules[service], f"add_{service}Servicer_to_server")(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield held, port
    finally:
        server.stop(None).wait()
