"""What one episode is played on: the order world with its tools, and the first request to the agent."""

from __future__ import annotations

import functools
import hashlib

from policysweep.domains.returns.environment import ReturnsEnvironment, agent_tools, customer_tools
from policysweep.domains.returns.resolution import resolution_options
from policysweep.errors import InputError
from policysweep.v1 import agent_pb2, scenario_pb2, simulator_pb2


def returns_environment(setup: simulator_pb2.RunEpisodeRequest) -> ReturnsEnvironment:
    """The order world of a DRIP-R episode. The environment never changes `setup.world`."""
    return ReturnsEnvironment(setup.world, setup.scenario.policy, setup.scenario.persona.name)


def opening(setup: simulator_pb2.RunEpisodeRequest) -> str:
    """The first customer message. The order number comes first, as in the public code: the agent needs it."""
    return f"My order number is {setup.world.order.order_id}. {setup.scenario.first_customer_message}"


def first_request(setup: simulator_pb2.RunEpisodeRequest) -> agent_pb2.RespondRequest:
    """The agent's request without messages and without what `shared_part` holds."""
    return agent_pb2.RespondRequest(
        episode_id=setup.episode_id,
        case_brief=setup.scenario.case_brief,
        resolution_options=resolution_options(),
        agent_persona=setup.agent_persona,
        bank_id=setup.bank_id,
        bank_revision=setup.bank_revision,
        seed=setup.seed,
    )


def shared_part(setup: simulator_pb2.RunEpisodeRequest) -> bytes:
    """What all requests to agents have in common, serialised: policy and tools, nine tenths of them.

    Equal policies share one object, whoever sends them.
    """
    return _shared_part(setup.scenario.policy.SerializeToString())


@functools.lru_cache(maxsize=16)
def _shared_part(policy: bytes) -> bytes:
    shared = agent_pb2.RespondRequest(policy=scenario_pb2.Policy.FromString(policy), tools=agent_tools())
    return shared.SerializeToString()


def tools_digest() -> str:
    """SHA-256 over the definitions of all tools, hex."""
    digest = hashlib.sha256()
    for tool in (*agent_tools(), *customer_tools()):
        digest.update(tool.SerializeToString(deterministic=True))
    return digest.hexdigest()


def check_setup(setup: simulator_pb2.RunEpisodeRequest) -> None:
    """Refuse a request that cannot be played. Raises InputError that names the field."""
    missing = [
        name
        for name, present in (
            ("episode_id", setup.episode_id),
            ("agent_target", setup.agent_target),
            ("scenario.scenario_id", setup.scenario.scenario_id),
            ("scenario.policy.primary.text", setup.scenario.policy.primary.text),
            ("scenario.first_customer_message", setup.scenario.first_customer_message),
            ("world.order.order_id", setup.world.order.order_id),
        )
        if not present
    ]
    if missing:
        raise InputError(f"RunEpisode: {', '.join(missing)} must not be empty")
    if setup.scenario.HasField("task"):
        raise InputError("RunEpisode: scenario.task must be absent, the simulator must not know the design")
    if setup.bank_revision < 0 or (setup.bank_revision and not setup.bank_id):
        raise InputError(
            f"RunEpisode: bank_revision is {setup.bank_revision}: "
            "it must be 0 or more, and only 0 without a bank_id"
        )
    for field, value in _limits(setup.limits):
        if value <= 0:
            raise InputError(f"RunEpisode: limits.{field} must be positive, got {value}")


def _limits(limits: simulator_pb2.EpisodeLimits) -> list[tuple[str, float]]:
    return [(field.name, getattr(limits, field.name)) for field in limits.DESCRIPTOR.fields]
