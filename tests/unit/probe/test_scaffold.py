"""What a probe writes can be run as it is: the sweep file is one, the folder renders and keeps our rules."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from policysweep.probe.capabilities import ALL
from policysweep.probe.finding import Finding, Verdict
from policysweep.probe.ramp import Ramp, Step
from policysweep.probe.run import ProbeResult
from policysweep.probe.scaffold import (
    AgentEntry,
    agent_entry,
    agent_name,
    files,
    kubernetes_folder,
    sweep_file,
)
from policysweep.sweep.model_spec import AgentSpec
from policysweep.sweep.spec import load_spec
from services.agent.config import AgentConfig
from tests.unit.deploy.rendering import K8S, Installation, Workload, build

ENTRIES = {
    "plain": AgentEntry("qwen3-8b", "Qwen/Qwen3-8B", "http://gpu:8000/v1", "native"),
    "everything": AgentEntry(
        name="tricky",
        model='o/a: "b" #c',
        model_url="https://models.example.com/v1",
        tool_mode="prompted",
        concurrency=16,
        api_key_env="MODEL_KEY",
        thinks=True,
        max_tokens=8192,
        context_tokens=32_768,
        rehearsal=True,
    ),
}
every_entry = pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)


@every_entry
def test_the_sweep_file_is_one(entry: AgentEntry, tmp_path: Path) -> None:
    file = tmp_path / "sweep.yaml"
    file.write_text(sweep_file(entry), encoding="utf-8")
    spec = load_spec(file)
    assert spec.agents == (AgentSpec.model_validate({"name": entry.name, **entry.settings()}),)
    assert spec.agents[0].model == entry.model
    if entry.concurrency:
        assert spec.concurrency == entry.concurrency
    assert spec.name == f"first-{entry.name}"


def rendered(entry: AgentEntry, tmp_path: Path) -> Workload:
    """The agent's workload, from its folder beside copies of the folders that it stands on."""
    for part in ("base/agent", "components"):
        shutil.copytree(K8S / part, tmp_path / part)
    folder = tmp_path / "agents" / entry.name
    folder.mkdir(parents=True)
    (folder / "kustomization.yaml").write_text(kubernetes_folder(entry), encoding="utf-8")
    (workload,) = Installation("probed", build(folder)).workloads
    return workload


@every_entry
def test_the_folder_renders_to_an_agent_with_these_settings(entry: AgentEntry, tmp_path: Path) -> None:
    workload = rendered(entry, tmp_path)
    assert (workload.name, workload.role) == (f"agent-{entry.name}", "agent")
    prefix = "POLICYSWEEP_AGENT_"
    told = {
        name.removeprefix(prefix).lower(): value
        for name, value in workload.environment().items()
        if name.startswith(prefix)
    }
    config = AgentConfig.model_validate(told)
    assert {name: getattr(config, name) for name in entry.settings()} == entry.settings()


def test_the_key_comes_from_a_secret(tmp_path: Path) -> None:
    environment: list[Any] = rendered(ENTRIES["everything"], tmp_path).main["env"]
    assert environment == [
        {"name": "MODEL_KEY", "valueFrom": {"secretKeyRef": {"name": "tricky", "key": "api-key"}}}
    ]


@every_entry
def test_the_rehearsal_model_is_named_as_such(entry: AgentEntry) -> None:
    for text in files(entry).values():
        assert ("REHEARSAL" in text) == entry.rehearsal


@pytest.mark.parametrize("name", [folder.name for folder in (K8S / "agents").iterdir()])
def test_the_folder_has_the_shape_of_those_that_are_there(name: str) -> None:
    ours = yaml.safe_load(kubernetes_folder(ENTRIES["everything"]))
    theirs = yaml.safe_load((K8S / "agents" / name / "kustomization.yaml").read_text("utf-8"))
    assert theirs.keys() <= ours.keys()


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("Qwen/Qwen3-8B", "qwen3-8b"),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama-3-3-70b-instruct"),
        ("/models/my model/", "my-model"),
        ("日本", "model"),
        ("x" * 80, "x" * 40),
    ],
)
def test_names_fit_everywhere(model: str, name: str) -> None:
    assert agent_name(model) == name


def test_a_model_that_thinks_gets_room_and_time() -> None:
    found = {each.name: Finding(Verdict.YES, "") for each in ALL}
    found["thoughts apart"] = Finding(Verdict.YES, "", data={"thinks": 1})
    found["context length"] = Finding(Verdict.YES, "", data={"max_model_len": 12_000})
    steps = [Step(1, 1, 0, 1.0, 10.0, 1.0, 1.0), Step(2, 2, 0, 2.0, 20.0, 1.0, 1.0)]
    entry = agent_entry(
        ProbeResult("http://host/v1", "a/B", findings=found, ramp=Ramp(steps, "")), "native", "KEY"
    )
    assert (entry.max_tokens, entry.concurrency, entry.api_key_env) == (6_000, 2, "KEY")
    assert entry.context_tokens == 12_000  # not listed
    assert "agent_call_seconds: 300" in sweep_file(entry)
    assert entry.settings()["model_timeout_seconds"] == 300
