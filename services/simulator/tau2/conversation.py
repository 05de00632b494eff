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

from collections.abc import Callable
from typing import NoReturn, Protocol

from policysweep.domains.returns.results import ErrorKind, ToolOutcome
from policysweep.errors import AgentContractError, ContextOverflow, ToolFault
from policysweep.v1 import agent_pb2, simulator_pb2
from policysweep.v1 import episode_pb2 as ep
from services.simulator.ports import AgentPort, CustomerPort, CustomerReply
from services.simulator.tau2.setup import GREETING
from services.simulator.tau2.user import split_stop

Notify = Callable[[ep.Message], None]


class World(Protocol):
    """The state of the episode with its tools."""

    def call(self, call: ep.ToolCall, requestor: ep.Role.ValueType) -> ToolOutcome:
        """Answer a call of the agent or of the customer."""
        ...


class _Ended(Exception):
    """The conversation is over."""

    def __init__(self, reason: ep.EndReason.ValueType, fault: ep.FaultParty.ValueType, detail: str) -> None:
        super().__init__(detail)
        self.end = ep.EpisodeEnd(reason=reason, fault=fault, detail=detail)


class Conversation:
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
        self._episode = episode
        self._limits = limits
        self._request = request
        self._agent = agent
        self._user = user
        self._world = world
        self._notify = notify
        self._steps = 0
        self._tokens = 0

    async def play(self) -> ep.Episode:
        """Run the conversation from the greeting to its end."""
        episode = self._episode
        try:
            await self._converse()
        except _Ended as ended:
            episode.end.CopyFrom(ended.end)
        except ToolFault as fault:
            end = ep.EpisodeEnd(
                reason=ep.END_REASON_TOOL_FAULT, fault=ep.FAULT_PARTY_TOOLS, detail=str(fault)
            )
            episode.end.CopyFrom(end)
        episode.messages.extend(self._request.messages)
        return episode

    async def _converse(self) -> NoReturn:
        """Take turns until `_Ended`."""
        self._say(ep.Message(role=ep.ROLE_AGENT, content=GREETING))
        self._user.hear(GREETING)
        while True:
            await self._user_turn()
            await self._agent_turn()

    def _say(self, message: ep.Message) -> None:
        self._request.messages.append(message)
        self._notify(message)

    # ------------------------------------------------------------------- user

    async def _user_turn(self) -> None:
        """User calls until a message for the agent, or the end."""
        while True:
            reply = await self._ask_user()
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
                self._user_says(said)
                self._check_limits()
                return
            self._user_error()
            self._user.remind()

    def _user_says(self, text: str) -> None:
        self._say(ep.Message(role=ep.ROLE_CUSTOMER, content=text))
        self._episode.turns += 1

    async def _stop(self, said: str, reason: ep.EndReason.ValueType) -> NoReturn:
        """End the way the user ends it, once the agent has acted on what came with it."""
        if said:
            self._user_says(said)
            if reason == ep.END_REASON_USER_STOP:
                try:
                    await self._agent_turn()
                except _Ended as cut:
                    raise _Ended(
                        reason, ep.FAULT_PARTY_UNSPECIFIED, f"the agent's last turn was cut: {cut}"
                    ) from cut
        raise _Ended(reason, ep.FAULT_PARTY_UNSPECIFIED, "")

    async def _ask_user(self) -> CustomerReply:
        try:
            reply = await self._user.reply()
        except ContextOverflow as overflow:
            raise _Ended(ep.END_REASON_CONTEXT_OVERFLOW, ep.FAULT_PARTY_CUSTOMER, str(overflow)) from overflow
        self._count(
            ep.ModelCall(
                role=ep.ROLE_CUSTOMER,
                after_message=len(self._request.messages),
                usage=reply.usage,
                finish_reason=reply.finish_reason,
            ),
            reply.rehearsal,
        )
        return reply

    def _run_user_tools(self, reply: CustomerReply) -> None:
        """The user's calls in order. Their traffic is private: the agent never sees it."""
        self._steps += 1
        for call in reply.tool_calls:
            outcome = self._world.call(call, ep.ROLE_CUSTOMER)
            self._user.result(call, outcome.content)
            self._episode.customer_tool_events.append(
                ep.CustomerToolEvent(
                    after_message=len(self._request.messages),
                    call=call,
                    result_json=outcome.content,
                    status=outcome.status,
                )
            )
            if outcome.status != ep.TOOL_STATUS_OK:
                self._episode.errors.tool_errors += 1
                self._user_error()

    def _user_error(self) -> None:
        errors = self._episode.errors
        errors.customer_errors += 1
        if errors.customer_errors >= self._limits.max_errors:
            raise _Ended(
                ep.END_REASON_ERROR_LIMIT,
                ep.FAULT_PARTY_CUSTOMER,
                f"the user simulator made {errors.customer_errors} errors",
            )

    # ------------------------------------------------------------------ agent

    async def _agent_turn(self) -> None:
        """Agent messages until one without tool calls."""
        while True:
            message = await self._ask_agent()
            self._say(message)
            self._steps += 1
            if message.tool_calls:
                self._run_agent_tools(message)
            else:
                self._user.hear(message.content)
            self._check_limits()
            if not message.tool_calls:
                return

    async def _ask_agent(self) -> ep.Message:
        response = await self._agent.respond(self._request)
        self._request.step += 1
        self._request.continuation = response.continuation
        self._count(
            ep.ModelCall(
                role=ep.ROLE_AGENT,
                after_message=len(self._request.messages),
                usage=response.usage,
                finish_reason=response.finish_reason,
                consulted_spec_ids=response.consulted_spec_ids,
            ),
            response.rehearsal,
        )
        self._check_response(response)
        return response.message

    def _check_response(self, response: agent_pb2.RespondResponse) -> None:
        errors, message = self._episode.errors, response.message
        if response.finish_reason == ep.FINISH_REASON_CONTEXT_OVERFLOW:
            raise _Ended(
                ep.END_REASON_CONTEXT_OVERFLOW,
                ep.FAULT_PARTY_AGENT,
                "the conversation no longer fits into the agent model's context",
            )
        if message.role != ep.ROLE_AGENT:
            raise AgentContractError(
                f"the agent answered with role {ep.Role.Name(message.role)}, not ROLE_AGENT"
            )
        if response.HasField("resolution"):
            name = ep.Outcome.Name(response.resolution.outcome)
            raise AgentContractError(f"the agent declared {name}, which was not offered")
        if response.finish_reason == ep.FINISH_REASON_LENGTH:
            errors.agent_truncated += 1
        elif not (message.content.strip() or message.tool_calls):
            errors.agent_empty_messages += 1

    def _run_agent_tools(self, message: ep.Message) -> None:
        """The agent's calls in order."""
        self._steps += 1
        for call in message.tool_calls:
            outcome = self._world.call(call, ep.ROLE_AGENT)
            self._say(
                ep.Message(
                    role=ep.ROLE_TOOL,
                    content=outcome.content,
                    tool_call_id=call.id,
                    tool_name=call.name,
                    tool_status=outcome.status,
                )
            )
            if outcome.status != ep.TOOL_STATUS_OK:
                self._count_tool_error(outcome.error_kind)

    def _count_tool_error(self, kind: ErrorKind | None) -> None:
        errors = self._episode.errors
        errors.tool_errors += 1
        if kind is ErrorKind.MALFORMED:
            errors.agent_malformed_calls += 1
        elif kind is ErrorKind.UNKNOWN_TOOL:
            errors.agent_unknown_tools += 1

    # ----------------------------------------------------------------- limits

    def _check_limits(self) -> None:
        errors = self._episode.errors
        made = errors.tool_errors + errors.agent_empty_messages + errors.agent_truncated
        if made >= self._limits.max_errors:
            raise _Ended(ep.END_REASON_ERROR_LIMIT, ep.FAULT_PARTY_AGENT, f"{made} errors were made")
        if self._steps >= self._limits.max_steps:
            raise _Ended(
                ep.END_REASON_STEP_LIMIT, ep.FAULT_PARTY_AGENT, f"{self._steps} steps without an end"
            )

    def _count(self, call: ep.ModelCall, rehearsal: bool) -> None:
        self._episode.model_calls.append(call)
        self._episode.rehearsal = self._episode.rehearsal or rehearsal
        self._tokens += call.usage.prompt_tokens + call.usage.completion_tokens
        if self._tokens > self._limits.max_tokens:
            raise _Ended(
                ep.END_REASON_TOKEN_BUDGET,
                ep.FAULT_PARTY_BUDGET,
                f"{self._tokens} tokens used, {self._limits.max_tokens} allowed",
            )
