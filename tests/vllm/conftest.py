"""Real vLLM servers on the CPU. `make test-vllm` runs these; `make test` does not look into this folder.

What is asserted is the protocol: what is called, counted, classified and kept. The tiny model writes nonsense
and SmolLM2 little better, so nothing is asserted of what they say, and nothing of how long it takes.

    test_protocol.py   single calls: forced tools, schema, context, tokens
    test_probe.py      `policysweep probe`
    test_sweep.py      a sweep with everything on vLLM, its counters, an outage in its middle
    test_overflow.py   conversations that do not fit into a context
    test_stream.py     a short PolicyBank stream
    test_smollm.py     a sweep on a real model
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.vllm.serve import Server


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A server may take minutes to start on a busy machine, and a sweep more."""
    for item in items:
        item.add_marker(pytest.mark.timeout(7200))


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The model with random weights. One server for all: a start costs half a minute of a CPU."""
    yield from served("tiny", tmp_path_factory.mktemp("vllm"))


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The same, with a context that no prompt of a sweep fits into."""
    yield from served("tiny", tmp_path_factory.mktemp("vllm"), context=4096)


@pytest.fixture(scope="module")
def smollm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """SmolLM2-135M-Instruct."""
    yield from served("smollm", tmp_path_factory.mktemp("vllm"))


def served(model: str, folder: Path, context: int | None = None) -> Iterator[Server]:
    """A running server; its log lies in `folder`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = Server(model, port, folder / "vllm.log", context)
    try:
        server.start()
        yield server
    finally:
        server.stop()
