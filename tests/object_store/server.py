"""A real S3 server on this machine: one SeaweedFS process with its data in a folder.

It outlives its own death: `kill` and `start` again serve the same data at the same address.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Literal

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

BUCKET = "results"

Identity = Literal["writer", "reader"]

_ACTIONS: Mapping[Identity, list[str]] = {"writer": ["Read", "Write", "List"], "reader": ["Read", "List"]}
_PORTS = ("master", "volume", "filer", "s3")
_START_SECONDS = 60
_REGION = "us-east-1"


class S3Server:
    """A server with one bucket and two identities. Not started until `start`."""

    def __init__(self, folder: Path) -> None:
        """`folder` is empty, or one that an earlier server used."""
        self._folder = folder
        self._ports = _free_ports(2 * len(_PORTS))
        self._process: subprocess.Popen[bytes] | None = None
        (folder / "data").mkdir(parents=True, exist_ok=True)
        (folder / "identities.json").write_text(json.dumps(_identities()), encoding="utf-8")

    @property
    def endpoint(self) -> str:
        """The address of the S3 API."""
        return f"http://127.0.0.1:{self._ports[_PORTS.index('s3')]}"

    def environment(self, identity: Identity = "writer", endpoint: str | None = None) -> dict[str, str]:
        """What a process needs to know to use the server, or a proxy of it at another endpoint."""
        return {
            "AWS_ACCESS_KEY_ID": f"{identity}-key",
            "AWS_SECRET_ACCESS_KEY": secret(identity),
            "AWS_REGION": _REGION,
            "AWS_ENDPOINT_URL": endpoint or self.endpoint,
            "AWS_ALLOW_HTTP": "true",
        }

    def start(self, *, wait: bool = True) -> None:
        """Start, or start again after `kill`; with `wait`, until a blob can be written."""
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(self._command(), stdout=log, stderr=log)
        if wait:
            self._wait()

    def kill(self) -> None:
        """SIGKILL, which is the one signal that ends it promptly. What it answered to is on the disk."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _command(self) -> list[str]:
        data = self._folder / "data"
        ports = [
            flag
            for position, name in enumerate(_PORTS)
            for flag in (
                f"-{name}.port={self._ports[position]}",
                f"-{name}.port.grpc={self._ports[len(_PORTS) + position]}",
            )
        ]
        return [
            str(Path(sys.executable).with_name("weed")),
            "server",
            *(f"-dir={data}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", *ports),
            *("-volume.max=0", "-master.volumeSizeLimitMB=64", "-master.telemetry=false"),
            *("-filer", f"-filer.localSocket={data}/filer.sock"),
            *("-s3", f"-s3.config={self._folder}/identities.json", f"-s3.localSocket={data}/s3.sock"),
            *("-s3.autoCreateBucket=false", "-s3.port.iceberg=0", "-s3.port.lance=0"),
        ]

    def _wait(self) -> None:
        self._until(self._make_bucket, OSError)
        writer = self.environment()
        store = S3Store(
            BUCKET,
            access_key_id=writer["AWS_ACCESS_KEY_ID"],
            secret_access_key=writer["AWS_SECRET_ACCESS_KEY"],
            endpoint=self.endpoint,
            region=_REGION,
            client_options={"allow_http": True, "timeout": timedelta(seconds=5)},
            retry_config={"max_retries": 0},
        )
        self._until(lambda: obstore.put(store, "started", b""), (BaseError, OSError))

    def _make_bucket(self) -> None:
        """A bucket is a folder of its filer."""
        filer = f"http://127.0.0.1:{self._ports[_PORTS.index('filer')]}"
        request = urllib.request.Request(f"{filer}/buckets/{BUCKET}/", method="POST")
        with urllib.request.urlopen(request, timeout=5):
            pass

    def _until(
        self, done: Callable[[], object], refused: type[Exception] | tuple[type[Exception], ...]
    ) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while True:
            assert self._process is not None
            dead = self._process.poll() is not None
            assert not dead, (self._folder / "log").read_text()[-4000:]
            try:
                done()
            except refused:
                assert time.monotonic() < deadline, (self._folder / "log").read_text()[-4000:]
                time.sleep(0.1)
            else:
                return


@contextmanager
def running(folder: Path) -> Iterator[S3Server]:
    """A server that runs, and is gone afterwards."""
    server = S3Server(folder)
    try:
        server.start()
        yield server
    finally:
        server.kill()


def secret(identity: Identity) -> str:
    """The secret key of an identity."""
    return f"{identity}-secret-0123456789"


def _identities() -> object:
    return {
        "identities": [
            {
                "name": name,
                "credentials": [{"accessKey": f"{name}-key", "secretKey": secret(name)}],
                "actions": actions,
            }
            for name, actions in _ACTIONS.items()
        ]
    }


def _free_ports(number: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
