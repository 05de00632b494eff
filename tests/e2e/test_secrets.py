"""A sweep with everything secret: over mutual TLS, with an API key, from services that run by themselves.

The model server is the rehearsal model behind a gateway that asks for the key, quotes it in its refusals, and
sends tokens in the headers of its answers. Everything logs what it can. Afterwards whatever was written,
printed or served must hold none of the secrets.
"""

from __future__ import annotations

import asyncio
import base64
import os
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
import yaml
from aiohttp import web

from policysweep.models.rehearsal import RehearsalConfig, RehearsalServer

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
SECONDS = 120
UNITS = 4
API_KEY = "sk-planted-5e1f0c7a9b3d2468"
WRONG_KEY = "sk-planted-but-wrong-77aa66bb"
COOKIE = "session-token-planted-0f1e2d3c4b"
HEADER = "header-token-planted-a9b8c7d6e5"
REFUSED = (3, 20)
"""The completions, counted from 1, that the gateway refuses once and quotes the key in doing so."""


class Gateway:
    """Lets nobody through without the key."""

    def __init__(self, behind: str) -> None:
        self._behind = behind
        self._asked = 0
        self.url = ""

    async def __aenter__(self) -> Gateway:
        self._session = aiohttp.ClientSession()
        app = web.Application(client_max_size=64 << 20)
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0]
        self.url = f"http://{host}:{port}/v1"
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._runner.cleanup()
        await self._session.close()

    async def _answer(self, request: web.Request) -> web.Response:
        shown = request.headers.get("Authorization", "")
        if shown != f"Bearer {API_KEY}":
            return self._refusal(401, f"Incorrect API key provided: {shown}")
        self._asked += request.method == "POST"
        if request.method == "POST" and self._asked in REFUSED:
            return self._refusal(403, f"No quota is left for {shown}")
        body = await request.read()
        async with self._session.request(
            request.method,
            f"{self._behind}{request.path}",
            data=body,
            headers={"Content-Type": "application/json"},
        ) as answer:
            content = await answer.read()
            return web.Response(
                status=answer.status, body=content, content_type=answer.content_type, headers=self._headers()
            )

    def _refusal(self, status: int, message: str) -> web.Response:
        body = orjson.dumps({"error": {"message": message, "type": "refused", "code": status}})
        return web.Response(
            status=status, body=body, content_type="application/json", headers=self._headers()
        )

    def _headers(self) -> Mapping[str, str]:
        return {"Set-Cookie": f"session={COOKIE}", "X-Auth-Token": HEADER}


