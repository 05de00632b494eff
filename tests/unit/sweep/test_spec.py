"""The sweep file: what it accepts, what it refuses and in which words."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

from policysweep.errors import InputError
from policysweep.models.rehearsal.dispositions import DISPOSITIONS
from policysweep.sweep import model_spec
from policysweep.sweep import spec as spec_module
from policysweep.sweep.model_spec import AgentBankSpec, CustomerSpec
from policysweep.sweep.services import service_flags
from policysweep.sweep.spec import SweepSpec, load_spec
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import run_pb2, simulator_pb2

EXAMPLES = Path(__file__).parents[3] / "examples"

BANK = "bank: {id: b, revision: 3, target: 'h:2'}"
SMALL = "name: small\nagents: [{name: strict, model: rehearsal-strict}]\n"


def load(tmp_path: Path, text: str) -> SweepSpec:
    path = tmp_path / "sweep.yaml"
    path.write_text(text)
    return load_spec(path)


def refusal(tmp_path: Path, text: str) -> str:
    with pytest.raises(InputError) as raised:
        load(tmp_path, text)
    return str(raised.value).replace(f"{tmp_path}/", "")


def test_the_smallest_file_gets_every_default(tmp_path: Path) -> None:
    spec = load(tmp_path, SMALL)
    assert (spec.dataset.source, spec.trials, spec.seed, spec.concurrency, spec.max_attempts) == (
        "builtin",
        1,
        0,
        64,
        3,
    )
    assert spec.agents[0].settings() == {"model": "rehearsal-strict"}
    assert spec.customer is None
    assert spec.simulators is None
    assert spec.limits.message() == simulator_pb2.EpisodeLimits(
        max_turns=20,
        max_tool_rounds=5,
        max_errors=3,
        max_repeated_calls=3,
        max_tokens=400_000,
        agent_call_seconds=120,
    )
    assert spec.limits.unit_seconds == 900
    assert spec.agent_persona.assignment_message() == run_pb2.PERSONA_ASSIGNMENT_BALANCED
    assert spec.agent_persona.persona_message() == ep.AGENT_PERSONA_UNSPECIFIED


def test_reads_every_field(tmp_path: Path) -> None:
    spec = load(
        tmp_path,
        """
name: full-2
dataset: {source: builtin}
scenarios: {tasks: [task_000, task_E01], personas: [anna], limit: 5}
agents:
  - {name: q, model: qwen, model_url: "http://vllm:8000/v1", api_key_env: KEY, temperature: 0, top_p: 0.9,
     max_tokens: 512, model_timeout_seconds: 90, tool_mode: prompted}
  - {name: remote, target: "dns:///agent:50052"}
