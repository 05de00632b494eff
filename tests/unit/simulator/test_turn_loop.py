"""Every way a conversation can end, and who is responsible for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from policysweep.domains.returns.environment import ErrorKind, ToolOutcome, Withdrawal
from policysweep.domains.returns.resolution import resolution_options
from policysweep.errors import AgentContractError, AgentUnavailable, ContextOverflow, ToolFault
from policysweep.v1 import agent_pb2, scenario_pb2, simulator_pb2
from policysweep.v1 import episode_pb2 as ep
from services.simulator.ports import CustomerReply
from services.simulator.turn_loop import TurnLoop

LIMITS = simulator_pb2.EpisodeLimits(
    max_turns=6,
    max_tool_rounds=2,
    max_errors=3,
    max_repeated_calls=1,
    max_tokens=1000,
    agent_call_seconds=10,
)
Response = agent_pb2.RespondResponse


class ScriptedAgent:
    """Answers with the given responses, the last one for ever."""

    def __init__(self, *responses: Response | Exception) -> None:
        self._responses = responses
        self.seen: list[list[str]] = []

    async def respond(self, request: agent_pb2.RespondRequest) -> Response:
        self.seen.append([message.content for message in request.messages])
        response = self._responses[min(len(self.seen), len(self._responses)) - 1]
        if isinstance(response, Exception):
            raise response
        return response


class ScriptedCustomer:
    """Answers with the given replies, the last one for ever."""

    def __init__(self, *replies: CustomerReply | Exception) -> None:
        self._replies = replies or (says("And then?"),)
        self.calls = 0
        self.heard: list[str] = []
        self.reminders = 0
        self.results: list[str] = []

    async def reply(self) -> CustomerReply:
        self.calls += 1
        reply = self._replies[min(self.calls, len(self._replies)) - 1]
        if isinstance(reply, Exception):
            raise reply
        return reply

    def hear(self, text: str) -> None:
        self.heard.append(text)

    def result(self, call: ep.ToolCall, content: str) -> None:
        self.results.append(content)

    def remind(self) -> None:
        self.reminders += 1


class ScriptedWorld:
    """Answers each tool by name."""

    def __init__(self, **outcomes: ToolOutcome | Callable[[], ToolOutcome]) -> None:
        self._outcomes = outcomes
        self.withdrawal: Withdrawal | None = None
        self.statements: list[int] = []

    def writes(self) -> Sequence[ep.ExecutedWrite]:
        return ()

    def call_agent_tool(self, call: ep.ToolCall, *, statements: int) -> ToolOutcome:
        self.statements.append(statements)
        outcome = self._outcomes[call.name]
        return outcome if isinstance(outcome, ToolOutcome) else outcome()

    def call_customer_tool(self, call: ep.ToolCall, *, statements: int) -> ToolOutcome:
        if call.name == "withdraw_from_conversation":
            self.withdrawal = Withdrawal(reason="had enough", details="", will_return=False)
            return OK
        return self.call_agent_tool(call, statements=statements)


OK = ToolOutcome("{}", ep.TOOL_STATUS_OK, None)
MALFORMED = ToolOutcome("{}", ep.TOOL_STATUS_ERROR, ErrorKind.MALFORMED)
UNKNOWN = ToolOutcome("{}", ep.TOOL_STATUS_ERROR, ErrorKind.UNKNOWN_TOOL)
REFUSED = ToolOutcome("{}", ep.TOOL_STATUS_ERROR, ErrorKind.REFUSED)
REPEATED = ToolOutcome("{}", ep.TOOL_STATUS_ALREADY_CALLED, None)
UNVERIFIED = ToolOutcome("{}", ep.TOOL_STATUS_VERIFICATION_REQUIRED, None)


def says(text: str, *calls: str, finish: ep.FinishReason.ValueType = ep.FINISH_REASON_STOP) -> CustomerReply:
    return CustomerReply(text, [ep.ToolCall(id=f"c-{name}", name=name) for name in calls], finish, ep.Usage())


def agent(
    text: str = "",
    *calls: str,
    resolves: ep.Outcome.ValueType | None = None,
    finish: ep.FinishReason.ValueType = ep.FINISH_REASON_STOP,
    tokens: int = 0,
) -> Response:
    response = Response(
        message=ep.Message(
            role=ep.ROLE_AGENT,
            content=text,
            tool_calls=[ep.ToolCall(id=f"a-{number}", name=name) for number, name in enumerate(calls)],
        ),
        finish_reason=finish,
        usage=ep.Usage(prompt_tokens=tokens),
    )
    if resolves is not None:
        response.resolution.outcome = resolves
    return response


async def play(
    the_agent: ScriptedAgent,
    customer: ScriptedCustomer | None = None,
    world: ScriptedWorld | None = None,
    said: list[ep.Message] | None = None,
) -> ep.Episode:
    setup = simulator_pb2.RunEpisodeRequest(
        episode_id="e", scenario=scenario_pb2.Scenario(scenario_id="s", task_id="t"), limits=LIMITS, seed=7
    )
    request = agent_pb2.RespondRequest(resolution_options=resolution_options())
    loop = TurnLoop(
        setup,
        request,
        the_agent,
        customer or ScriptedCustomer(),
        world or ScriptedWorld(),
        (said if said is not None else []).append,
    )
    return await loop.play("Hello")


def ending(episode: ep.Episode) -> tuple[str, str]:
    return (
        ep.EndReason.Name(episode.end.reason).removeprefix("END_REASON_"),
        ep.FaultParty.Name(episode.end.fault).removeprefix("FAULT_PARTY_"),
    )


async def test_a_resolution_ends_cleanly() -> None:
    episode = await play(ScriptedAgent(agent("Denied.", resolves=ep.OUTCOME_DENY_REFUND)))
    assert ending(episode) == ("RESOLVED", "UNSPECIFIED")
    assert episode.outcome == ep.OUTCOME_DENY_REFUND
    assert [message.content for message in episode.messages] == ["Hello", "Denied."]
    assert not episode.reconciliation.mismatch


async def test_the_episode_carries_what_identifies_it() -> None:
    episode = await play(ScriptedAgent(agent(resolves=ep.OUTCOME_DENY_REFUND)))
    assert (episode.episode_id, episode.scenario_id, episode.task_id, episode.seed) == ("e", "s", "t", 7)


async def test_turns_alternate_and_the_agent_sees_them_all() -> None:
    the_agent = ScriptedAgent(agent("Why?"), agent("I see.", resolves=ep.OUTCOME_DENY_REFUND))
    customer = ScriptedCustomer(says("It broke."))
    episode = await play(the_agent, customer)
    assert the_agent.seen == [["Hello"], ["Hello", "Why?", "It broke."]]
    assert customer.heard == ["Why?"]
    assert episode.turns == 2


async def test_every_message_is_reported_as_it_is_said() -> None:
    said: list[ep.Message] = []
    world = ScriptedWorld(look=OK)
    episode = await play(
        ScriptedAgent(agent("", "look"), agent("Done.", resolves=ep.OUTCOME_DENY_REFUND)),
        world=world,
        said=said,
    )
    assert said == list(episode.messages)
    assert [message.role for message in said] == [
        ep.ROLE_CUSTOMER,
        ep.ROLE_AGENT,
        ep.ROLE_TOOL,
        ep.ROLE_AGENT,
    ]


async def test_a_declaration_that_was_never_executed_is_recorded_as_a_mismatch() -> None:
    episode = await play(ScriptedAgent(agent("Paid!", resolves=ep.OUTCOME_RETURN_REFUND_FULL_BANK)))
    assert episode.reconciliation.mismatch
    assert episode.outcome == ep.OUTCOME_RETURN_REFUND_FULL_BANK


async def test_a_resolution_waits_for_the_calls_beside_it() -> None:
    the_agent = ScriptedAgent(
        agent("", "write", resolves=ep.OUTCOME_RETURN_REFUND_FULL_BANK),
        agent("What state is it in?"),
        agent("Sorry.", resolves=ep.OUTCOME_DENY_REFUND),
    )
    episode = await play(the_agent, world=ScriptedWorld(write=UNVERIFIED))
    assert episode.outcome == ep.OUTCOME_DENY_REFUND


async def test_a_resolution_beside_calls_that_worked_is_accepted() -> None:
    episode = await play(
        ScriptedAgent(agent("", "write", resolves=ep.OUTCOME_REPLACEMENT_EXCHANGE)),
        world=ScriptedWorld(write=OK),
    )
    assert ending(episode) == ("RESOLVED", "UNSPECIFIED")
    assert [message.role for message in episode.messages][-1] == ep.ROLE_TOOL


async def test_tools_are_told_how_often_the_customer_has_spoken() -> None:
    world = ScriptedWorld(look=OK)
    the_agent = ScriptedAgent(
        agent("", "look"), agent("Why?"), agent("", "look"), agent("No.", resolves=ep.OUTCOME_DENY_REFUND)
    )
    await play(the_agent, world=world)
    assert world.statements == [1, 2]


async def test_a_withdrawal_is_a_user_abort() -> None:
    customer = ScriptedCustomer(says("Forget it.", "withdraw_from_conversation"))
    episode = await play(ScriptedAgent(agent("No.")), customer)
    assert ending(episode) == ("CUSTOMER_WITHDREW", "UNSPECIFIED")
    assert episode.outcome == ep.OUTCOME_USER_ABORT
    assert episode.end.detail == "had enough"
    assert episode.messages[-1].content == "Forget it."
    assert episode.customer_tool_events[0].call.name == "withdraw_from_conversation"


async def test_customer_tools_stay_out_of_the_agents_sight() -> None:
    the_agent = ScriptedAgent(agent("Why?"), agent("No.", resolves=ep.OUTCOME_DENY_REFUND))
    world = ScriptedWorld(peek=ToolOutcome('{"secret": 1}', ep.TOOL_STATUS_OK, None))
    customer = ScriptedCustomer(says("", "peek"), says("Because."))
    episode = await play(the_agent, customer, world)
    assert the_agent.seen[-1] == ["Hello", "Why?", "Because."]
    assert customer.results == ['{"secret": 1}']
    assert episode.customer_tool_events[0].after_message == 2


async def test_the_turn_limit_is_the_agents_fault() -> None:
    episode = await play(ScriptedAgent(agent("Hm.")))
    assert ending(episode) == ("TURN_LIMIT", "AGENT")
    assert episode.turns == 6
    assert episode.outcome == ep.OUTCOME_UNSPECIFIED


@pytest.mark.parametrize(
    ("response", "outcome", "counter"),
    [
        (agent("", "tool"), MALFORMED, "agent_malformed_calls"),
        (agent("", "tool"), UNKNOWN, "agent_unknown_tools"),
        (agent(""), OK, "agent_empty_messages"),
        (agent("half a sen", finish=ep.FINISH_REASON_LENGTH), OK, "agent_truncated"),
    ],
)
async def test_repeated_misbehaviour_of_the_agent_ends_the_episode(
    response: Response, outcome: ToolOutcome, counter: str
) -> None:
    chat = agent("Hm.")
    episode = await play(
        ScriptedAgent(response, chat, response, chat, response), world=ScriptedWorld(tool=outcome)
    )
    assert ending(episode) == ("ERROR_LIMIT", "AGENT")
    assert getattr(episode.errors, counter) == 3


async def test_an_unknown_tool_and_recovery_is_a_clean_episode() -> None:
    episode = await play(
        ScriptedAgent(agent("", "imagined"), agent("No.", resolves=ep.OUTCOME_DENY_REFUND)),
        world=ScriptedWorld(imagined=UNKNOWN),
    )
    assert ending(episode) == ("RESOLVED", "UNSPECIFIED")
    assert episode.errors.agent_unknown_tools == 1


async def test_a_refused_write_is_no_error_of_the_agent() -> None:
    the_agent = ScriptedAgent(agent("", *["write"] * 5), agent("No.", resolves=ep.OUTCOME_DENY_REFUND))
    episode = await play(the_agent, world=ScriptedWorld(write=REFUSED))
    assert ending(episode) == ("RESOLVED", "UNSPECIFIED")


async def test_repeating_the_same_call_is_capped() -> None:
    episode = await play(ScriptedAgent(agent("", "look", "look")), world=ScriptedWorld(look=REPEATED))
    assert ending(episode) == ("REPEATED_CALLS", "AGENT")
    assert episode.errors.agent_repeated_calls == 2


async def test_tool_rounds_of_one_turn_are_limited() -> None:
    episode = await play(ScriptedAgent(agent("", "look")), world=ScriptedWorld(look=OK))
    assert ending(episode) == ("TOOL_ROUND_LIMIT", "AGENT")


async def test_a_full_context_is_a_result_tried_once() -> None:
    the_agent = ScriptedAgent(agent("", finish=ep.FINISH_REASON_CONTEXT_OVERFLOW))
    episode = await play(the_agent)
    assert ending(episode) == ("CONTEXT_OVERFLOW", "AGENT")
    assert len(the_agent.seen) == 1


@pytest.mark.parametrize("sent", [True, False])
async def test_the_customers_full_context_is_not_the_agents_fault(sent: bool) -> None:
    episode = await play(
        ScriptedAgent(agent("Hm.")), ScriptedCustomer(ContextOverflow("too long", sent=sent))
    )
    assert ending(episode) == ("CONTEXT_OVERFLOW", "CUSTOMER")
    calls = [call for call in episode.model_calls if call.role == ep.ROLE_CUSTOMER]
    assert [call.finish_reason for call in calls] == [ep.FINISH_REASON_CONTEXT_OVERFLOW] * sent


@pytest.mark.parametrize(
    "reply", [says(""), says("cut of", finish=ep.FINISH_REASON_LENGTH), says("", "imagined")]
)
async def test_a_broken_customer_is_not_the_agents_fault(reply: CustomerReply) -> None:
    episode = await play(
        ScriptedAgent(agent("Hm.")), ScriptedCustomer(reply), ScriptedWorld(imagined=UNKNOWN)
    )
    assert episode.end.fault == ep.FAULT_PARTY_CUSTOMER


async def test_an_unusable_customer_message_is_asked_for_again() -> None:
    customer = ScriptedCustomer(says(""), says("Fine."))
    the_agent = ScriptedAgent(agent("Why?"), agent("No.", resolves=ep.OUTCOME_DENY_REFUND))
    episode = await play(the_agent, customer)
    assert customer.reminders == 1
    assert episode.errors.customer_errors == 1
    assert the_agent.seen[-1][-1] == "Fine."


async def test_the_token_budget_is_nobodys_fault_but_the_budgets() -> None:
    episode = await play(ScriptedAgent(agent("Hm.", tokens=400)))
    assert ending(episode) == ("TOKEN_BUDGET", "BUDGET")


async def test_a_tool_that_breaks_is_the_tools_fault() -> None:
    def broken() -> ToolOutcome:
        raise ToolFault("get_order_details: division by zero")

    episode = await play(ScriptedAgent(agent("", "look")), world=ScriptedWorld(look=broken))
    assert ending(episode) == ("TOOL_FAULT", "TOOLS")


async def test_a_fault_of_the_infrastructure_leaves_no_episode() -> None:
    with pytest.raises(AgentUnavailable):
        await play(ScriptedAgent(AgentUnavailable("gone")))


async def test_an_agent_that_breaks_the_contract_leaves_no_episode() -> None:
    with pytest.raises(AgentContractError, match="ROLE_CUSTOMER"):
        await play(ScriptedAgent(Response(message=ep.Message(role=ep.ROLE_CUSTOMER, content="hi"))))
    with pytest.raises(AgentContractError, match="not offered"):
        await play(ScriptedAgent(agent("x", resolves=ep.OUTCOME_UNSPECIFIED)))


async def test_model_calls_are_kept_in_order_with_what_was_reported() -> None:
    the_agent = ScriptedAgent(
        agent("Why?", tokens=3), agent("No.", resolves=ep.OUTCOME_DENY_REFUND, tokens=4)
    )
    episode = await play(the_agent)
    roles = [call.role for call in episode.model_calls]
    assert roles == [ep.ROLE_AGENT, ep.ROLE_CUSTOMER, ep.ROLE_AGENT]
    assert not episode.model_calls[1].usage.HasField("prompt_tokens")
    assert episode.model_calls[2].usage.prompt_tokens == 4
