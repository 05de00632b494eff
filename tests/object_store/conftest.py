"""One S3 server for the tests of a module; each test has a prefix of its own in its bucket."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.object_store.proxy import FaultyProxy, proxying
from tests.object_store.server import BUCKET, S3Server, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with running(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def prefix() -> str:
    """The URL of an empty place in the bucket."""
    return f"s3://{BUCKET}/{uuid.uuid4().hex}"


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch, server: S3Server) -> S3Server:
    """The server, which this process reaches as its writer."""
    for name, value in server.environment().items():
        monkeypatch.setenv(name, value)
    return server


@pytest.fixture
async def proxy(use: S3Server, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FaultyProxy]:
    """A proxy of the server, through which this process reaches it."""
    async with proxying(use.endpoint) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        yield proxy
