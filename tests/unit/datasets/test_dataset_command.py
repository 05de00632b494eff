"""`policysweep dataset` on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson
import pytest
from click.testing import CliRunner, Result

from policysweep.commands import dataset as command
from policysweep.datasets.load import load
from policysweep.datasets.making import command as making
from policysweep.errors import InputError
from policysweep.models.chat import ChatReply, ChatRequest
from policysweep.models.rehearsal.structured import fill
from policysweep.v1 import episode_pb2 as ep

Write = Callable[..., Path]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(command.dataset, [str(each) for each in arguments])


def refused(*arguments: object) -> str:
    result = run(*arguments)
    assert isinstance(result.exception, InputError), result.output
    return str(result.exception)


def test_check_of_a_sound_data_set_succeeds() -> None:
    result = run("check", "builtin")
    assert (result.exit_code, result.output) == (0, "builtin: 0 errors, 0 warnings\n")


def test_check_prints_each_problem_and_fails_on_errors(scenarios: list[Any], write: Write) -> None:
    scenarios[1]["task_id"] = 3
    path = write(scenarios)
    result = run("check", path)
    assert result.exit_code == 1
    assert f"{path}:2: task_id: must be a string, is a number\n" in result.output
    assert result.output.endswith(": 1 error, 2 warnings\n")


def test_check_succeeds_on_warnings(scenarios: list[Any], write: Write) -> None:
    scenarios[0]["remark"] = "x"
    path = write(scenarios)
    result = run("check", path)
    assert result.exit_code == 0
    assert f"{path}:1: remark: warning: unknown field and is ignored\n" in result.output


def test_check_of_nothing_is_refused() -> None:
    assert "there is no data set 'nowhere'" in refused("check", "nowhere")


def test_show_prints_the_chosen_view() -> None:
    result = run("show", "builtin", "Hollis_t000_9a62", "--as", "agent")
    assert result.exit_code == 0
    assert result.output.startswith("== Policy ==\n# Merrowick Return Policy")
    assert "== Case brief ==\nCustomer asks to return a desk frame" in result.output
    assert "pantry door" not in result.output
    assert "pantry door" in run("show", "builtin", "Hollis_t000_9a62").output


def test_show_without_an_id_lists_the_scenarios() -> None:
    result = run("show", "builtin")
    assert result.output.startswith("task_000: Hollis_t000_9a62 ")
    assert len(result.output.strip().split("\n")) == 40


def test_show_of_an_unknown_scenario_is_refused() -> None:
    assert "did you mean Hollis_t000_9a62" in refused("show", "builtin", "Hollis_t000_9a63")


def test_build_writes_and_tells(tmp_path: Path) -> None:
    result = run("build", "builtin", "--output", tmp_path / "out")
    assert result.exit_code == 0
    assert f"{tmp_path / 'out' / 'scenarios.jsonl'}: 400 lines\n" in result.output
    assert "is not empty" in refused("build", "builtin", "--output", tmp_path / "out")
    assert run("build", "builtin", "--output", tmp_path / "out", "--force").exit_code == 0


class Stub:
    """Stands in for the HTTP client: fills the schema as the rehearsal server does."""

    made: list[dict[str, Any]] = []  # noqa: RUF012 -- one list for all, as the command makes its own clients

    def __init__(self, **server: Any) -> None:
        self.made.append(server)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    async def complete(self, request: ChatRequest) -> ChatReply:
        assert request.response_schema is not None
        prompt = "\n".join(message["content"] for message in request.messages)
        text = orjson.dumps(fill(dict(request.response_schema.schema), prompt, request.session_id)).decode()
        return ChatReply(text, (), ep.FINISH_REASON_STOP, ep.Usage(), rehearsal=True)


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> type[Stub]:
    Stub.made.clear()
    monkeypatch.setattr(making, "OpenAIChatModel", Stub)
    return Stub


SERVER = ("--model-url", "http://127.0.0.1:1/v1", "--model", "m")


def test_worlds_are_made_beside_the_data_set(scenarios: list[Any], write: Write, stub: type[Stub]) -> None:
    path = write(scenarios)
    result = run("worlds", path, *SERVER)
    assert result.exit_code == 0, result.exception
    assert "task_000: made by the rehearsal model, attempt 1\n" in result.output
    made = load(str(path))
    assert result.output.endswith(f"{made.made_worlds}: 2 worlds\n")
    assert not made.missing_worlds
    assert stub.made == [{"base_url": "http://127.0.0.1:1/v1", "model": "m", "api_key": None}]
    assert run("worlds", path, *SERVER).output == f"{path}: all 2 tasks have a world\n"
    assert len(stub.made) == 1


def test_worlds_can_go_to_a_file_elsewhere(
    scenarios: list[Any], write: Write, stub: type[Stub], tmp_path: Path
) -> None:
    path, output = write(scenarios), tmp_path / "elsewhere" / "w.jsonl"
    assert run("worlds", path, *SERVER, "--output", output).exit_code == 0
    assert load(str(path)).missing_worlds
    assert not load(str(path), worlds=output).missing_worlds
    again = run("worlds", path, *SERVER, "--output", output)
    assert again.output == f"{output}: 2 worlds\n"


def test_the_public_sample_gets_its_world(public_sample: Path, stub: type[Stub], tmp_path: Path) -> None:
    output = tmp_path / "w.jsonl"
    assert run("worlds", public_sample, *SERVER, "--output", output).exit_code == 0
    world = load(str(public_sample), worlds=output).worlds["task_000"]
    assert world.order.items[0].name in {
        "OmniPro Wireless Security Camera System (2 Cameras, 1 Hub)",
        "SafePad Outdoor Power Extension Cable",
    }


def test_worlds_that_are_there_need_no_model(stub: type[Stub]) -> None:
    assert run("worlds", "builtin", *SERVER).output == "builtin: all 40 tasks have a world\n"
    assert not stub.made


def test_the_key_comes_from_the_environment(
    scenarios: list[Any], write: Write, stub: type[Stub], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(scenarios)
    monkeypatch.delenv("MY_KEY", raising=False)
    assert "names MY_KEY, which is not set" in refused("worlds", path, *SERVER, "--api-key-env", "MY_KEY")
    monkeypatch.setenv("MY_KEY", "secret")
    assert run("worlds", path, *SERVER, "--api-key-env", "MY_KEY").exit_code == 0
    assert stub.made[-1]["api_key"] == "secret"


def test_a_place_that_cannot_be_written_is_refused(
    scenarios: list[Any], write: Write, stub: type[Stub], tmp_path: Path
) -> None:
    path = write(scenarios)
    path.with_name(f"{path.name}.worlds").write_text("a file in the way")
    assert "name a file elsewhere with --output" in refused("worlds", path, *SERVER)
    assert not stub.made
