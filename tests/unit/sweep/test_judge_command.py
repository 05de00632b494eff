"""The options of `policysweep judge`: who judges, under which name, and what is wrong with an option."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from policysweep.commands.judge import judge, judge_specs
from policysweep.errors import InputError
from policysweep.v1 import run_pb2

from .judge_samples import info, rubric

Fields = dict[str, str | None]


def by_model(model: str, name: str | None = None) -> Fields:
    return {"name": name, "model": model, "model_url": "http://vllm:8000/v1", "api_key_env": None}


def known(**models: str) -> run_pb2.Judging:
    entries = [run_pb2.JudgeEntry(name=name, info=info(model)) for name, model in models.items()]
    return run_pb2.Judging(rubric=rubric(), judges=entries)


def names(*given: Fields, judging: run_pb2.Judging | None = None) -> list[str]:
    return [spec.name for spec in judge_specs(given, judging)]


def test_a_new_judge_is_named_after_its_model() -> None:
    assert names(by_model("qwen3-32b"), by_model("org/Model:tag")) == ["qwen3-32b", "org-Model-tag"]


def test_the_judge_of_the_run_that_has_the_model_goes_on_under_its_name() -> None:
    run = known(first="gpt-x", second="qwen3-32b")
    assert names(by_model("qwen3-32b"), by_model("new"), judging=run) == ["second", "new"]


def test_a_name_that_is_given_counts() -> None:
    assert names(by_model("qwen3-32b", "mine"), judging=known(first="qwen3-32b")) == ["mine"]


@pytest.mark.parametrize(
    ("given", "run", "said"),
    [
        ([by_model("m"), by_model("m")], None, "judge: names must not repeat m"),
        ([by_model("m")], known(a="m", b="m"), "judges a, b of the run have model m: give --judge NAME=m"),
        ([by_model("m", "a/b")], None, "judge: name must be 1 to 63 of A-Z, a-z, 0-9 and . _ -"),
        ([by_model("/x")], None, "judge: name must be 1 to 63"),
        ([{"name": "a", "target": "http://x:1"}], None, "judge: target must be a gRPC target such as"),
        ([{"name": "a", "target": "localhost"}], None, "judge: target must be a gRPC target with a port"),
        (
            [{"name": None, "model": "gpt-x", "model_url": None, "api_key_env": None}],
            None,
            "judge: model_url is missing: no server is started for gpt-x",
        ),
        ([{**by_model("m"), "model_url": "ftp://x"}], None, "judge: model_url must be the base URL"),
        (
            [{**by_model("m"), "api_key_env": "sk-123"}],
            None,
            "api_key_env must be the name of an environment",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(given: list[Fields], run: Any, said: str) -> None:
    with pytest.raises(InputError) as raised:
        judge_specs(given, run)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)
    assert "pydantic" not in str(raised.value)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "nobody to judge: give --judge MODEL or --target NAME=HOST:PORT"),
        (["--judge", "=m"], "--judge '=m': must be MODEL or NAME=MODEL"),
        (["--judge", "a="], "--judge 'a=': must be MODEL or NAME=MODEL"),
        (["--judge", ""], "--judge '': must be MODEL or NAME=MODEL"),
        (["--target", "localhost:1"], "--target 'localhost:1': must be NAME=HOST:PORT"),
        (["--target", "=localhost:1"], "must be NAME=HOST:PORT"),
        (["--target", "a="], "must be NAME=HOST:PORT"),
        (["--judge", "m", "--rubric", "drip-r"], "--rubric: must be NAME@VERSION, such as drip-r@1"),
        (["--judge", "m", "--rubric", "drip-r@0"], "--rubric: must be NAME@VERSION"),
    ],
)
def test_options_that_cannot_be_read(arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(judge, ["RUN", *arguments])
    assert isinstance(result.exception, InputError)
    assert said in str(result.exception)
