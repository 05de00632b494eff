"""Puts the service together from its configuration: store, embedder, curator, methods."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from policysweep import telemetry
from policysweep.errors import InputError, StoreError
from policysweep.models.observed import ObservedModel
from policysweep.v1 import agent_pb2
from policysweep.v1 import policybank_pb2 as pb
from services.policybank import prompt
from services.policybank.banks import Banks
from services.policybank.config import PolicyBankConfig
from services.policybank.curator import Curator
from services.policybank.embedder import CachedEmbedder, Embedder, EmbeddingEndpoint, MiniLM
from services.policybank.library import Library
from services.policybank.observed_store import ObservedStore, probed
from services.policybank.recall import Recall
from services.policybank.service import PolicyBankServicer, ServedModel
from services.policybank.store import BankStore, MemoryStore
from services.policybank.strategies.registry import strategies

_SERVER = re.compile(r"https?://", re.IGNORECASE)


@asynccontextmanager
async def servicer(config: PolicyBankConfig, model: ServedModel) -> AsyncIterator[PolicyBankServicer]:
    """The service of a configuration, with its store open while the block runs."""
    async with AsyncExitStack() as stack:
        endpoint = _embedder(config)
        await stack.enter_async_context(endpoint)
        store = await open_store(config, endpoint.info.dimension)
        stack.push_async_callback(store.close)
        observed = ObservedStore(store)
        probe = await stack.enter_async_context(probed(observed, "shared" if store.shared else "own"))
        yield assembled(config, model, observed, endpoint, probe.check)


def assembled(
    config: PolicyBankConfig,
    model: ServedModel,
    store: BankStore,
    embedder: Embedder,
    needs: Callable[[], Awaitable[None]] | None = None,
) -> PolicyBankServicer:
    """The service over parts that are open. It is ready as long as `needs` does not raise."""
    sampling = agent_pb2.Sampling(
        temperature=config.temperature, top_p=config.top_p, max_tokens=config.max_tokens
    )
    template = pb.BankInfo(
        embedder=embedder.info,
        curator=pb.CuratorInfo(
            model=config.model,
            prompt_digest=prompt.PROMPT_DIGEST,
            sampling=sampling,
            attempts=config.curator_attempts,
        ),
    )
    for kind in pb.RevisionKind.values()[1:]:
        telemetry.BANK_REVISIONS.labels(telemetry.enum_label(pb.RevisionKind, kind))  # begins at 0
    banks = Banks(
        store,
        Library(store, config.cached_banks),
        Recall(store, CachedEmbedder(embedder, config.cached_vectors)),
        Curator(ObservedModel(model, role="curator", name=config.model), sampling, config.curator_attempts),
        strategies(config),
        template,
    )
    return PolicyBankServicer(config, model, banks, template, needs)


def _embedder(config: PolicyBankConfig) -> MiniLM | EmbeddingEndpoint:
    if not config.embedder_url:
        if config.embedder_model or config.embedder_dimension:
            raise InputError("embedder_model and embedder_dimension describe an endpoint: give embedder_url")
        return MiniLM()
    if not (config.embedder_model and config.embedder_dimension):
        raise InputError("embedder_url needs embedder_model and embedder_dimension")
    return EmbeddingEndpoint(
        config.embedder_url, config.embedder_model, config.embedder_dimension, config.embedder_api_key()
    )


async def open_store(config: PolicyBankConfig, dimension: int) -> BankStore:
    """The store that the configuration names, with its collections. Raises InputError and StoreError."""
    if config.store == "memory":
        return MemoryStore()
    try:
        from services.policybank import qdrant_store  # a second of CPU that the memory store does not need
    except ModuleNotFoundError as error:
        raise InputError(
            f"store {config.store!r} needs {error.name}: install policysweep[policybank], or use "
            "--store memory"
        ) from error
    if not _SERVER.match(config.store):
        store: qdrant_store.QdrantStore = qdrant_store.open_embedded(
            Path(config.store), config.collection_prefix
        )
        await store.prepare(dimension)
        return store
    try:
        store = await qdrant_store.open_server(
            config.store, config.store_api_key(), config.store_grpc_port, config.collection_prefix
        )
        await store.prepare(dimension)
    except StoreError as error:
        raise InputError(f"{error}; check --store, --store-grpc-port and --store-api-key-env") from error
    return store
