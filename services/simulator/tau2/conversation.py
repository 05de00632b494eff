"""The tau2-bench conversation: greeting, then user and agent take turns until the user or a limit ends it.

    greeting -> user turn -> agent turn -> user turn -> ... -> end

A turn is a series of messages of one side: each calls tools, whose results are appended, until one is text
for the other side. A message counts as one or the other: the text of a message with calls is kept for its
author and not told to the other side.

A user that stops while it says something may be answering: "yes, please do. ###STOP###". Those words go to
the agent, which has one more turn to act on them; then the conversation ends the way the user ended it,
whatever else might have ended it meanwhile. A user that stops without a word ends it at once.

Steps and errors are counted as tau2-bench counts them: a message is a step and so is a round of tool results;
limits are looked at when no call is pending. Like turn_loop.py, this does no I/O, and a fault of the
infrastructure leaves no episode.
"""

from __future__ import annotations

from typing import NoReturn, Protocol

from policysweep.domains.returns.results import ToolOutcome
from policysweep.errors import AgentContractError
from policysweep.v1 import agent_pb2, simulator_pb2
from policysweep.v1 import episode_pb2 as ep
from services.simulator.dialogue import Dialogue, Ended, Notify
from services.simulator.ports import AgentPort, CustomerPort, CustomerReply
from services.simulator.tau2.setup import GREETING
from services.simulator.tau2.user import split_stop


class World(Protocol):
    """The state of the episode with its tools."""

    def call(self, call: ep.ToolCall, requestor: ep.Role.ValueType) -> ToolOutcome:
        """Answer a call of the agent or of the customer."""
        ...


class Conversation(Dialogue):
    """One conversation. `play` runs it once."""

    def __init__(
        self,
        episode: ep.Episode,
        limits: simulator_pb2.Tau2Limits,
        request: agent_pb2.RespondRequest,
        agent: AgentPort,
        user: CustomerPort,
        world: World,
        notify: Notify,
    ) -> None:
        """`request` is the agent's request with all but the messages; it carries the conversation."""
        super().__init__(
            episode,
            request,
            agent,
            user,
            notify,
            max_errors=limits.max_errors,
            max_tokens=limits.max_tokens,
            customer_name="user",
        )
        self._limits = limits
        self._world = world
        self._steps = 0

    async def play(self) -> ep.Episode:
        """Run the conversation from the greeting to its end."""
        return await self._until_ended(self._converse())

    async def _converse(self) -> NoReturn:
        """Take turns until `Ended`."""
        self._say(ep.Message(role=ep.ROLE_AGENT, content=GREETING))
        self._customer.hear(GREETING)
        while True:
            await self._user_turn()
            await self._agent_turn()

    # ------------------------------------------------------------------- user

    async def _user_turn(self) -> None:
        """User calls until a message for the agent, or the end."""
        while True:
            reply = await self._ask_customer()
            self._steps += 1
            said, stop = split_stop(reply.text)
            if reply.tool_calls:
                self._run_user_tools(reply)
                said = ""
            if stop is not None:
                await self._stop(said, stop)
            if reply.tool_calls:
                self._check_limits()
                continue
            if said and reply.finish_reason != ep.FINISH_REASON_LENGTH:
                self._customer_says(said)
                self._check_limits()
                return
            self._customer_error()
            self._customer.remind()

    async def _stop(self, said: str, reason: ep.EndReason.ValueType) -> NoReturn:
        """End the way the user ends it, once the agent has acted on what came with it."""
        if said:
            self._customer_says(said)
            if reason == ep.END_REASON_USER_STOP:
                try:
                    await self._agent_turn()
                except Ended as cut:
                    raise Ended(
                        reason, ep.FAULT_PARTY_UNSPECIFIED, f"the agent's last turn was cut: {cut}"
                    ) from cut
        raise Ended(reason, ep.FAULT_PARTY_UNSPECIFIED, "")

    def _run_user_tools(self, reply: CustomerReply) -> None:
        """The user's calls in order. Their traffic is private: the agent never sees it."""
        self._steps += 1
        for call in reply.tool_calls:
            outcome = self._world.call(call, ep.ROLE_CUSTOMER)
            self._keep_customer_call(call, outcome)
            if outcome.status != ep.TOOL_STATUS_OK:
                self._episode.errors.tool_errors += 1
                self._customer_error()

    # ------------------------------------------------------------------ agent

    async def _agent_turn(self) -> None:
        """Agent messages until one without tool calls."""
        while True:
            response = await self._ask_agent()
            self._check_response(response)
            message = response.message
            self._say(message)
            self._steps += 1
            if message.tool_calls:
                self._run_agent_tools(message)
            else:
                self._customer.hear(message.content)
            self._check_limits()
            if not message.tool_calls:
                return

    def _check_response(self, response: agent_pb2.RespondResponse) -> None:
        if response.HasField("resolution"):
            name = ep.Outcome.Name(response.resolution.outcome)
            raise AgentContractError(f"the agent declared {name}, which was not offered")
        self._count_unusable(response)

    def _run_agent_tools(self, message: ep.Message) -> None:
        """The agent's calls in order."""
        self._steps += 1
        for call in message.tool_calls:
            outcome = self._world.call(call, ep.ROLE_AGENT)
            self._say_result(call, outcome)
            if outcome.status != ep.TOOL_STATUS_OK:
                self._episode.errors.tool_errors += 1
                self._count_misuse(outcome.error_kind)

    # ----------------------------------------------------------------- limits

    def _check_limits(self) -> None:
        errors = self._episode.errors
        made = errors.tool_errors + errors.agent_empty_messages + errors.agent_truncated
        if made >= self._limits.max_errors:
            raise Ended(ep.END_REASON_ERROR_LIMIT, ep.FAULT_PARTY_AGENT, f"{made} errors were made")
        if self._steps >= self._limits.max_steps:
            raise Ended(ep.END_REASON_STEP_LIMIT, ep.FAULT_PARTY_AGENT, f"{self._steps} steps without an end")