@contextmanager
def gateway() -> Iterator[Gateway]:
    """The gateway with the model behind it, on a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def run(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(SECONDS)

    server = RehearsalServer(RehearsalConfig())
    try:
        run(server.__aenter__())
        opened = Gateway(server.url)
        run(opened.__aenter__())
        yield opened
        run(opened.__aexit__())
        run(server.__aexit__(None, None, None))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Services:
    """Processes of the product, each with a certificate of its own, logging into a folder."""

    def __init__(self, folder: Path, certificates: Path) -> None:
        self._folder = folder
        self._certificates = certificates
        self._running: list[subprocess.Popen[bytes]] = []
        self.metrics: list[str] = []

    def tls(self, name: str) -> Sequence[str]:
        at = self._certificates / name
        return (
            f"--tls-cert={at / 'tls.crt'}",
            f"--tls-key={at / 'tls.key'}",
            f"--tls-ca={at / 'ca.crt'}",
        )

    def start(self, name: str, *flags: str) -> str:
        """Start a service; gives its address."""
        metrics = f"127.0.0.1:{free_port()}"
        with (self._folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                service(name, *flags, *self.tls(name), f"--metrics-listen={metrics}"),
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment(),
            )
        self._running.append(process)
        self.metrics.append(metrics)
        assert process.stdout is not None
        return str(orjson.loads(process.stdout.readline())["address"])

    def scrape(self) -> str:
        pages = [urllib.request.urlopen(f"http://{each}/metrics").read().decode() for each in self.metrics]
        return "\n".join(pages)

    def stop(self) -> None:
        for process in self._running:
            process.terminate()
        for process in self._running:
            process.communicate(timeout=SECONDS)


def service(name: str, *flags: str) -> Sequence[str]:
    return (
        *(sys.executable, "-m", f"services.{name}"),
        *("--log-level=debug", "--api-key-env=PLANTED_KEY"),
        *flags,
    )


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PLANTED_KEY": API_KEY, "WRONG_KEY": WRONG_KEY, **more}


def policysweep(*args: str, **variables: str) -> tuple[int, str]:
    done = subprocess.run(
        (sys.executable, "-m", "policysweep", *args),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        env=environment(**variables),
    )
    return done.returncode, done.stdout


@dataclass(frozen=True)
class Swept:
    """What is left of the sweep, and what was said of it."""

    folder: Path
    """All that the processes wrote: logs, store, exports."""
    run: Path
    printed: Mapping[str, tuple[int, str]]
    """Exit code and output of each command."""
    metrics: str
    secrets: Mapping[str, str]


@pytest.fixture(scope="module", name="swept")
def swept_fixture(tmp_path_factory: pytest.TempPathFactory) -> Swept:
    certificates, folder = tmp_path_factory.mktemp("certificates"), tmp_path_factory.mktemp("written")
    script = (sys.executable, str(ROOT / "scripts" / "dev_certificates.py"), str(certificates))
    subprocess.run(script, check=True, timeout=SECONDS)
    services = Services(folder, certificates)
    with ExitStack() as stack:
        model = stack.enter_context(gateway())
        stack.callback(services.stop)
        at = {
            name: services.start(name, f"--model-url={model.url}", f"--model={served}")
            for name, served in (
                ("simulator", "rehearsal-customer"),
                ("agent", "rehearsal-fair"),
                ("judge", "rehearsal-judge"),
            )
        }
        sweep = write_sweep(folder, at)
        store, run = f"--store={folder / 'store'}", folder / "store" / "secret"
        driver = services.tls("driver")
        printed = {
            "plaintext": policysweep("run", str(sweep), store, "--no-report"),
            "refused": policysweep("run", str(sweep), store, "--log-level=debug", "--no-report", *driver),
            "run": policysweep("run", str(sweep), store, "--log-level=debug", *driver),
            "verify": policysweep("verify", str(run), "--verdicts"),
            "report": policysweep("report", str(run)),
            "export": policysweep("export", str(run), "--format=jsonl", f"--output={folder / 'export'}"),
        }
        metrics = services.scrape()
        printed["local"] = local_run(folder, model.url, driver, "local", "PLANTED_KEY")
        printed["wrong key"] = local_run(folder, model.url, driver, "wrong-key", "WRONG_KEY")
    return Swept(folder, run, printed, metrics, secrets(certificates))


def write_sweep(folder: Path, at: Mapping[str, str]) -> Path:
    spec = {
        "name": "secret",
        "dataset": "builtin",
        "scenarios": {"limit": UNITS},
        "agents": [{"name": "fair", "target": at["agent"]}],
        "simulators": [at["simulator"]],
        "judges": [{"name": "panel", "target": at["judge"]}],
    }
    file = folder / "sweep.yaml"
    file.write_text(yaml.safe_dump(spec), encoding="utf-8")
    return file


def local_run(folder: Path, url: str, tls: Sequence[str], name: str, variable: str) -> tuple[int, str]:
    """A sweep whose services the driver starts, over TLS as well."""
    endpoint = {"model_url": url, "api_key_env": variable}
    spec = {
        "name": name,
        "dataset": "builtin",
        "scenarios": {"limit": 1},
        "agents": [{"name": "fair", "model": "rehearsal-fair", **endpoint}],
        "customer": {"model": "rehearsal-customer", **endpoint},
    }
    file = folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump(spec), encoding="utf-8")
    return policysweep("run", str(file), f"--store={folder / 'store'}", "--no-report", *tls)


def secrets(certificates: Path) -> dict[str, str]:
    """What must be nowhere, by what it is. Of keys, each line of their content."""
    found = {
        "API key": API_KEY,
        "wrong API key": WRONG_KEY,
        "API key in base64": base64.b64encode(API_KEY.encode()).decode().rstrip("="),
        "cookie": COOKIE,
        "token of a header": HEADER,
    }
    for key in certificates.rglob("*.key"):
        lines = [line for line in key.read_text().splitlines() if "-----" not in line]
        found |= {f"{key.parent.name}/{key.name}, line {at}": line for at, line in enumerate(lines)}
    return found


def test_the_sweep_is_whole(swept: Swept) -> None:
    assert [swept.printed[name][0] for name in ("run", "verify", "report", "export", "local")] == [0] * 5, (
        swept.printed
    )
    assert f"{UNITS} of {UNITS} planned units have exactly one record" in swept.printed["verify"][1]
    assert "policysweep_grpc_server_calls" in swept.metrics


def test_a_driver_without_a_certificate_gets_nothing(swept: Swept) -> None:
    code, output = swept.printed["plaintext"]
    assert code != 0
    assert "wants TLS" in output


def test_a_refusal_that_quotes_the_key_is_told_without_it(swept: Swept) -> None:
    assert swept.printed["refused"][0] == 1
    (failure, *_) = (swept.run / "failures").iterdir()
    assert "Bearer ***" in failure.read_text()
    code, output = swept.printed["wrong key"]
    assert code == 1
    assert "Incorrect API key provided: Bearer ***" in " ".join(output.split())


def test_secrets_are_nowhere(swept: Swept) -> None:
    places = {str(path.relative_to(swept.folder)): path.read_bytes() for path in files(swept.folder)}
    places |= {f"output of {name}": output.encode() for name, (_, output) in swept.printed.items()}
    places["metrics"] = swept.metrics.encode()
    kinds = {Path(name).suffix for name in places}
    assert kinds >= {".binpb", ".json", ".html", ".jsonl", ".log"}, kinds
    leaks = [
        f"{kind} in {name}"
        for name, content in places.items()
        for kind, secret in swept.secrets.items()
        if secret.encode() in content
    ]
    assert not leaks


def files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())
