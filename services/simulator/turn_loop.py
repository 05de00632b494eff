"""The turn loop: customer and agent take turns until somebody ends the conversation or a limit does.

    opening -> agent turn -> customer turn -> agent turn -> ... -> end

An agent turn is a series of agent messages: each may call tools, whose results are appended, until a
message without calls goes to the customer or a resolution is accepted. The loop does no I/O: agent,
customer and order world are ports (ports.py). It knows one way to stop, `_Ended`, which names how and
who failed; a fault of the infrastructure is any other exception and leaves no episode.

Limits follow DRIP-R (arXiv 2605.07699): turns, tool rounds per turn, errors per side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from policysweep.domains.returns.environment import ErrorKind
from policysweep.domains.returns.reconcile import reconcile
from policysweep.errors import AgentContractError, ContextOverflow, ToolFault
from policysweep.v1 import agent_pb2, simulator_pb2
from policysweep.v1 import episode_pb2 as ep
from services.simulator.ports import AgentPort, CustomerPort, CustomerReply, Environment

Notify = Callable[[ep.Message], None]


class _Ended(Exception):
    """The conversation is over."""

    def __init__(self, reason: ep.EndReason.ValueType, fault: ep.FaultParty.ValueType, detail: str) -> None:
        super().__init__(detail)
        self.end = ep.EpisodeEnd(reason=reason, fault=fault, detail=detail)


class TurnLoop:
    """One conversation. `play` runs it once."""

    def __init__(
        self,
        setup: simulator_pb2.RunEpisodeRequest,
        request: agent_pb2.RespondRequest,
        agent: AgentPort,
        customer: CustomerPort,
        environment: Environment,
        notify: Notify,
    ) -> None:
        """`request` is the agent's request with all but the messages; it carries the conversation."""
        self._limits = setup.limits
        self._request = request
        self._agent = agent
        self._customer = customer
        self._environment = environment
        self._notify = notify
        self._tokens = 0
        self._offered = {option.outcome for option in request.resolution_options}
        self._episode = ep.Episode(
            episode_id=setup.episode_id,
            scenario_id=setup.scenario.scenario_id,
            task_id=setup.scenario.task_id,
            agent_persona=setup.agent_persona,
            seed=setup.seed,
        )

    async def play(self, opening: str) -> ep.Episode:
        """Run the conversation from the customer's opening to its end."""
        try:
            await self._converse(opening)
        except _Ended as ended:
            self._episode.end.CopyFrom(ended.end)
        except ToolFault as fault:
            end = ep.EpisodeEnd(
                reason=ep.END_REASON_TOOL_FAULT, fault=ep.FAULT_PARTY_TOOLS, detail=str(fault)
            )
            self._episode.end.CopyFrom(end)
        return self._finished()

    async def _converse(self, opening: str) -> NoReturn:
        """Take turns until `_Ended`."""
        self._say(ep.Message(role=ep.ROLE_CUSTOMER, content=opening))
        self._episode.turns = 1
        while True:
            await self._agent_turn()
            if self._episode.turns >= self._limits.max_turns:
                raise _Ended(
                    ep.END_REASON_TURN_LIMIT,
                    ep.FAULT_PARTY_AGENT,
                    f"no resolution after {self._limits.max_turns} customer turns",
                )
            await self._customer_turn()

    def _finished(self) -> ep.Episode:
        episode = self._episode
        episode.messages.extend(self._request.messages)
        if episode.end.reason == ep.END_REASON_CUSTOMER_WITHDREW:
            episode.outcome = ep.OUTCOME_USER_ABORT
        elif episode.HasField("resolution"):
            episode.outcome = episode.resolution.outcome
        episode.reconciliation.CopyFrom(reconcile(episode.outcome, self._environment.writes()))
        return episode

    def _say(self, message: ep.Message) -> None:
        self._request.messages.append(message)
        self._notify(message)

    # ------------------------------------------------------------------ agent

    async def _agent_turn(self) -> None:
        """Agent messages until one without tool calls. Ends the conversation on an accepted resolution."""
        rounds = 0
        while True:
            response = await self._ask_agent()
            message = response.message
            self._say(message)
            self._check_agent_message(response)
            if message.tool_calls:
                rounds += 1
                all_ok = self._run_agent_tools(message, rounds)
            if response.HasField("resolution") and (not message.tool_calls or all_ok):
                self._resolve(response.resolution)
            if not message.tool_calls:
                self._customer.hear(message.content)
                return
            if message.content:
                self._customer.hear(message.content)

    async def _ask_agent(self) -> agent_pb2.RespondResponse:
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
        if response.finish_reason == ep.FINISH_REASON_CONTEXT_OVERFLOW:
            raise _Ended(
                ep.END_REASON_CONTEXT_OVERFLOW,
                ep.FAULT_PARTY_AGENT,
                "the conversation no longer fits into the agent model's context",
            )
        if response.message.role != ep.ROLE_AGENT:
            raise AgentContractError(
                f"the agent answered with role {ep.Role.Name(response.message.role)}, not ROLE_AGENT"
            )
        return response

    def _check_agent_message(self, response: agent_pb2.RespondResponse) -> None:
        message, errors = response.message, self._episode.errors
        if response.finish_reason == ep.FINISH_REASON_LENGTH:
            errors.agent_truncated += 1
        elif not (message.content.strip() or message.tool_calls or response.HasField("resolution")):
            errors.agent_empty_messages += 1
        self._check_agent_errors()

    def _check_agent_errors(self) -> None:
        errors = self._episode.errors
        total = (
            errors.agent_malformed_calls
            + errors.agent_unknown_tools
            + errors.agent_empty_messages
            + errors.agent_truncated
        )
        if total >= self._limits.max_errors:
            raise _Ended(ep.END_REASON_ERROR_LIMIT, ep.FAULT_PARTY_AGENT, f"the agent made {total} errors")
        if errors.agent_repeated_calls > self._limits.max_repeated_calls:
            raise _Ended(
                ep.END_REASON_REPEATED_CALLS,
                ep.FAULT_PARTY_AGENT,
                f"the agent repeated calls {errors.agent_repeated_calls} times",
            )

    def _run_agent_tools(self, message: ep.Message, rounds: int) -> bool:
        """Execute the calls in order; whether all succeeded."""
        if rounds > self._limits.max_tool_rounds:
            raise _Ended(
                ep.END_REASON_TOOL_ROUND_LIMIT,
                ep.FAULT_PARTY_AGENT,
                f"more than {self._limits.max_tool_rounds} tool rounds in one turn",
            )
        all_ok = True
        for call in message.tool_calls:
            outcome = self._environment.call_agent_tool(call, statements=self._episode.turns)
            self._say(
                ep.Message(
                    role=ep.ROLE_TOOL,
                    content=outcome.content,
                    tool_call_id=call.id,
                    tool_name=call.name,
                    tool_status=outcome.status,
                )
            )
            all_ok = all_ok and outcome.status == ep.TOOL_STATUS_OK
            self._count_tool_error(outcome.status, outcome.error_kind)
        self._check_agent_errors()
        return all_ok

    def _count_tool_error(self, status: ep.ToolStatus.ValueType, kind: ErrorKind | None) -> None:
        errors = self._episode.errors
        if status == ep.TOOL_STATUS_ALREADY_CALLED:
            errors.agent_repeated_calls += 1
        elif kind is ErrorKind.MALFORMED:
            errors.agent_malformed_calls += 1
        elif kind is ErrorKind.UNKNOWN_TOOL:
            errors.agent_unknown_tools += 1

    def _resolve(self, resolution: ep.Resolution) -> None:
        if resolution.outcome not in self._offered:
            raise AgentContractError(
                f"the agent declared {ep.Outcome.Name(resolution.outcome)}, which was not offered"
            )
        self._episode.resolution.CopyFrom(resolution)
        raise _Ended(ep.END_REASON_RESOLVED, ep.FAULT_PARTY_UNSPECIFIED, "")

    # --------------------------------------------------------------- customer

    async def _customer_turn(self) -> None:
        """Customer calls until a usable message. Ends the conversation on a withdrawal."""
        rounds = 0
        while True:
            reply = await self._ask_customer()
            if reply.tool_calls:
                rounds += 1
                self._run_customer_tools(reply, rounds)
                continue
            if reply.text.strip() and reply.finish_reason != ep.FINISH_REASON_LENGTH:
                self._say(ep.Message(role=ep.ROLE_CUSTOMER, content=reply.text))
                self._episode.turns += 1
                return
            self._customer_error()
            self._customer.remind()

    async def _ask_customer(self) -> CustomerReply:
        try:
            reply = await self._customer.reply()
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

    def _run_customer_tools(self, reply: CustomerReply, rounds: int) -> None:
        if rounds > self._limits.max_tool_rounds:
            raise _Ended(
                ep.END_REASON_TOOL_ROUND_LIMIT,
                ep.FAULT_PARTY_CUSTOMER,
                f"more than {self._limits.max_tool_rounds} customer tool rounds in one turn",
            )
        for call in reply.tool_calls:
            outcome = self._environment.call_customer_tool(call, statements=self._episode.turns)
            self._customer.result(call, outcome.content)
            self._episode.customer_tool_events.append(
                ep.CustomerToolEvent(
                    after_message=len(self._request.messages),
                    call=call,
                    result_json=outcome.content,
                    status=outcome.status,
                )
            )
            if outcome.error_kind in (ErrorKind.MALFORMED, ErrorKind.UNKNOWN_TOOL):
                self._customer_error()
        if self._environment.withdrawal is not None:
            self._withdraw(reply.text)

    def _withdraw(self, farewell: str) -> None:
        assert self._environment.withdrawal is not None
        if farewell.strip():
            self._say(ep.Message(role=ep.ROLE_CUSTOMER, content=farewell))
            self._episode.turns += 1
        raise _Ended(
            ep.END_REASON_CUSTOMER_WITHDREW, ep.FAULT_PARTY_UNSPECIFIED, self._environment.withdrawal.reason
        )

    def _customer_error(self) -> None:
        errors = self._episode.errors
        errors.customer_errors += 1
        if errors.customer_errors >= self._limits.max_errors:
            raise _Ended(
                ep.END_REASON_ERROR_LIMIT,
                ep.FAULT_PARTY_CUSTOMER,
                f"the customer simulator made {errors.customer_errors} errors",
            )

    # ----------------------------------------------------------------- budget

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
