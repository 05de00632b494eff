"""The model servers of deploy/k8s/models: what the probe looks for, on as many GPUs as they are cut into."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

from policysweep.probe import flags
from policysweep.probe.checks.context import CUSTOMER_TOKENS, NEEDED_TOKENS
from services.agent.config import AgentConfig

from .rendering import K8S, Installation, Workload, build

MODELS = sorted(folder for folder in (K8S / "models").iterdir() if folder.is_dir())
AGENTS = sorted(folder for folder in (K8S / "agents").iterdir() if folder.is_dir())
OWN = {"--port", "--tensor-parallel-size", "--shutdown-timeout"}
"""Flags that are about the deployment, which no probe sees."""
_FLAG = re.compile(r"--[a-z][a-z-]+")

every_model = pytest.mark.parametrize("folder", MODELS, ids=lambda folder: folder.name)


@functools.cache
def server(folder: Path) -> Workload:
    """The model server of a folder."""
    (workload,) = Installation(folder.name, build(folder)).workloads
    return workload


def set_flags(workload: Workload) -> dict[str, str]:
    """The flags with their values, "" for none."""
    words = [word for word in workload.arguments() if word.startswith("--")]
    return {name: value for name, _, value in (word.partition("=") for word in words)}


def value(name: str, workload: Workload) -> str:
    return set_flags(workload)[name]


@every_model
def test_the_flags_are_those_that_the_probe_names(folder: Path) -> None:
    named = {name for flag in flags.ALL for name in _FLAG.findall(flag)}
    assert set(set_flags(server(folder))) - OWN == named


@every_model
@pytest.mark.parametrize("flag", [flags.STRUCTURED_OUTPUT, flags.LOGPROBS])
def test_flags_that_hold_for_all_models_have_the_values_that_the_probe_names(folder: Path, flag: str) -> None:
    assert flag in server(folder).arguments()


@every_model
def test_it_has_as_many_gpus_as_it_is_cut_into(folder: Path) -> None:
    resources = server(folder).main["resources"]
    gpus = int(value("--tensor-parallel-size", server(folder)))
    assert resources["requests"]["nvidia.com/gpu"] == resources["limits"]["nvidia.com/gpu"] == gpus


@every_model
def test_a_pod_has_longer_than_its_answers(folder: Path) -> None:
    workload = server(folder)
    ending = workload.main["lifecycle"]["preStop"]["sleep"]["seconds"] + int(
        value("--shutdown-timeout", workload)
    )
    assert workload.pod["terminationGracePeriodSeconds"] > ending


@every_model
def test_weights_have_an_hour_to_come_and_are_kept(folder: Path) -> None:
    workload = server(folder)
    probe = workload.main["startupProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] >= 3_600
    (claim,) = workload.spec["volumeClaimTemplates"]
    mounts = {mount["name"]: mount["mountPath"] for mount in workload.main["volumeMounts"]}
    # The home of the image's user, in which weights and compiled kernels are cached.
    assert mounts[claim["metadata"]["name"]] == "/home/vllm"
    assert claim["spec"]["accessModes"] == ["ReadWriteOnce"]  # one pod each


GUIDE = (K8S.parents[1] / "docs" / "adding-a-model.md").read_text("utf-8")


def test_the_guide_serves_with_flags_that_the_manifests_set() -> None:
    command = GUIDE.split("```sh\n", 1)[1].split("```", 1)[0]
    ours = set_flags(server(K8S / "models" / "qwen3-8b"))
    told = dict(re.findall(r"(--[a-z-]+)(?:=(\S+))?", command))
    assert {name: text.strip("'") for name, text in told.items()}.items() <= ours.items()
    assert set(ours) - OWN - {"--max-logprobs"} == set(told)  # the one that is vLLM's default


def test_the_guide_names_models_that_are_there_and_the_context_that_is_asked_for() -> None:
    for name in ("qwen3-8b", "qwen25-72b", "gpt-oss-20b"):
        assert f"`{name}`" in GUIDE
        assert K8S / "models" / name in MODELS
    assert f"agent, judge {NEEDED_TOKENS:,}; customer {CUSTOMER_TOKENS:,}" in GUIDE
    assert "TENSOR_PARALLEL_SIZE" in GUIDE


def test_there_is_one_of_each_kind() -> None:
    servers = [server(folder) for folder in MODELS]
    gpus = {int(value("--tensor-parallel-size", each)) for each in servers}
    thinking = {bool(value("--reasoning-parser", each)) for each in servers}
    assert {1, 4} <= gpus
    assert thinking == {True, False}


@pytest.mark.parametrize("folder", AGENTS, ids=lambda folder: folder.name)
def test_an_agent_has_settings_that_exist_and_its_server_serves_its_model(folder: Path) -> None:
    (workload,) = Installation(folder.name, build(folder)).workloads
    prefix = "POLICYSWEEP_AGENT_"
    told = {
        name.removeprefix(prefix).lower(): text
        for name, text in workload.environment().items()
        if name.startswith(prefix)
    }
    config = AgentConfig.model_validate(told)
    config.check()
    host = re.fullmatch(r"http://vllm-([a-z0-9-]+):8000/v1", config.model_url)
    if host is None:
        return
    served = server(K8S / "models" / host[1])
    assert config.model in served.arguments()
    if value("--reasoning-parser", served):
        assert config.max_tokens >= 4_096, "a model that thinks first needs room to answer"
        assert config.model_timeout_seconds >= 300
