"""The agents that the contract suite is run against.

With `--agent-target HOST:PORT`, that one. Without, the two that ship with the project, started as processes:
examples/minimal_agent.py, and the baseline agent over a rehearsal server.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest

from policysweep.rpc.client import MAX_MESSAGE_BYTES
from policysweep.v1 import agent_pb2, agent_pb2_grpc

ROOT = Path(__file__).parents[2]
_ADDRESS = re.compile(r"127\.0\.0\.1:\d+")
_REHEARSAL_MODEL = "rehearsal-strict"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("agent contract")
    group.addoption("--agent-target", metavar="HOST:PORT", help="agent service to run the suite against")
    group.addoption(
        "--agent-timeout", metavar="SECONDS", type=float, help="deadline of one call to the agent (60)"
    )


@dataclass(frozen=True)
class Target:
    """An agent under test. `ours` is whether it is one of the project's own, which promise more."""

    address: str
    ours: bool
    channel: grpc.Channel
    timeout: float

    def stub(self) -> agent_pb2_grpc.AgentServiceStub:
        return agent_pb2_grpc.AgentServiceStub(self.channel)

    def respond(self, request: agent_pb2.RespondRequest) -> agent_pb2.RespondResponse:
        return self.stub().Respond(request, timeout=self.timeout)

    def info(self) -> agent_pb2.AgentInfo:
        request = agent_pb2.GetAgentInfoRequest()
        return self.stub().GetAgentInfo(request, timeout=self.timeout).info


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "target" in metafunc.fixturenames:
        given = metafunc.config.getoption("--agent-target", default=None)
        agents = ["given"] if given else ["minimal", "baseline"]
        metafunc.parametrize("target", agents, indirect=True, scope="session")


@pytest.fixture(scope="session")
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    config = request.config
    timeout: float = config.getoption("--agent-timeout", default=None) or 60.0
    options = [(f"grpc.max_{way}_message_length", MAX_MESSAGE_BYTES) for way in ("send", "receive")]
    with ExitStack() as stack:
        if request.param == "given":
            address = str(config.getoption("--agent-target"))
        else:
            address = stack.enter_context(_minimal() if request.param == "minimal" else _baseline())
        channel = stack.enter_context(grpc.insecure_channel(address, options))
        try:
            grpc.channel_ready_future(channel).result(timeout)
        except grpc.FutureTimeoutError:
            pytest.exit(
                f"no agent answers at {address}: is it running?", returncode=pytest.ExitCode.USAGE_ERROR
            )
        yield Target(address, request.param == "baseline", channel, timeout)


@contextmanager
def _minimal() -> Iterator[str]:
    with _process(["examples/minimal_agent.py", "--listen", "127.0.0.1:0"]) as address:
        yield address


@contextmanager
def _baseline() -> Iterator[str]:
    with _process(["-m", "policysweep", "rehearsal", "--listen", "127.0.0.1:0"]) as rehearsal:
        model = ["--model-url", f"http://{rehearsal}/v1", "--model", _REHEARSAL_MODEL]
        with _process(["-m", "services.agent", "--listen", "127.0.0.1:0", *model]) as address:
            yield address


@contextmanager
def _process(arguments: Sequence[str]) -> Iterator[str]:
    """Run Python with `arguments` from the repository's root; gives the address on its first line."""
    process = subprocess.Popen(
        [sys.executable, *arguments], cwd=ROOT, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        found = _ADDRESS.search(line)
        assert found is not None, f"{arguments} did not say where it listens: {line!r}"
        yield found[0]
    finally:
        process.terminate()
        process.wait(30)
        process.stdout.close()