customer: {model: llama, model_url: "https://host/v1", temperature: 0.7}
agent_persona: {assignment: fixed, persona: VERY_HELPFUL}
trials: 4
seed: 11
limits: {max_turns: 10, agent_call_seconds: 5, unit_seconds: 60.5}
concurrency: 256
max_attempts: 2
""",
    )
    assert spec.scenarios.tasks == ("task_000", "task_E01")
    assert spec.agents[0].settings() == {
        "model": "qwen",
        "model_url": "http://vllm:8000/v1",
        "api_key_env": "KEY",
        "temperature": 0.0,
        "top_p": 0.9,
        "max_tokens": 512,
        "model_timeout_seconds": 90.0,
        "tool_mode": "prompted",
    }
    assert spec.agents[1].target == "dns:///agent:50052"
    assert spec.customer is not None
    assert spec.customer.settings()["temperature"] == 0.7
    assert spec.agent_persona.persona_message() == ep.AGENT_PERSONA_VERY_HELPFUL
    assert spec.limits.max_errors == 3


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "agents: [{name: a}]",
            "sweep.yaml:1: agents[0]: agent a needs a model or a target\nsweep.yaml:1: name: is missing",
        ),
        ("name: x\nagents: []", "sweep.yaml:2: agents: must hold at least 1 entry"),
        (
            "name: x\nagents: [{name: a, model: m, target: 'h:1'}]",
            "sweep.yaml:2: agents[0]: agent a has a target, so model cannot be set here: "
            "the service that runs there has its own",
        ),
        (
            "name: x\nagents: [{name: a, target: 'h:1', temperature: 0.5}]",
            "sweep.yaml:2: agents[0]: agent a has a target, so temperature cannot be set here: "
            "the service that runs there has its own",
        ),
        (
            "name: x\nagents: [{name: a, model: qwen}]",
            "sweep.yaml:2: agents[0]: model_url is missing: no server is started for qwen, "
            "only for models named rehearsal-*",
        ),
        (
            "name: x\nagents:\n- {name: a, target: 'h:1'}\n- {name: a, target: 'h:2'}",
            "sweep.yaml:2: agents: must not repeat a",
        ),
        (
            "name: x\nagents: [{name: a, target: 'http://h:1'}]",
            "sweep.yaml:2: agents[0].target: must be a gRPC target such as dns:///agent-qwen:50052, "
            "without http://",
        ),
        (
            "name: x\nagents: [{name: a, target: agent-qwen}]",
            "sweep.yaml:2: agents[0].target: must be a gRPC target with a port, such as dns:///agent:50052, "
            "not 'agent-qwen'",
        ),
        (
            "name: x\nagents: [{name: '../a', target: 'h:1'}]",
            "sweep.yaml:2: agents[0].name: must be 1 to 63 of A-Z, a-z, 0-9 and . _ - (not first), "
            "not '../a'",
        ),
        (
            "name: x\nagents: [{name: a, model: m, model_url: 'http://u:secret@h/v1'}]",
            "sweep.yaml:2: agents[0].model_url: must hold no credentials: "
            "name an environment variable in api_key_env instead",
        ),
        (
            "name: x\nagents: [{name: a, model: m, model_url: '${URL}'}]",
            "sweep.yaml:2: agents[0].model_url: must be the base URL of an OpenAI-compatible server, "
            "such as http://vllm:8000/v1",
        ),
        (
            "name: x\nagents: [{name: a, model: m, model_url: 'http://h', api_key: sk-123}]",
            "sweep.yaml:2: agents[0].api_key: unknown field; did you mean api_key_env?",
        ),
        (
            "name: x\nagents: [{name: a, model: m, model_url: 'http://h', api_key_env: sk-123}]",
            "sweep.yaml:2: agents[0].api_key_env: must be the name of an environment variable, "
            "not the key itself",
        ),
        (
            SMALL + "judges: [{name: j, target: 'h:1', tool_mode: prompted}]",
            "sweep.yaml:3: judges[0].tool_mode: unknown field; the fields here are api_key_env, "
            "context_tokens, max_tokens, model, model_timeout_seconds, model_url, name, target, temperature, "
            "top_p",
        ),
        (
            "name: x\nagents:\n- {name: a, model: rehearsal-fair, memory: retrieve}",
            "sweep.yaml:3: agents[0]: agent a has memory retrieve and no bank: "
            "name one as bank: {id: BANK, revision: N, target: HOST:PORT}",
        ),
        (
            f"name: x\nagents:\n- {{name: a, model: rehearsal-fair, {BANK}}}",
            "sweep.yaml:3: agents[0]: agent a has no memory, so bank and policy_in_prompt cannot be set: "
            "set memory to static_start, static_turn, retrieve or full",
        ),
        (
            "name: x\nagents:\n- {name: a, model: rehearsal-fair, policy_in_prompt: false}",
            "sweep.yaml:3: agents[0]: agent a has no memory, so bank and policy_in_prompt cannot be set: "
            "set memory to static_start, static_turn, retrieve or full",
        ),
        (
            f"name: x\nagents:\n- {{name: a, target: 'h:1', memory: full, policy_in_prompt: false, {BANK}}}",
            "sweep.yaml:3: agents[0]: agent a has a target, so memory, policy_in_prompt cannot be set here: "
            "the service that runs there has its own",
        ),
        (
            "name: x\nagents:\n- name: a\n  target: h:1\n  bank: {id: b, target: 'h:2'}",
            "sweep.yaml:5: agents[0].bank.revision: is missing",
        ),
        (
            "name: x\nagents:\n- name: a\n  target: h:1\n  bank: {id: b, revision: 0, target: 'h:2'}",
            "sweep.yaml:5: agents[0].bank.revision: must be at least 1, not 0",
        ),
        (
            "name: x\nagents:\n- {name: a, model: rehearsal-fair, memory: static}",
            "sweep.yaml:3: agents[0].memory: must be 'static_start', 'static_turn', 'retrieve' or 'full', "
            "not 'static'",
        ),
        (SMALL + "trials: 0", "sweep.yaml:3: trials: must be at least 1, not 0"),
        (SMALL + "seed: 2147483648", "sweep.yaml:3: seed: must be at most 2147483647, not 2147483648"),
        (SMALL + "trails: 2", "sweep.yaml:3: trails: unknown field; did you mean trials?"),
        (
            SMALL + "agent_persona: {assignment: fixed}",
            "sweep.yaml:3: agent_persona: assignment fixed needs a persona",
        ),
        (
            SMALL + "agent_persona: {persona: FAIR}",
            "sweep.yaml:3: agent_persona: persona belongs to assignment fixed, not to balanced",
        ),
        (
            SMALL + "agent_persona: {assignment: random}",
            "sweep.yaml:3: agent_persona.assignment: must be 'balanced', 'fixed' or 'swept', not 'random'",
        ),
        (
            SMALL + "limits: {agent_call_seconds: 100, unit_seconds: 10}",
            "sweep.yaml:3: limits: agent_call_seconds (100) must not be longer than unit_seconds (10)",
        ),
        (
            SMALL + "simulators: ['s:1']\ncustomer: {}",
            "sweep.yaml:1: customer cannot be set together with simulators: each simulator has its own",
        ),
        (SMALL + "simulators: ['s:1', 's:1']", "sweep.yaml:3: simulators: must not repeat s:1"),
        (
            SMALL + "customer: {model: gpt}",
            "sweep.yaml:3: customer: model_url is missing: no server is started for gpt, "
            "only for models named rehearsal-*",
        ),
    ],
)
def test_refuses_and_says_why(tmp_path: Path, text: str, expected: str) -> None:
    assert refusal(tmp_path, text) == expected


@pytest.mark.parametrize("name", ["", "A", "a_b", "-a", "a-", "../a", "a/b", "a" * 64])
def test_run_names_are_safe_names_of_folders(tmp_path: Path, name: str) -> None:
    text = SMALL.replace("small", repr(name))
    assert refusal(tmp_path, text).startswith("sweep.yaml:1: name: must be 1 to 63 of a-z, 0-9 and -")


@pytest.mark.parametrize("target", ["h:1", "dns:///h:50052", "unix:/run/a.sock", "xds:///agent", "[::1]:80"])
def test_accepts_the_targets_of_grpc(tmp_path: Path, target: str) -> None:
    assert load(tmp_path, f"name: x\nagents: [{{name: a, target: '{target}'}}]").agents[0].target == target


def test_paths_are_found_beside_the_sweep_file(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "worlds.jsonl").touch()
    spec = load(tmp_path, SMALL + "dataset: {source: data, worlds: worlds.jsonl}")
    assert (spec.dataset.source, spec.dataset.worlds) == (
        str(tmp_path / "data"),
        str(tmp_path / "worlds.jsonl"),
    )
    assert load(tmp_path, SMALL + "dataset: hub:owner/name").dataset.source == "hub:owner/name"


def test_names_every_key_that_is_not_set(tmp_path: Path) -> None:
    model = "model: m, model_url: 'http://h'"
    spec = load(
        tmp_path,
        f"name: x\nagents:\n- {{name: a, {model}, api_key_env: KEY_A}}\n"
        f"- {{name: b, {model}, api_key_env: KEY_B}}\n"
        f"customer: {{{model}, api_key_env: KEY_C}}",
    )
    spec.check_environment({"KEY_A": "1", "KEY_B": "2", "KEY_C": "3"})
    with pytest.raises(InputError) as raised:
        spec.check_environment({"KEY_A": "1", "KEY_B": ""})
    assert str(raised.value).splitlines() == [
        "agent b: api_key_env names KEY_B, which is not set in the environment",
        "customer: api_key_env names KEY_C, which is not set in the environment",
    ]


def test_a_memory_is_told_to_the_service_that_is_started(tmp_path: Path) -> None:
    model = "model: rehearsal-fair"
    text = (
        f"name: x\nagents:\n- {{name: a, {model}, memory: full, policy_in_prompt: false, {BANK}}}\n"
        f"- {{name: b, {model}, memory: retrieve, {BANK}}}\n- {{name: c, target: 'h:1', {BANK}}}"
    )
    silent, told, elsewhere = load(tmp_path, text).agents
    assert service_flags(silent, "h:3", None) == [
        *("--model", "rehearsal-fair", "--memory", "full", "--no-policy-in-prompt", "--bank-target", "h:2"),
        *("--model-url", "http://h:3/v1"),
    ]
    assert "--no-policy-in-prompt" not in service_flags(told, "h:3", None)
    assert elsewhere.settings() == {}
    assert elsewhere.bank == AgentBankSpec(id="b", revision=3, target="h:2")


def test_every_field_is_documented() -> None:
    models = [
        each
        for module in (spec_module, model_spec)
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, BaseModel)
    ]
    assert {SweepSpec, AgentBankSpec} <= set(models)
    undocumented = [
        f"{model.__name__}.{name}"
        for model in models
        for name, field in model.model_fields.items()
        if not field.description
    ]
    assert undocumented == []


SWEEPS = [path for path in sorted(EXAMPLES.glob("*.yaml")) if not path.name.startswith("streams")]


@pytest.mark.parametrize("path", SWEEPS, ids=lambda path: path.name)
def test_the_examples_are_valid(path: Path) -> None:
    assert load_spec(path).name == path.stem


def test_the_quickstart_names_four_models_that_the_rehearsal_server_has() -> None:
    models = [agent.model for agent in load_spec(EXAMPLES / "quickstart.yaml").agents]
    assert len(models) == 4
    assert set(models) <= set(DISPOSITIONS)
    assert CustomerSpec.model_fields["model"].default in DISPOSITIONS
