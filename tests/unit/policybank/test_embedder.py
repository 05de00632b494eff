"""Vectors: the offline model's are near for texts that mean the same, an endpoint's are checked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest
from aiohttp import web

from policysweep import errors
from policysweep.v1 import policybank_pb2 as pb
from services.policybank.embedder import CachedEmbedder, EmbeddingEndpoint, MiniLM
from services.policybank.store import Vector


class TestMiniLM:
    async def test_vectors_tell_what_texts_are_about(self) -> None:
        pytest.importorskip("onnxruntime", reason="the extra [policybank] is not installed")
        async with MiniLM() as model:
            cancel, reason, kettle = await model.embed(
                [
                    "The customer wants to cancel an insured flight because of the weather.",
                    "Cancel my trip: a storm is coming, and I have travel insurance.",
                    "My kettle arrived broken and I want a new one.",
                ],
                60,
            )
        assert cancel.shape == (384,)
        assert np.linalg.norm(cancel) == pytest.approx(1, abs=1e-5)
        assert cancel @ reason > 0.5 > cancel @ kettle + 0.2

    async def test_a_text_has_one_vector_whatever_it_is_embedded_with(self) -> None:
        pytest.importorskip("onnxruntime", reason="the extra [policybank] is not installed")
        texts = ["", "[SEP] \x00 \U0001f600 ###STOP###", "a long one " * 400]
        async with MiniLM() as model:
            together = await model.embed(texts, 60)
            alone = [(await model.embed([text], 60))[0] for text in texts]
        assert all(np.array_equal(first, second) for first, second in zip(together, alone, strict=True))


@asynccontextmanager
async def endpoint(answer: Any, status: int = 200, dimension: int = 2) -> AsyncIterator[EmbeddingEndpoint]:
    async def handler(request: web.Request) -> web.StreamResponse:
        asked = await request.json()
        assert asked["model"] == "m"
        assert request.headers["Authorization"] == "Bearer key"
        if answer == "stall":
            await asyncio.sleep(30)
        return web.json_response(answer(asked["input"]) if callable(answer) else answer, status=status)

    app = web.Application()
    app.router.add_post("/v1/embeddings", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1/"
        async with EmbeddingEndpoint(url, "m", dimension, "key") as model:
            yield model
    finally:
        await runner.cleanup()


def lengths(texts: Sequence[str]) -> dict[str, Any]:
    """The vector of a text is (its length, 0); entries come in reverse, as the format allows."""
    entries = [{"index": at, "embedding": [float(len(text)), 0.0]} for at, text in enumerate(texts)]
    return {"data": entries[::-1]}


class TestEndpoint:
    async def test_vectors_come_in_the_order_of_the_texts_and_with_length_1(self) -> None:
        texts = [f"{'x' * (at % 7 + 1)}" for at in range(150)]
        async with endpoint(lengths) as model:
            vectors = await model.embed(texts, 10)
        assert len(vectors) == 150
        assert all(np.array_equal(vector, [1, 0]) for vector in vectors)

    @pytest.mark.parametrize(
        ("answer", "status", "kind"),
        [
            ({"error": {"message": "no such model"}}, 404, errors.ModelServerRejected),
            ({"error": "busy"}, 503, errors.ModelServerUnavailable),
            ({"data": []}, 200, errors.ModelServerGarbled),
            ({"data": [{"index": 0}]}, 200, errors.ModelServerGarbled),
            ({"data": [{"index": 0, "embedding": ["x"]}]}, 200, errors.ModelServerGarbled),
            ({"data": [{"index": 0, "embedding": [1.0, 2.0, 3.0]}]}, 200, errors.InputError),
        ],
    )
    async def test_what_is_no_answer_is_an_error_of_its_class(
        self, answer: Any, status: int, kind: type[errors.PolicysweepError]
    ) -> None:
        async with endpoint(answer, status) as model:
            with pytest.raises(errors.PolicysweepError) as caught:
                await model.embed(["text"], 10)
        assert type(caught.value) is kind

    async def test_a_server_that_stalls_is_a_timeout(self) -> None:
        async with endpoint("stall") as model:
            with pytest.raises(errors.ModelServerTimeout, match=r"within 0\.1 s"):
                await model.embed(["text"], 0.1)


class Counting:
    """An embedder that remembers what it was asked."""

    info = pb.Embedder(name="counting", dimension=1)

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    async def embed(self, texts: Sequence[str], timeout_seconds: float) -> list[Vector]:
        self.asked.append(list(texts))
        return [np.array([len(text)], dtype=np.float32) for text in texts]


class TestCache:
    async def test_a_text_is_embedded_once(self) -> None:
        model = Counting()
        cached = CachedEmbedder(model, size=8)
        assert [v.item() for v in await cached.embed(["a", "bb", "a"], 1)] == [1, 2, 1]
        assert [v.item() for v in await cached.embed(["bb", "ccc"], 1)] == [2, 3]
        assert model.asked == [["a", "bb"], ["ccc"]]

    async def test_the_texts_used_last_are_kept(self) -> None:
        model = Counting()
        cached = CachedEmbedder(model, size=2)
        for text in ("a", "b", "a", "c", "a", "b"):
            await cached.embed([text], 1)
        assert model.asked == [["a"], ["b"], ["c"], ["b"]]

    async def test_more_texts_than_it_keeps_are_answered_all_the_same(self) -> None:
        cached = CachedEmbedder(Counting(), size=1)
        assert [v.item() for v in await cached.embed(["a", "bb", "ccc"], 1)] == [1, 2, 3]
