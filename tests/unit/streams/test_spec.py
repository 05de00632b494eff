"""The stream file: defaults as in the paper, and complaints that name file, line and field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from policysweep.errors import InputError
from policysweep.streams import spec as module
from policysweep.streams.spec import StreamSpec, load_spec
from policysweep.v1 import policybank_pb2 as pb
from policysweep.v1 import stream_pb2

EXAMPLES = Path(__file__).parents[3] / "examples"
SMALL: dict[str, Any] = {
    "name": "small",
    "methods": ["none", "awm", "policy_bank", "human_oracle"],
    "agents": [{"name": "fair", "model": "rehearsal-fair"}],
}


def spec_of(**changes: Any) -> StreamSpec:
    return StreamSpec.model_validate({**SMALL, **changes})


def complaint(tmp_path: Path, **changes: Any) -> str:
    file = tmp_path / "streams.yaml"
    file.write_text(yaml.safe_dump({**SMALL, **changes}, sort_keys=False), encoding="utf-8")
    with pytest.raises(InputError) as found:
        load_spec(file)
    return str(found.value).replace(str(file), "F")


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("streams*.yaml")), ids=lambda path: path.name)
def test_the_examples_are_valid(path: Path) -> None:
    assert load_spec(path).name == path.stem


def test_the_defaults_are_those_of_the_paper() -> None:
    spec = spec_of()
    assert spec.domains == ("airline", "retail")
    assert (spec.seeds, spec.trials) == ((0, 1, 2, 3, 4), 4)
    assert spec.feedback == ("explanation",)
    assert (spec.limits.max_steps, spec.limits.max_errors) == (200, 10)
    assert spec.sisters
    assert spec.controls_message() == stream_pb2.CONTROL_PLACEMENT_NONE


def test_every_field_is_documented() -> None:
    models = [
        each for each in vars(module).values() if isinstance(each, type) and issubclass(each, BaseModel)
    ]
    undocumented = [
        f"{model.__name__}.{name}"
        for model in models
        for name, field in model.model_fields.items()
        if not field.description
    ]
    assert not undocumented


def test_each_method_is_played_in_its_way() -> None:
    spec = spec_of(feedback=["reward", "explanation"], static_memory="static_start")
    by_method = {each.method: each for each in spec.method_messages()}
    assert by_method[pb.MEMORY_METHOD_NONE].memory_mode == "none"
    assert not by_method[pb.MEMORY_METHOD_NONE].regimes
    assert by_method[pb.MEMORY_METHOD_AWM].memory_mode == "static_start"
    assert by_method[pb.MEMORY_METHOD_POLICY_BANK].memory_mode == "retrieve"
    both = [pb.FEEDBACK_REGIME_REWARD, pb.FEEDBACK_REGIME_EXPLANATION]
    assert list(by_method[pb.MEMORY_METHOD_POLICY_BANK].regimes) == both
    assert list(by_method[pb.MEMORY_METHOD_HUMAN_ORACLE].regimes) == [pb.FEEDBACK_REGIME_ORACLE]
    assert spec.memory_modes() == ("none", "static_start", "retrieve", "full")


def test_seeds_may_be_a_number_or_a_list(tmp_path: Path) -> None:
    assert spec_of(seeds=2).seeds == (0, 1)
    assert spec_of(seeds=[7, 3]).seeds == (7, 3)
    assert "F:10: seeds: must be how many seeds, from 1 to 10000, or a list" in complaint(tmp_path, seeds=0)
    assert "must not repeat 3" in complaint(tmp_path, seeds=[3, 3])


def test_a_run_without_a_memory_needs_no_bank() -> None:
    assert not spec_of(methods=["none"]).needs_bank
    assert spec_of().needs_bank


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"methods": ["policy-bank"]}, "methods"),
        ({"agents": [{"name": "a"}]}, "agent a needs a model or targets"),
        ({"agents": [{"name": "a", "model": "qwen"}]}, "model_url is missing"),
        (
            {
                "agents": [
                    {"name": "a", "targets": {"none": "agent:1", "retrieve": "agent:2", "full": "agent:3"}}
                ]
            },
            "agent a has no target for memory static_turn, which awm needs",
        ),
        (
            {"agents": [{"name": "a", "targets": {"none": "agent:1"}, "temperature": 0.5}]},
            "agent a has targets, so temperature cannot be set here",
        ),
        ({"originals": {"tasks": ["airline-1"], "ordinary": 3}}, "give tasks or ordinary, not both"),
        (
            {"bank": {"target": "bank:1", "store": "banks"}},
            "bank policybank has a target, so store cannot be",
        ),
        (
            {"bank": {"model": "rehearsal-judge", "store": "memory"}},
            "bank.store: must outlive the bank service",
        ),
        (
            {"bank": {"model": "rehearsal-judge", "store": "s3://bucket/banks"}},
            "bank.store: must be a directory, or the URL of a Qdrant server",
        ),
        (
            {"bank": {"model": "rehearsal-judge", "parameters": {"store": "memory"}}},
            "bank.parameters: must not hold store: a field of bank, or the command, says that",
        ),
        (
            {"bank": {"model": "rehearsal-judge", "parameters": {"listen": "0.0.0.0:1"}}},
            "bank.parameters: must not hold listen: a field of bank, or the command, says that",
        ),
        ({"seeds": "five"}, "seeds: must be how many seeds, from 1 to 10000, or a list of them"),
        (
            {"agents": [{"name": "a", "targets": {"none": "agent:1", "retreive": "agent:2"}}]},
            "agents[0].targets.retreive: must be 'none',",
        ),
        ({"customer": {}, "simulators": ["sim:1"]}, "customer cannot be set together with simulators"),
        ({"limits": {"agent_call_seconds": 99.0, "episode_seconds": 9.0}}, "must not be longer than"),
        ({"feedback": ["oracle"]}, "feedback"),
        ({"judges": []}, "judges"),
    ],
)
def test_what_cannot_be_is_refused_with_its_line(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    found = complaint(tmp_path, **changes)
    assert found.startswith("F:")
    assert said in found


def test_settings_of_a_bank_service_are_passed_on() -> None:
    bank = spec_of(bank={"model": "rehearsal-judge", "store": "b", "parameters": {"awm_limit": 2}}).bank
    assert bank.settings() == {"model": "rehearsal-judge", "store": "b", "awm_limit": 2}


def test_missing_variables_are_all_named() -> None:
    spec = spec_of(
        agents=[{"name": "a", "model": "m", "model_url": "http://x/v1", "api_key_env": "A_KEY"}],
        bank={
            "model": "m",
            "model_url": "http://x/v1",
            "store": "http://q:6333",
            "store_api_key_env": "Q_KEY",
        },
    )
    with pytest.raises(
        InputError, match=r"agent a: api_key_env names A_KEY(.|\n)*store_api_key_env names Q_KEY"
    ):
        spec.check_environment({})
    spec.check_environment({"A_KEY": "1", "Q_KEY": "2"})
