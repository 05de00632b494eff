"""Bad input ends with one clear message, a non-zero exit code, and nothing half-written."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from policysweep.rpc.server import Service, serving
from policysweep.v1 import simulator_pb2_grpc

pytestmark = pytest.mark.e2e

Command = Callable[..., tuple[int, str]]


def one_message(code: int, output: str, *fragments: str, exit_code: int = 2) -> None:
    """The command failed with the code and with exactly one message, which holds the fragments."""
    assert code == exit_code, output
    assert len([line for line in output.split("\n") if line.startswith("error: ")]) == 1, output
    assert "Traceback" not in output
    for fragment in fragments:
        assert fragment in output, output


@pytest.fixture
def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_an_agent_address_where_nobody_listens(make_sweep: Any, free_port: int) -> None:
    sweep = make_sweep(agents=[{"name": "remote", "target": f"127.0.0.1:{free_port}"}])
    code, output = sweep.run()
    one_message(code, output, "agent remote", f"127.0.0.1:{free_port}", "cannot be reached", exit_code=1)
    assert not sweep.contents()


async def test_an_agent_address_where_something_else_is_served(make_sweep: Any) -> None:
    servicer = simulator_pb2_grpc.SimulatorServiceServicer()  # type: ignore[abstract]  # answers UNIMPLEMENTED

    def register(server: grpc.aio.Server) -> None:
        simulator_pb2_grpc.add_SimulatorServiceServicer_to_server(servicer, server)

    async with serving("127.0.0.1:0", [Service("policysweep.v1.SimulatorService", register)]) as address:
        sweep = make_sweep(agents=[{"name": "wrong", "target": address}])
        import asyncio

        code, output = await asyncio.to_thread(sweep.run)
    one_message(code, output, "agent wrong", "does not serve", exit_code=1)


def test_a_model_server_that_is_down(make_sweep: Any, free_port: int) -> None:
    url = f"http://127.0.0.1:{free_port}/v1"
    sweep = make_sweep(agents=[{"name": "qwen", "model": "qwen", "model_url": url}])
    code, output = sweep.run()
    one_message(code, output, "agent qwen", url, exit_code=1)
    assert not sweep.contents()


def test_a_model_that_the_server_does_not_serve(make_sweep: Any) -> None:
    sweep = make_sweep(agents=[{"name": "odd", "model": "rehearsal-unheard-of"}])
    code, output = sweep.run()
    one_message(code, output, "agent odd", "rehearsal-unheard-of", "rehearsal-strict", exit_code=1)


def test_invalid_yaml_names_the_line(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "broken.yaml"
    file.write_text("name: x\nagents: [\n")
    code, output = command("run", str(file), "--store", str(tmp_path / "store"))
    one_message(code, output, f"{file}:3")
    assert not (tmp_path / "store").exists()


def test_an_unknown_field_names_the_line_and_the_field_that_was_meant(
    command: Command, tmp_path: Path
) -> None:
    file = tmp_path / "typo.yaml"
    file.write_text("name: x\nagents:\n  - {name: a, model: rehearsal-fair}\nconcurency: 3\n")
    code, output = command("run", str(file), "--store", str(tmp_path / "store"))
    one_message(code, output, f"{file}:4", "concurency", "concurrency")


def test_a_sweep_file_that_does_not_exist(command: Command, tmp_path: Path) -> None:
    code, output = command("run", str(tmp_path / "none.yaml"), "--store", str(tmp_path / "store"))
    one_message(code, output, "none.yaml")


def test_a_run_that_does_not_exist(command: Command, tmp_path: Path) -> None:
    for name in ("verify", "report"):
        code, output = command(name, str(tmp_path))
        one_message(code, output, "not a run", "manifest.json")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built-in data set in the public layout."""
    folder = tmp_path_factory.mktemp("built") / "data"
    done = subprocess.run(
        [sys.executable, "-m", "policysweep", "dataset", "build", "builtin", "--output", str(folder)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return folder


def copy_with(built: Path, target: Path, change: Callable[[list[dict[str, Any]]], None]) -> Path:
    """A copy of the data set whose scenarios were changed."""
    target.mkdir()
    for file in built.iterdir():
        (target / file.name).write_bytes(file.read_bytes())
    scenarios = [json.loads(line) for line in (target / "scenarios.jsonl").read_text().split("\n") if line]
    change(scenarios)
    text = "".join(json.dumps(scenario) + "\n" for scenario in scenarios)
    (target / "scenarios.jsonl").write_text(text)
    return target


def duplicate_id(scenarios: list[dict[str, Any]]) -> None:
    scenarios[7]["scenario_id"] = scenarios[3]["scenario_id"]


def missing_field(scenarios: list[dict[str, Any]]) -> None:
    del scenarios[4]["detail_agent"]


def misspelt_field(scenarios: list[dict[str, Any]]) -> None:
    scenarios[5]["first_custmer_message"] = scenarios[5].pop("first_customer_message")


@pytest.mark.parametrize(
    ("change", "line", "fragment"),
    [
        (duplicate_id, 8, "scenario_id"),
        (missing_field, 5, "detail_agent"),
        (misspelt_field, 6, "first_customer_message"),
    ],
)
def test_a_data_set_with_a_fault_names_file_line_and_field(
    make_sweep: Any,
    built: Path,
    tmp_path: Path,
    change: Callable[[list[dict[str, Any]]], None],
    line: int,
    fragment: str,
) -> None:
    data = copy_with(built, tmp_path / "data", change)
    sweep = make_sweep(dataset=str(data))
    code, output = sweep.run()
    one_message(code, output, f"scenarios.jsonl:{line}", fragment)
    assert not sweep.folder.exists()


def test_a_byte_order_mark_and_windows_line_ends_are_simply_read(
    make_sweep: Any, built: Path, tmp_path: Path
) -> None:
    data = copy_with(built, tmp_path / "data", lambda scenarios: None)
    file = data / "scenarios.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"\n", b"\r\n"))
    sweep = make_sweep(dataset=str(data), scenarios={"limit": 2})
    code, output = sweep.run()
    assert code == 0, output
    assert sweep.verify()[0] == 0


def test_a_store_that_cannot_be_written(make_sweep: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    sweep = make_sweep()
    code, output = sweep.run(store=tmp_path / "file" / "store")
    one_message(code, output, str(tmp_path / "file"), exit_code=code)
    assert code in (1, 2)


def test_a_store_of_an_unknown_kind(make_sweep: Any) -> None:
    code, output = make_sweep().run("--store", "ftp://host/runs")
    one_message(code, output, "ftp://")


def test_a_shard_that_does_not_exist(make_sweep: Any) -> None:
    code, output = make_sweep().run("--shard", "4/4")
    one_message(code, output, "4/4", "3/4")


@pytest.mark.parametrize(
    "module",
    [
        ["policysweep", "rehearsal"],
        ["services.agent", "--model", "rehearsal-fair", "--model-url", "http://127.0.0.1:1/v1"],
        ["services.simulator", "--model", "rehearsal-fair", "--model-url", "http://127.0.0.1:1/v1"],
    ],
)
def test_a_port_in_use(module: list[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = subprocess.run(
            [sys.executable, "-m", *module, "--listen", address],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            env=dict(os.environ),
        )
    one_message(done.returncode, done.stdout, address, "in use")


def test_an_api_key_variable_that_is_not_set(make_sweep: Any) -> None:
    agent = {"name": "a", "model": "m", "model_url": "http://127.0.0.1:1/v1", "api_key_env": "NO_SUCH_KEY"}
    code, output = make_sweep(agents=[agent]).run()
    one_message(code, output, "NO_SUCH_KEY")
