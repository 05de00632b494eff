"""The package's own evaluator, run on an episode of ours.

Its module imports a model client that it never calls here, so a stand-in is imported in its place. Loading
the database and hashing it take the evaluator about half a second an episode. Unless
POLICYSWEEP_TAU2_UNACCELERATED is set, it is given copy-on-write databases and their hash instead; other tests
show that both are equal to its own.
"""

from __future__ import annotations

import json
import os
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from policysweep.datasets.tau2 import added_source
from policysweep.domains.tau2 import Domain, load_domain
from policysweep.domains.tau2.package import module
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import tau2_pb2

UNACCELERATED = bool(os.environ.get("POLICYSWEEP_TAU2_UNACCELERATED"))

_TERMINATIONS = {
    ep.END_REASON_USER_STOP: "user_stop",
    ep.END_REASON_USER_TRANSFER: "user_stop",
    ep.END_REASON_USER_OUT_OF_SCOPE: "user_stop",
    ep.END_REASON_RESOLVED: "agent_stop",
    ep.END_REASON_STEP_LIMIT: "max_steps",
    ep.END_REASON_ERROR_LIMIT: "too_many_errors",
}


def _stand_in_for_litellm() -> None:
    if "litellm" in sys.modules:
        return
    for name, members in (
        ("litellm", ("completion", "completion_cost", "disable_cache")),
        ("litellm.caching", ()),
        ("litellm.caching.caching", ("Cache",)),
        ("litellm.main", ("ModelResponse", "Usage")),
    ):
        stand_in = types.ModuleType(name)
        for member in members:
            setattr(stand_in, member, lambda *_, **__: None)
        sys.modules[name] = stand_in


class Upstream:
    """tau2-bench's `evaluate_simulation`."""

    def __init__(self) -> None:
        _stand_in_for_litellm()
        self._evaluator = module("tau2.evaluator.evaluator")
        self._actions = module("tau2.evaluator.evaluator_action").ActionEvaluator
        self._messages = module("tau2.data_model.message")
        self._simulation = module("tau2.data_model.simulation").SimulationRun
        self._task = module("tau2.data_model.tasks").Task
        self._originals = {
            (name, task.id): task
            for name in ("airline", "retail")
            for task in module(f"tau2.domains.{name}.environment").get_tasks(None)
        }
        if not UNACCELERATED:
            self._evaluator.registry.get_env_constructor = _constructor

    def task(self, ours: tau2_pb2.Tau2Task) -> Any:
        """The package's own object of a task."""
        if (original := self._originals.get((ours.domain, ours.task_id))) is not None:
            return original
        return self._task.model_validate(added_source(ours.task_id, ours.domain))

    def evaluate(self, task: Any, episode: ep.Episode, domain: str, *, assertions: bool = False) -> Any:
        """The package's RewardInfo of an episode of ours."""
        kind = self._evaluator.EvaluationType.ALL_WITH_NL_ASSERTIONS if assertions else "all"
        return self._evaluator.evaluate_simulation(
            simulation=self._simulation(
                id="s",
                task_id=task.id,
                start_time="",
                end_time="",
                duration=0.0,
                termination_reason=_TERMINATIONS[episode.end.reason],
                messages=self._trajectory(episode),
            ),
            task=task,
            evaluation_type=self._evaluator.EvaluationType(kind),
            solo_mode=False,
            domain=domain,
        )

    def matched(self, task: Any, episode: ep.Episode) -> Sequence[bool]:
        """Its diagnosis of the gold actions."""
        found = self._actions.calculate_reward(task, self._trajectory(episode)).action_checks or []
        return [check.action_match for check in found]

    def _trajectory(self, episode: ep.Episode) -> list[Any]:
        return [_CONVERSIONS[message.role](self._messages, message) for message in episode.messages]


def _agent(messages: Any, message: ep.Message) -> Any:
    calls = [
        messages.ToolCall(id=call.id, name=call.name, arguments=json.loads(call.arguments_json))
        for call in message.tool_calls
    ]
    return messages.AssistantMessage(
        role="assistant", content=message.content or None, tool_calls=calls or None
    )


def _user(messages: Any, message: ep.Message) -> Any:
    return messages.UserMessage(role="user", content=message.content)


def _tool(messages: Any, message: ep.Message) -> Any:
    return messages.ToolMessage(id=message.tool_call_id, role="tool", content=message.content)


_CONVERSIONS: Mapping[int, Callable[[Any, ep.Message], Any]] = {
    ep.ROLE_AGENT: _agent,
    ep.ROLE_CUSTOMER: _user,
    ep.ROLE_TOOL: _tool,
}


def _constructor(name: str) -> Callable[..., Any]:
    domain = load_domain(name)

    def construct(solo_mode: bool = False) -> Any:
        return _environment(domain)

    return construct


def _environment(domain: Domain) -> Any:
    environment = domain.world()._environment
    environment.get_db_hash = lambda: domain.agent_box.hash.of(environment.tools.db)
    return environment
