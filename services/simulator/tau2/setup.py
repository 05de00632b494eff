"""What a tau2-bench episode starts from: a request that can be played, and the first request to the agent."""

from __future__ import annotations

from policysweep.domains.tau2 import Domain
from policysweep.errors import InputError
from policysweep.v1 import agent_pb2, scenario_pb2, simulator_pb2
from policysweep.v1 import episode_pb2 as ep

GREETING = "Hello! How can I help you today?"
"""What the agent says first in every episode; it is not asked for it."""


def check_setup(setup: simulator_pb2.RunTau2EpisodeRequest) -> None:
    """Refuse a request that cannot be played. Raises InputError that names the field."""
    scenario = setup.user_scenario
    missing = [
        name
        for name, present in (
            ("episode_id", setup.episode_id),
            ("domain", setup.domain),
            ("task_id", setup.task_id),
            ("agent_target", setup.agent_target),
            ("user_scenario", scenario.reason_for_call or scenario.task_instructions),
            ("policy.primary.text", not setup.HasField("policy") or setup.policy.primary.text),
        )
        if not present
    ]
    if missing:
        raise InputError(f"RunTau2Episode: {', '.join(missing)} must not be empty")
    for field in simulator_pb2.Tau2Limits.DESCRIPTOR.fields:
        if (value := getattr(setup.limits, field.name)) <= 0:
            raise InputError(f"RunTau2Episode: limits.{field.name} must be positive, got {value}")


def first_request(setup: simulator_pb2.RunTau2EpisodeRequest, domain: Domain) -> agent_pb2.RespondRequest:
    """The agent's request before anything was said: policy, tools, seed. There are no outcomes to declare."""
    own = scenario_pb2.Policy(primary=scenario_pb2.PolicyDocument(text=domain.policy))
    return agent_pb2.RespondRequest(
        episode_id=setup.episode_id,
        policy=setup.policy if setup.HasField("policy") else own,
        tools=domain.agent_box.definitions,
        bank_id=setup.bank_id,
        seed=setup.seed,
    )


def new_episode(setup: simulator_pb2.RunTau2EpisodeRequest) -> ep.Episode:
    """The episode before anything was said."""
    return ep.Episode(
        episode_id=setup.episode_id,
        scenario_id=f"{setup.domain}-{setup.task_id}",
        task_id=setup.task_id,
        seed=setup.seed,
    )
