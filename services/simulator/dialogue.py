"""What happens in every conversation, whatever its rules: messages, model calls, tool traffic, token budget.

Two sets of rules build on it: DRIP-R's (turn_loop.py) and tau2-bench's (tau2/conversation.py). They decide
whose turn it is and when it is over. A conversation has one way to stop, `Ended`, which names how and who
failed; a fault of the infrastructure is any other exception and leaves no episode. No I/O: agent and customer
are ports.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, NoReturn

from policysweep.domains.returns.results import ErrorKind, ToolOutcome
from policysweep.errors import AgentContractError, ContextOverflow, ToolFault
from policysweep.v1 import agent_pb2
from policysweep.v1 import episode_pb2 as ep
from services.simulator.ports import AgentPort, CustomerPort, CustomerReply

Notify = Callable[[ep.Message], None]


class Ended(Exception):
    """The conversation is over."""

    def __init__(self, reason: ep.EndReason.ValueType, fault: ep.FaultParty.ValueType, detail: str) -> None:
        super().__init__(detail)
        self.end = ep.EpisodeEnd(reason=reason, fault=fault, detail=detail)


class Dialogue:
    """One conversation in progress. Its rules are a subclass."""

    def __init__(
        self,
        episode: ep.Episode,
        request: agent_pb2.RespondRequest,
        agent: AgentPort,
        customer: CustomerPort,
        notify: Notify,
        *,
        max_errors: int,
        max_tokens: int,
        customer_name: str = "customer",
    ) -> None:
        """`request` is the agent's request with all but the messages; it carries the conversation."""
        self._episode = episode
        self._request = request
        self._agent = agent
        self._customer = customer
        self._notify = notify
        self._max_errors = max_errors
        self._max_tokens = max_tokens
        self._customer_name = customer_name
        self._tokens = 0

    async def _until_ended(self, conversing: Coroutine[Any, Any, NoReturn]) -> ep.Episode:
        """Run the rules to the end; the episode with its end and all messages."""
        episode = self._episode
        try:
            await conversing
        except Ended as ended:
            episode.end.CopyFrom(ended.end)
        except ToolFault as fault:
            end = ep.EpisodeEnd(
                reason=ep.END_REASON_TOOL_FAULT, fault=ep.FAULT_PARTY_TOOLS, detail=str(fault)
            )
            episode.end.CopyFrom(end)
        episode.messages.extend(self._request.messages)
        return episode

    def _say(self, message: ep.Message) -> None:
        self._request.messages.append(message)
        self._notify(message)

    # ------------------------------------------------------------------ agent

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
            raise Ended(
                ep.END_REASON_CONTEXT_OVERFLOW,
                ep.FAULT_PARTY_AGENT,
                "the conversation no longer fits into the agent model's context",
            )
        if response.message.role != ep.ROLE_AGENT:
            raise AgentContractError(
                f"the agent answered with role {ep.Role.Name(response.message.role)}, not ROLE_AGENT"
            )
        return response

    def _count_unusable(self, response: agent_pb2.RespondResponse) -> None:
        """Count an answer that was cut or says nothing."""
        message, errors = response.message, self._episode.errors
        if response.finish_reason == ep.FINISH_REASON_LENGTH:
            errors.agent_truncated += 1
        elif not (message.content.strip() or message.tool_calls or response.HasField("resolution")):
            errors.agent_empty_messages += 1

    def _say_result(self, call: ep.ToolCall, outcome: ToolOutcome) -> None:
        self._say(
            ep.Message(
                role=ep.ROLE_TOOL,
                content=outcome.content,
                tool_call_id=call.id,
                tool_name=call.name,
                tool_status=outcome.status,
            )
        )

    def _count_misuse(self, kind: ErrorKind | None) -> None:
        """Count a call that no tool could have answered."""
        if kind is ErrorKind.MALFORMED:
            self._episode.errors.agent_malformed_calls += 1
        elif kind is ErrorKind.UNKNOWN_TOOL:
            self._episode.errors.agent_unknown_tools += 1

    # --------------------------------------------------------------- customer

    def _customer_says(self, text: str) -> None:
        self._say(ep.Message(role=ep.ROLE_CUSTOMER, content=text))
        self._episode.turns += 1

    async def _ask_customer(self) -> CustomerReply:
        try:
            reply = await self._customer.reply()
        except ContextOverflow as overflow:
            if overflow.sent:
                self._count_customer(ep.Usage(model_calls=1), ep.FINISH_REASON_CONTEXT_OVERFLOW)
            raise Ended(ep.END_REASON_CONTEXT_OVERFLOW, ep.FAULT_PARTY_CUSTOMER, str(overflow)) from overflow
        self._count_customer(reply.usage, reply.finish_reason, rehearsal=reply.rehearsal)
        return reply

    def _count_customer(
        self, usage: ep.Usage, finish_reason: ep.FinishReason.ValueType, *, rehearsal: bool = False
    ) -> None:
        self._count(
            ep.ModelCall(
                role=ep.ROLE_CUSTOMER,
                after_message=len(self._request.messages),
                usage=usage,
                finish_reason=finish_reason,
            ),
            rehearsal,
        )

    def _keep_customer_call(self, call: ep.ToolCall, outcome: ToolOutcome) -> None:
        """Tell the customer the result. Its tool traffic is private: the agent never sees it."""
        self._customer.result(call, outcome.content)
        self._episode.customer_tool_events.append(
            ep.CustomerToolEvent(
                after_message=len(self._request.messages),
                call=call,
                result_json=outcome.content,
                status=outcome.status,
            )
        )

    def _customer_error(self) -> None:
        errors = self._episode.errors
        errors.customer_errors += 1
        if errors.customer_errors >= self._max_errors:
            raise Ended(
                ep.END_REASON_ERROR_LIMIT,
                ep.FAULT_PARTY_CUSTOMER,
                f"the {self._customer_name} simulator made {errors.customer_errors} errors",
            )

    # ----------------------------------------------------------------- budget

    def _count(self, call: ep.ModelCall, rehearsal: bool) -> None:
        self._episode.model_calls.append(call)
        self._episode.rehearsal = self._episode.rehearsal or rehearsal
        self._tokens += call.usage.prompt_tokens + call.usage.completion_tokens
        if self._tokens > self._max_tokens:
            raise Ended(
                ep.END_REASON_TOKEN_BUDGET,
                ep.FAULT_PARTY_BUDGET,
                f"{self._tokens} tokens used, {self._max_tokens} allowed",
            )
