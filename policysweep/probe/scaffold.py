"""What a probe leaves behind for an agent: a sweep file that runs, and the agent's Kubernetes folder; pure.

sweep.yaml                        a first sweep of a few scenarios
agents/NAME/kustomization.yaml    to be copied into deploy/k8s/agents
probe.json                        the findings
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from policysweep.models.prompted_tools import ToolMode
from policysweep.probe.capabilities import CONTEXT, THOUGHTS
from policysweep.probe.run import ProbeResult

_NAME_LENGTH = 40
_FIRST_SCENARIOS = 4
_THINKING_TOKENS = 8_192
"""For an answer of a model that thinks before it writes; its own default is for one that does not."""
_THINKING_SECONDS = 300.0
_REHEARSAL_NOTE = "# REHEARSAL: no model stands behind this server.\n"


@dataclass(frozen=True, slots=True)
class AgentEntry:
    """An agent as a sweep file and as a Kubernetes folder have it."""

    name: str
    model: str
    model_url: str
    tool_mode: ToolMode
    concurrency: int | None = None
    api_key_env: str = ""
    thinks: bool = False
    max_tokens: int | None = None
    context_tokens: int | None = None
    """The context's length, where the server does not list it."""
    rehearsal: bool = False

    def settings(self) -> dict[str, str | float]:
        """What is to be set, under the names that sweep files and the agent service share."""
        settings: dict[str, str | float] = {"model": self.model, "model_url": self.model_url}
        if self.api_key_env:
            settings["api_key_env"] = self.api_key_env
        if self.tool_mode != "native":
            settings["tool_mode"] = self.tool_mode
        if self.max_tokens is not None:
            settings["max_tokens"] = self.max_tokens
        if self.context_tokens is not None:
            settings["context_tokens"] = self.context_tokens
        if self.thinks:
            settings["model_timeout_seconds"] = _THINKING_SECONDS
        return settings


def agent_entry(result: ProbeResult, tool_mode: ToolMode, api_key_env: str = "") -> AgentEntry:
    """The agent that a probed model makes."""
    thinks = bool(result.findings[THOUGHTS.name].data.get("thinks"))
    told = result.findings[CONTEXT.name].data
    context = told.get("max_model_len")
    # Half of the context is for the prompt.
    room = context // 2 if isinstance(context, int) else _THINKING_TOKENS
    return AgentEntry(
        name=agent_name(result.model),
        model=result.model,
        model_url=result.url,
        tool_mode=tool_mode,
        concurrency=result.ramp.recommended if result.ramp else None,
        api_key_env=api_key_env,
        thinks=thinks,
        max_tokens=min(_THINKING_TOKENS, room) if thinks else None,
        context_tokens=context if isinstance(context, int) and not told.get("listed") else None,
        rehearsal=result.rehearsal,
    )


def agent_name(model: str) -> str:
    """A name for the model's agent, fit for files, labels and Services: Qwen/Qwen3-8B becomes qwen3-8b."""
    last = model.rstrip("/").rpartition("/")[2].lower()
    return re.sub(r"[^a-z0-9]+", "-", last).strip("-")[:_NAME_LENGTH].strip("-") or "model"


def files(entry: AgentEntry) -> Mapping[str, str]:
    """The text of each file, by its path."""
    return {
        "sweep.yaml": sweep_file(entry),
        f"agents/{entry.name}/kustomization.yaml": kubernetes_folder(entry),
    }


def sweep_file(entry: AgentEntry) -> str:
    """A first sweep of the agent, with the rehearsal customer and no judge."""
    sweep: dict[str, Any] = {
        "name": f"first-{entry.name}",
        "scenarios": {"limit": _FIRST_SCENARIOS},
        "agents": [{"name": entry.name, **entry.settings()}],
    }
    if entry.thinks:
        sweep["limits"] = {"agent_call_seconds": _THINKING_SECONDS}
    if entry.concurrency is not None:
        sweep["concurrency"] = entry.concurrency
    return (
        "# A first sweep, made by `policysweep probe`: policysweep run sweep.yaml --store runs\n"
        f"{_REHEARSAL_NOTE if entry.rehearsal else ''}"
        "# The customer is the rehearsal customer and nobody judges; examples/ shows sweeps that have both.\n"
        f"{yaml.safe_dump(sweep, sort_keys=False)}"
    )


def kubernetes_folder(entry: AgentEntry) -> str:
    """The kustomization of the agent, as those of deploy/k8s/agents."""
    content: dict[str, Any] = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": ["../../base/agent"],
        "nameSuffix": f"-{entry.name}",
        "labels": [
            {"pairs": {"app.kubernetes.io/instance": entry.name}, "includeSelectors": True},
        ],
        "configMapGenerator": [
            {
                "name": "agent",
                "behavior": "merge",
                "literals": [
                    f"POLICYSWEEP_AGENT_{name.upper()}={value}" for name, value in entry.settings().items()
                ],
            }
        ],
    }
    if entry.api_key_env:
        content["patches"] = [_key_patch(entry)]
    return (
        f"# {entry.model}, made by `policysweep probe`. Set a model URL that the cluster reaches.\n"
        f"{_REHEARSAL_NOTE if entry.rehearsal else ''}"
        f"# A sweep names this agent dns:///agent-{entry.name}:50052.\n"
        f"{yaml.safe_dump(content, sort_keys=False, width=120)}"
    )


def _key_patch(entry: AgentEntry) -> Mapping[str, Any]:
    """The key comes from the Secret that is named after the agent, key `api-key`."""
    reference = {"secretKeyRef": {"name": entry.name, "key": "api-key"}}
    add = {
        "op": "add",
        "path": "/spec/template/spec/containers/0/env",
        "value": [{"name": entry.api_key_env, "valueFrom": reference}],
    }
    return {"target": {"kind": "Deployment"}, "patch": yaml.safe_dump([add], sort_keys=False)}
