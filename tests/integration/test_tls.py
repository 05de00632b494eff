"""Mutual TLS on real servers: without a certificate that is trusted and valid, nobody gets any answer."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import grpc
import pytest
from cryptography.hazmat.primitives import serialization as form
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from structlog.testing import capture_logs

from policysweep import cli, telemetry
from policysweep.config import ServiceConfig
from policysweep.errors import AgentUnavailable, InputError
from policysweep.rpc import server, status
from policysweep.rpc.client import Channels, open_channel
from policysweep.rpc.server import Service, serving
from policysweep.rpc.tls import Credentials, TlsFiles, is_loopback, tls_files
from policysweep.v1 import agent_pb2, agent_pb2_grpc

SECONDS = 10.0
DAY = timedelta(days=1)
EXPIRED = (-10 * DAY, -DAY)
NOT_YET = (DAY, 2 * DAY)
_NAME = agent_pb2.DESCRIPTOR.services_by_name["AgentService"].full_name
_SCRIPT = Path(__file__).parents[2] / "scripts" / "dev_certificates.py"


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("dev_certificates", _SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # A dataclass looks itself up by its module.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


certificates = _script()


@dataclass(frozen=True)
class Party:
    """Somebody with certificates of one authority in a folder."""

    authority: Any
    folder: Path

    def issue(self, name: str = "agent", **options: Any) -> TlsFiles:
        made = self.authority.issue(self.folder / name, [name], **options)
        return TlsFiles(made / "tls.crt", made / "tls.key", made / "ca.crt")


@pytest.fixture(name="ours")
def ours_fixture(tmp_path: Path) -> Party:
    return Party(certificates.Authority.kept(tmp_path / "ours"), tmp_path / "ours")


@pytest.fixture(name="others")
def others_fixture(tmp_path: Path) -> Party:
    return Party(certificates.Authority.make("somebody else"), tmp_path / "others")


def shown(files: TlsFiles, trusting: TlsFiles) -> grpc.ChannelCredentials:
    """What a client sends that checks nothing of its own files."""
    return grpc.ssl_channel_credentials(
        trusting.ca.read_bytes(), files.key.read_bytes(), files.cert.read_bytes()
    )


class Agent(agent_pb2_grpc.AgentServiceServicer):
    """Counts what reaches it."""

    calls = 0

    async def GetAgentInfo(  # noqa: N802 - the contract's name
        self, request: agent_pb2.GetAgentInfoRequest, context: Any
    ) -> agent_pb2.GetAgentInfoResponse:
        self.calls += 1
        return agent_pb2.GetAgentInfoResponse()

    async def Respond(self, request: Any, context: Any) -> Any:  # noqa: N802 - the contract's name
        raise NotImplementedError


@dataclass(frozen=True)
class Served:
    """An agent over mutual TLS, with the files that it serves by."""

    agent: Agent
    address: str
    health: str
    files: TlsFiles


def _port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture(name="served")
async def served_fixture(ours: Party) -> AsyncIterator[Served]:
    agent, files, health = Agent(), ours.issue(), f"127.0.0.1:{_port()}"
    service = Service(_NAME, lambda server: agent_pb2_grpc.add_AgentServiceServicer_to_server(agent, server))
    async with serving(
        "127.0.0.1:0", [service], credentials=Credentials(files), health_listen=health
    ) as address:
        yield Served(agent, address, health, files)


async def ask_agent(channel: grpc.aio.Channel) -> None:
    stub: agent_pb2_grpc.AgentServiceAsyncStub = agent_pb2_grpc.AgentServiceStub(channel)
    await stub.GetAgentInfo(agent_pb2.GetAgentInfoRequest(), timeout=SECONDS)


async def ask_health(channel: grpc.aio.Channel, service: str = _NAME) -> None:
    stub: Any = health_pb2_grpc.HealthStub(channel)
    answer = await stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=SECONDS)
    assert answer.status == health_pb2.HealthCheckResponse.SERVING


async def ask_reflection(channel: grpc.aio.Channel) -> None:
    # Published types know the synchronous form of the stub only.
    make: Any = reflection_pb2_grpc.ServerReflectionStub
    stub = make(channel)
    request = reflection_pb2.ServerReflectionRequest(list_services="")
    answers = [each async for each in stub.ServerReflectionInfo(iter([request]), timeout=SECONDS)]
    assert _NAME in {each.name for each in answers[0].list_services_response.service}


ASKED = (ask_agent, ask_health, ask_reflection)
INTRUDERS: dict[str, Callable[[Party, Party, Served], grpc.ChannelCredentials | None]] = {
    "plaintext": lambda ours, others, served: None,
    "without a certificate": lambda ours, others, served: grpc.ssl_channel_credentials(
        served.files.ca.read_bytes()
    ),
    "expired": lambda ours, others, served: shown(ours.issue("late", valid=EXPIRED), served.files),
    "not yet valid": lambda ours, others, served: shown(ours.issue("early", valid=NOT_YET), served.files),
    "of another authority": lambda ours, others, served: shown(others.issue(), served.files),
    "signed by itself": lambda ours, others, served: grpc.ssl_channel_credentials(
        served.files.ca.read_bytes(), certificates._pem(others.authority.key), others.authority.pem
    ),
}


@pytest.mark.parametrize("intruder", INTRUDERS)
async def test_an_intruder_gets_no_answer_from_any_method(
    intruder: str, ours: Party, others: Party, served: Served
) -> None:
    credentials = INTRUDERS[intruder](ours, others, served)
    for ask in ASKED:
        channel = (
            grpc.aio.secure_channel(served.address, credentials)
            if credentials
            else grpc.aio.insecure_channel(served.address)
        )
        async with channel:
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await ask(channel)
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
        assert not refused.value.initial_metadata()
    assert served.agent.calls == 0


async def test_a_peer_of_the_same_authority_is_answered(ours: Party, served: Served) -> None:
    async with open_channel(served.address, Credentials(ours.issue("driver"), serves=False)) as channel:
        for ask in ASKED:
            await ask(channel)


async def test_a_name_is_resolved_and_checked(ours: Party, served: Served) -> None:
    port = served.address.rpartition(":")[2]
    async with open_channel(f"dns:///localhost:{port}", Credentials(ours.issue("driver"))) as channel:
        await ask_agent(channel)


async def test_a_server_of_another_name_is_not_believed(ours: Party) -> None:
    """127.0.0.2 is in no certificate of the script."""
    credentials, agent = Credentials(ours.issue()), Agent()
    service = Service(_NAME, lambda server: agent_pb2_grpc.add_AgentServiceServicer_to_server(agent, server))
    async with serving("127.0.0.2:0", [service], credentials=credentials) as address:
        assert "its certificate is not one for this name" in await problem(address, credentials)
    assert agent.calls == 0


async def problem(address: str, credentials: Credentials | None) -> str:
    """What a failed call to an agent is told as."""
    async with open_channel(address, credentials) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await ask_agent(channel)
    error = status.error_from(failed.value, status.AGENT, "agent:50052")
    assert isinstance(error, AgentUnavailable)
    return str(error)


async def test_both_ends_say_what_may_be_wrong(others: Party, served: Served) -> None:
    assert "wants TLS" in await problem(served.address, None)
    theirs = Credentials(others.issue("driver"))
    assert "CERTIFICATE_VERIFY_FAILED: unable to get local issuer" in await problem(served.address, theirs)
    async with serving("127.0.0.1:0", []) as plain:
        assert await problem(plain, theirs) == "agent at agent:50052 cannot be reached: it does not speak TLS"


async def test_probes_without_a_certificate_learn_of_health_and_nothing_else(served: Served) -> None:
    async with grpc.aio.insecure_channel(served.health) as channel:
        await ask_health(channel)
        await ask_health(channel, "")
        for ask in (ask_agent, ask_reflection):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await ask(channel)
            assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


# -------------------------------------------------------------------------------------- renewal


async def test_certificates_are_renewed_under_a_running_server_and_its_clients(
    ours: Party, others: Party, served: Served
) -> None:
    """Even to another authority: both sides read the new files, and who still has the old ones is refused."""
    old = shown(served.files, served.files)
    async with Channels(Credentials(served.files)) as channels:
        before = channels.get(served.address)
        await ask_agent(before)
        assert channels.get(served.address) is before
        others.authority.issue(served.files.cert.parent, ["agent"])
        after = channels.get(served.address)
        assert after is not before
        await ask_agent(after)
        # The connection that stands goes on.
        await ask_agent(before)
    async with grpc.aio.secure_channel(served.address, old) as channel:
        with pytest.raises(grpc.aio.AioRpcError):
            await ask_agent(channel)


async def test_a_renewal_that_does_not_hold_together_changes_nothing(ours: Party, served: Served) -> None:
    driver = Credentials(ours.issue("driver"))
    served.files.key.write_bytes(driver.files.key.read_bytes())
    async with open_channel(served.address, driver) as channel:
        await ask_agent(channel)


def test_files_that_were_refused_are_looked_at_again_after_a_while(
    ours: Party, monkeypatch: pytest.MonkeyPatch
) -> None:
    credentials = Credentials(ours.issue())
    before = credentials.current()
    ours.issue(valid=NOT_YET)
    with capture_logs() as logs:
        assert credentials.current() is credentials.current() is before
    assert [entry["event"][:23] for entry in logs] == ["certificate not renewed"]
    credentials.files.key.unlink()
    assert credentials.current() is before
    ours.issue()
    monkeypatch.setattr("policysweep.rpc.tls.time", SimpleNamespace(monotonic=lambda: float("inf")))
    assert credentials.current() is not before


@pytest.mark.parametrize("serves", [True, False])
def test_when_a_certificate_ends_is_a_metric(ours: Party, serves: bool) -> None:
    expected = (datetime.now(UTC) + 5 * DAY).timestamp()
    Credentials(ours.issue(valid=(-DAY, 5 * DAY)), serves=serves)
    (metric,) = telemetry.TLS_EXPIRY.collect()
    assert abs(metric.samples[0].value - expected) < 60


async def test_serving_others_without_tls_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = asyncio.Event()
    stopped.set()
    monkeypatch.setattr(server, "stop_event", lambda on_stdin_eof: stopped)
    make: Any = ServiceConfig  # its fields have defaults, which the plugin-less checker does not see
    for listen, warned in (("0.0.0.0:0", True), ("127.0.0.1:0", False)):
        with capture_logs() as logs:
            await server.run_service(make(listen=listen), "any", [])
        levels = [entry["log_level"] for entry in logs if "without TLS" in entry["event"]]
        assert levels == (["warning"] if warned else [])


@pytest.mark.parametrize("command", ["run", "judge", "up"])
def test_a_command_wants_all_three_files(command: str, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(sys, "argv", ["policysweep", command, "any", "--tls-cert", "a"])
    if command == "run":
        sys.argv.append("--store=any")
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert "--tls-key and --tls-ca missing" in capsys.readouterr().err


# ---------------------------------------------------------------------------------------- files


def refused(files: TlsFiles, **options: Any) -> str:
    with pytest.raises(InputError) as error:
        Credentials(files, **options)
    return str(error.value)


@pytest.mark.parametrize(
    ("valid", "reason"), [(EXPIRED, "certificate has expired"), (NOT_YET, "certificate is not yet valid")]
)
def test_a_certificate_out_of_its_time_is_refused_at_start(ours: Party, valid: Any, reason: str) -> None:
    files = ours.issue(valid=valid)
    assert refused(files) == f"{files.cert}: peers that trust {files.ca} would refuse it: {reason}"
    assert reason in refused(files, serves=False)


def test_files_that_do_not_belong_together_are_told_apart(ours: Party, others: Party) -> None:
    one, two, foreign = ours.issue("one"), ours.issue("two"), others.issue("three")
    assert "is not the key of the certificate" in refused(TlsFiles(one.cert, two.key, one.ca))
    assert "unable to get local issuer certificate" in refused(TlsFiles(foreign.cert, foreign.key, one.ca))
    assert f"{one.key}: holds no certificate" in refused(TlsFiles(one.key, one.key, one.ca))
    assert f"{one.key}: holds no certificate" in refused(TlsFiles(one.cert, one.key, one.key))
    assert f"{one.cert}: holds no private key" in refused(TlsFiles(one.cert, one.cert, one.ca))
    gone = one.cert.with_name("gone")
    assert refused(TlsFiles(gone, one.key, one.ca)) == f"{gone}: cannot be read: No such file or directory"


@pytest.mark.parametrize("content", [b"", b"\x00\xff", "Schlüssel".encode(), b"-----BEGIN CERTIFICATE-----"])
def test_what_is_no_pem_is_refused(ours: Party, content: bytes) -> None:
    for spoilt in ("cert", "key", "ca"):
        files = ours.issue()
        path: Path = getattr(files, spoilt)
        path.write_bytes(content)
        assert str(path) in refused(files)


def test_a_key_with_a_password_asks_nobody(ours: Party) -> None:
    files, locked = ours.issue(), form.BestAvailableEncryption(b"word")
    key = form.load_pem_private_key(files.key.read_bytes(), None)
    files.key.write_bytes(key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, locked))
    assert "without a password" in refused(files)


def test_all_three_files_or_none() -> None:
    assert tls_files("", "", "") is None
    assert tls_files("a", "b", "c") == TlsFiles(Path("a"), Path("b"), Path("c"))
    for given, missing in [(("a", "", ""), "--tls-key and --tls-ca missing"), (("a", "b", ""), "--tls-ca")]:
        with pytest.raises(InputError, match=f"{missing}.* all three files or none"):
            tls_files(*given)


@pytest.mark.parametrize(
    ("listen", "loopback"),
    [
        ("127.0.0.1:0", True),
        ("127.9.9.9:50051", True),
        ("localhost:1", True),
        ("[::1]:1", True),
        ("0.0.0.0:1", False),
        ("[::]:1", False),
        ("10.0.0.1:1", False),
        ("agent:1", False),
    ],
)
def test_what_other_machines_can_reach(listen: str, loopback: bool) -> None:
    assert is_loopback(listen) is loopback


def test_the_script_keeps_keys_to_their_owner(ours: Party) -> None:
    files = ours.issue()
    for key in (files.key, ours.folder / "ca.key"):
        assert os.stat(key).st_mode & 0o777 == 0o600
