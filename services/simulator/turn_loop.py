"""The turn loop: customer and agent take turns until somebody ends the conversation or a limit does.

    opening -> agent turn -> customer turn -> agent turn -> ... -> end

An agent turn is a series of agent messages: each may call tools, whose results are appended, until a
message without calls goes to the customer or a resolution is accepted. The loop does no I/O: agent,
customer and order world are ports (ports.py). What it shares with other conversations is in dialogue.py.

Limits follow DRIP-R (arXiv 2605.07699): turns, tool rounds per turn, errors per side.
"""

from __future__ import annotations

from typing import NoReturn

from policysweep.domains.returns.reconcile import reconcile
from policysweep.domains.returns.results import ErrorKind, ToolOutcome
from policysweep.errors import AgentContractError
from policysweep.v1 import agent_pb2, simulator_pb2
from policysweep.v1 import episode_pb2 as ep
from services.simulator.dialogue import Dialogue, Ended, Notify
from services.simulator.ports import AgentPort, CustomerPort, CustomerReply, Environment


class TurnLoop(Dialogue):
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
        super().__init__(
            ep.Episode(
                episode_id=setup.episode_id,
                scenario_id=setup.scenario.scenario_id,
                task_id=setup.scenario.task_id,
                agent_persona=setup.agent_persona,
                seed=setup.seed,
            ),
            request,
            agent,
            customer,
            notify,
            max_errors=setup.limits.max_errors,
            max_tokens=setup.limits.max_tokens,
        )
        self._limits = setup.limits
        self._environment = environment
        self._offered = {option.outcome for option in request.resolution_options}

    async def play(self, opening: str) -> ep.Episode:
        """Run the conversation from the customer's opening to its end."""
        episode = await self._until_ended(self._converse(opening))
        if episode.end.reason == ep.END_REASON_CUSTOMER_WITHDREW:
            episode.outcome = ep.OUTCOME_USER_ABORT
        elif episode.HasField("resolution"):
            episode.outcome = episode.resolution.outcome
        episode.reconciliation.CopyFrom(reconcile(episode.outcome, self._environment.writes()))
        return episode

    async def _converse(self, opening: str) -> NoReturn:
        """Take turns until `Ended`."""
        self._customer_says(opening)
        while True:
            await self._agent_turn()
            if self._episode.turns >= self._limits.max_turns:
                raise Ended(
                    ep.END_REASON_TURN_LIMIT,
                    ep.FAULT_PARTY_AGENT,
                    f"no resolution after {self._limits.max_turns} customer turns",
                )
            await self._customer_turn()

    # ------------------------------------------------------------------ agent

    async def _agent_turn(self) -> None:
        """Agent messages until one without tool calls. Ends the conversation on an accepted resolution."""
        rounds = 0
        while True:
            response = await self._ask_agent()
            message = response.message
            self._say(message)
            self._count_unusable(response)
            self._check_agent_errors()
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

    def _check_agent_errors(self) -> None:
        errors = self._episode.errors
        total = (
            errors.agent_malformed_calls
            + errors.agent_unknown_tools
            + errors.agent_empty_messages
            + errors.agent_truncated
        )
        if total >= self._limits.max_errors:
            raise Ended(ep.END_REASON_ERROR_LIMIT, ep.FAULT_PARTY_AGENT, f"the agent made {total} errors")
        if errors.agent_repeated_calls > self._limits.max_repeated_calls:
            raise Ended(
                ep.END_REASON_REPEATED_CALLS,
                ep.FAULT_PARTY_AGENT,
                f"the agent repeated calls {errors.agent_repeated_calls} times",
            )

    def _run_agent_tools(self, message: ep.Message, rounds: int) -> bool:
        """Execute the calls in order; whether all succeeded."""
        if rounds > self._limits.max_tool_rounds:
            raise Ended(
                ep.END_REASON_TOOL_ROUND_LIMIT,
                ep.FAULT_PARTY_AGENT,
                f"more than {self._limits.max_tool_rounds} tool rounds in one turn",
            )
        all_ok = True
        for call in message.tool_calls:
            outcome = self._environment.call_agent_tool(call, statements=self._episode.turns)
            self._say_result(call, outcome)
            all_ok = all_ok and outcome.status == ep.TOOL_STATUS_OK
            self._count_tool_error(outcome)
        self._check_agent_errors()
        return all_ok

    def _count_tool_error(self, outcome: ToolOutcome) -> None:
        if outcome.status == ep.TOOL_STATUS_ALREADY_CALLED:
            self._episode.errors.agent_repeated_calls += 1
        else:
            self._count_misuse(outcome.error_kind)

    def _resolve(self, resolution: ep.Resolution) -> None:
        if resolution.outcome not in self._offered:
            raise AgentContractError(
                f"the agent declared {ep.Outcome.Name(resolution.outcome)}, which was not offered"
            )
        self._episode.resolution.CopyFrom(resolution)
        raise Ended(ep.END_REASON_RESOLVED, ep.FAULT_PARTY_UNSPECIFIED, "")

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
                self._customer_says(reply.text)
                return
            self._customer_error()
            self._customer.remind()

    def _run_customer_tools(self, reply: CustomerReply, rounds: int) -> None:
        if rounds > self._limits.max_tool_rounds:
            raise Ended(
                ep.END_REASON_TOOL_ROUND_LIMIT,
                ep.FAULT_PARTY_CUSTOMER,
                f"more than {self._limits.max_tool_rounds} customer tool rounds in one turn",
            )
        for call in reply.tool_calls:
            outcome = self._environment.call_customer_tool(call, statements=self._episode.turns)
            self._keep_customer_call(call, outcome)
            if outcome.error_kind in (ErrorKind.MALFORMED, ErrorKind.UNKNOWN_TOOL):
                self._customer_error()
        if self._environment.withdrawal is not None:
            self._withdraw(reply.text)

    def _withdraw(self, farewell: str) -> None:
        assert self._environment.withdrawal is not None
        if farewell.strip():
            self._customer_says(farewell)
        raise Ended(
            ep.END_REASON_CUSTOMER_WITHDREW, ep.FAULT_PARTY_UNSPECIFIED, self._environment.withdrawal.reason
        )
