"""Puts a tau2-bench conversation together: domain, world, the user's model and the agent's service."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from policysweep.domains.tau2 import Domain, load_domain, loaded_domain
from policysweep.models.chat import ChatModel
from policysweep.models.tools import openai_tools
from policysweep.v1 import agent_pb2, simulator_pb2
from policysweep.v1 import episode_pb2 as ep
from services.simulator.customer import ModelCustomer
from services.simulator.dialogue import Notify
from services.simulator.ports import AgentPort
from services.simulator.tau2.conversation import Conversation
from services.simulator.tau2.setup import check_setup, first_request, new_episode
from services.simulator.tau2.user import system_prompt


class Tau2Episodes:
    """Plays tau2-bench episodes with one model as the user."""

    def __init__(self, model: ChatModel, sampling: agent_pb2.Sampling) -> None:
        self._model = model
        self._sampling = sampling

    async def prepare(self, setup: simulator_pb2.RunTau2EpisodeRequest) -> Domain:
        """The domain of an episode. Raises InputError for a request that cannot be played.

        The first episode of a domain imports the package and reads its database, beside the event loop.
        """
        check_setup(setup)
        domain = loaded_domain(setup.domain)
        return domain if domain is not None else await asyncio.to_thread(load_domain, setup.domain)

    async def play(
        self,
        setup: simulator_pb2.RunTau2EpisodeRequest,
        domain: Domain,
        agent: AgentPort,
        user_seconds: Callable[[], float],
        notify: Notify,
    ) -> ep.Episode:
        """Run one conversation. `user_seconds` tells what the next call of the user's model may take."""
        tools = domain.user_box.definitions if domain.user_box is not None else ()
        system = system_prompt(setup.domain, setup.user_scenario, has_tools=bool(tools))
        user = ModelCustomer(
            self._model,
            # Unlike a customer, a user waits for the agent's greeting.
            chat=[{"role": "system", "content": system}],
            tools=openai_tools(tools),
            sampling=self._sampling,
            seed=setup.seed,
            # The agent's model sees the episode id; the user's conversation is another one.
            session_id=f"{setup.episode_id}-user",
            timeout=user_seconds,
        )
        conversation = Conversation(
            new_episode(setup),
            setup.limits,
            first_request(setup, domain),
            agent,
            user,
            domain.world(),
            notify,
        )
        return await conversation.play()
