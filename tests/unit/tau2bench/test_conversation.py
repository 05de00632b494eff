"""Every way a tau2-bench conversation can end, and how steps and errors are counted."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from policysweep.domains.returns.results import ErrorKind, ToolOutcome
from policysweep.errors import AgentContractError, AgentUnavailable, ContextOverflow, ToolFault
from policysweep.v1 import agent_pb2, simulator_pb2
from policysweep.v1 import episode_pb2 as ep
from services.simulator.ports import CustomerReply
from services.simulator.tau2.conversation import Conversation
from services.simulator.tau2.setup import GREETING
from services.simulator.tau2.user import split_stop

Response = agent_pb2.RespondResponse
Answer = ToolOutcome | Exception

OK = ToolOutcome("{}", ep.TOOL_STATUS_OK)
REFUSED = ToolOutcome("Error: no", ep.TOOL_STATUS_ERROR, ErrorKind.REFUSED)
MALFORMED = ToolOutcome("Error: no", ep.TOOL_STATUS_ERROR, ErrorKind.MALFORMED)
UNKNOWN = ToolOutcome("Error: no", ep.TOOL_STATUS_ERROR, ErrorKind.UNKNOWN_TOOL)


class ScriptedAgent:
    """Answers with the given responses, the last one for ever."""

    def __init__(self, *responses: Response | Exception) -> None:
        self._responses = responses
        self.seen: list[list[str]] = []
        self.steps: list[int] = []

    async def respond(self, request: agent_pb2.RespondRequest) -> Response:
        self.seen.append([message.content for message in request.messages])
        self.steps.append(request.step)
        response = self._responses[min(len(self.seen), len(self._responses)) - 1]
        if isinstance(response, Exception):
            raise response
        return response


class ScriptedUser:
    """Answers with the given replies, the last one for ever."""

    def __init__(self, *replies: CustomerReply | Exception) -> None:
        self._replies = replies
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
    """Answers each tool by name and keeps the order of the calls."""

    def __init__(self, **answers: Answer) -> None:
        self._answers = answers
        self.called: list[tuple[str, int]] = []

    def call(self, call: ep.ToolCall, requestor: ep.Role.ValueType) -> ToolOutcome:
        self.called.append((call.name, requestor))
        answer = self._answers.get(call.name, OK)
        if isinstance(answer, Exception):
            raise answer
        return answer


def says(text: str, *calls: str, finish: ep.FinishReason.ValueType = ep.FINISH_REASON_STOP) -> CustomerReply:
    return CustomerReply(text, [ep.ToolCall(id=f"u-{name}", name=name) for name in calls], finish, ep.Usage())


def agent(
    text: str = "",
    *calls: str,
    finish: ep.FinishReason.ValueType = ep.FINISH_REASON_STOP,
    tokens: int = 0,
    role: ep.Role.ValueType = ep.ROLE_AGENT,
) -> Response:
    made = [ep.ToolCall(id=f"a-{number}", name=name) for number, name in enumerate(calls)]
    return Response(
        message=ep.Message(role=role, content=text, tool_calls=made),
        finish_reason=finish,
        usage=ep.Usage(prompt_tokens=tokens),
        continuation=b"c",
        consulted_spec_ids=["s-1"],
    )


async def play(
    an_agent: ScriptedAgent,
    user: ScriptedUser,
    world: ScriptedWorld | None = None,
    *,
    max_steps: int = 200,
    max_errors: int = 10,
) -> ep.Episode:
    limits = simulator_pb2.Tau2Limits(
        max_steps=max_steps, max_errors=max_errors, max_tokens=1000, agent_call_seconds=10
    )
    notified: list[ep.Message] = []
    conversation = Conversation(
        ep.Episode(episode_id="e"),
        limits,
        agent_pb2.RespondRequest(episode_id="e"),
        an_agent,
        user,
        world or ScriptedWorld(),
        notified.append,
    )
    episode = await conversation.play()
    assert list(episode.messages) == notified
    return episode


def transcript(episode: ep.Episode) -> Sequence[str]:
    """One line a message."""
    marks = {ep.ROLE_AGENT: "A", ep.ROLE_CUSTOMER: "U", ep.ROLE_TOOL: "T"}
    return [
        f"{marks[message.role]} {message.content}" + "".join(f" [{call.name}]" for call in message.tool_calls)
        for message in episode.messages
    ]


async def test_the_agent_greets_and_the_user_stops() -> None:
    an_agent, user = ScriptedAgent(agent("Done.")), ScriptedUser(says("Cancel it."), says("###STOP###"))
    episode = await play(an_agent, user)
    assert transcript(episode) == [f"A {GREETING}", "U Cancel it.", "A Done."]
    assert user.heard == [GREETING, "Done."]
    assert an_agent.seen == [[GREETING, "Cancel it."]]
    assert episode.end == ep.EpisodeEnd(reason=ep.END_REASON_USER_STOP)
    assert episode.turns == 1
    assert [call.role for call in episode.model_calls] == [ep.ROLE_CUSTOMER, ep.ROLE_AGENT, ep.ROLE_CUSTOMER]
    assert list(episode.model_calls[1].consulted_spec_ids) == ["s-1"]


@pytest.mark.parametrize(
    ("mark", "reason"),
    [
        ("###STOP###", ep.END_REASON_USER_STOP),
        ("###TRANSFER###", ep.END_REASON_USER_TRANSFER),
        ("###OUT-OF-SCOPE###", ep.END_REASON_USER_OUT_OF_SCOPE),
    ],
)
async def test_each_mark_ends_it_in_its_way(mark: str, reason: ep.EndReason.ValueType) -> None:
    an_agent = ScriptedAgent(agent("Hm."))
    episode = await play(an_agent, ScriptedUser(says(f" {mark} ")))
    assert (episode.end.reason, episode.end.fault) == (reason, ep.FAULT_PARTY_UNSPECIFIED)
    assert not an_agent.seen
    assert transcript(episode) == [f"A {GREETING}"]


async def test_a_stop_together_with_an_agreement_lets_the_agent_act_on_it() -> None:
    an_agent = ScriptedAgent(agent("Shall I cancel it?"), agent("", "cancel"), agent("It is cancelled."))
    user = ScriptedUser(says("Cancel it."), says("Yes, please do. ###STOP###"))
    world = ScriptedWorld()
    episode = await play(an_agent, user, world)
    assert world.called == [("cancel", ep.ROLE_AGENT)]
    assert transcript(episode)[-4:] == ["U Yes, please do.", "A  [cancel]", "T {}", "A It is cancelled."]
    assert episode.end == ep.EpisodeEnd(reason=ep.END_REASON_USER_STOP)
    assert user.calls == 2


@pytest.mark.parametrize("mark", ["###TRANSFER###", "###OUT-OF-SCOPE###"])
async def test_other_marks_leave_the_agent_no_turn(mark: str) -> None:
    an_agent = ScriptedAgent(agent("You are being transferred."))
    episode = await play(an_agent, ScriptedUser(says("Help."), says(f"Thank you. {mark}")))
    assert transcript(episode)[-1] == "U Thank you."
    assert len(an_agent.seen) == 1


async def test_a_stop_is_not_lost_to_a_limit_in_the_last_turn() -> None:
    an_agent = ScriptedAgent(agent("Shall I?"), agent("", "cancel"))
    user = ScriptedUser(says("Cancel it."), says("Yes. ###STOP###"))
    episode = await play(an_agent, user, max_steps=8)
    assert episode.end.reason == ep.END_REASON_USER_STOP
    assert episode.end.detail == "the agent's last turn was cut: 9 steps without an end"
    assert episode.end.fault == ep.FAULT_PARTY_UNSPECIFIED


async def test_a_stop_at_the_step_limit_counts() -> None:
    user = ScriptedUser(says("Hi."), says("###STOP###"))
    episode = await play(ScriptedAgent(agent("Hello.")), user, max_steps=3)
    assert episode.end.reason == ep.END_REASON_USER_STOP


async def test_a_stop_beside_a_call_waits_for_the_call() -> None:
    world = ScriptedWorld()
    an_agent = ScriptedAgent(agent("Switch it off."))
    user = ScriptedUser(says("Hi."), says("Done ###STOP###", "switch_off"))
    episode = await play(an_agent, user, world)
    assert world.called == [("switch_off", ep.ROLE_CUSTOMER)]
    assert episode.end.reason == ep.END_REASON_USER_STOP
    assert transcript(episode)[-1] == "A Switch it off."


def test_marks_are_taken_out_of_the_text() -> None:
    assert split_stop("No mark.") == ("No mark.", None)
    assert split_stop("A ###TRANSFER### b ###STOP### ###TRANSFER###") == ("A  b", ep.END_REASON_USER_TRANSFER)
    assert split_stop("###stop###") == ("###stop###", None)


async def test_parallel_calls_run_in_order_and_their_results_follow_in_order() -> None:
    world = ScriptedWorld(b=REFUSED)
    an_agent = ScriptedAgent(agent("", "a", "b", "c"), agent("Done."))
    episode = await play(an_agent, ScriptedUser(says("Do it."), says("###STOP###")), world)
    assert [name for name, _ in world.called] == ["a", "b", "c"]
    results = [message for message in episode.messages if message.role == ep.ROLE_TOOL]
    assert [(m.tool_call_id, m.tool_name, m.tool_status) for m in results] == [
        ("a-0", "a", ep.TOOL_STATUS_OK),
        ("a-1", "b", ep.TOOL_STATUS_ERROR),
        ("a-2", "c", ep.TOOL_STATUS_OK),
    ]
    assert episode.errors == ep.ErrorCounts(tool_errors=1)
    assert an_agent.steps == [0, 1]


async def test_text_beside_calls_is_kept_and_not_told_to_the_user() -> None:
    user = ScriptedUser(says("Do it."), says("###STOP###"))
    episode = await play(ScriptedAgent(agent("Let me see.", "a"), agent("Done.")), user)
    assert user.heard == [GREETING, "Done."]
    assert "A Let me see. [a]" in transcript(episode)


async def test_a_users_tools_are_its_own() -> None:
    world = ScriptedWorld(check=OK)
    an_agent = ScriptedAgent(agent("Please check."), agent("Fine."))
    user = ScriptedUser(says("Hi."), says("I check.", "check"), says("It is off."), says("###STOP###"))
    episode = await play(an_agent, user, world)
    assert transcript(episode)[2:5] == ["A Please check.", "U It is off.", "A Fine."]
    assert user.results == ["{}"]
    (event,) = episode.customer_tool_events
    assert (event.after_message, event.call.name, event.status) == (3, "check", ep.TOOL_STATUS_OK)


async def test_the_step_limit_waits_for_pending_calls() -> None:
    """Greeting; user 1, call 2, result 3."""
    an_agent = ScriptedAgent(agent("", "a"))
    episode = await play(an_agent, ScriptedUser(says("Do it.")), max_steps=2)
    assert (episode.end.reason, episode.end.fault) == (ep.END_REASON_STEP_LIMIT, ep.FAULT_PARTY_AGENT)
    assert episode.end.detail == "3 steps without an end"
    assert transcript(episode)[-1] == "T {}"


async def test_the_same_call_without_end_meets_the_step_limit() -> None:
    episode = await play(ScriptedAgent(agent("", "a")), ScriptedUser(says("Do it.")), max_steps=200)
    assert episode.end.reason == ep.END_REASON_STEP_LIMIT
    assert len(episode.messages) == 202


@pytest.mark.parametrize(
    ("outcome", "malformed", "unknown"), [(REFUSED, 0, 0), (MALFORMED, 3, 0), (UNKNOWN, 0, 3)]
)
async def test_the_error_limit_counts_refused_calls(
    outcome: ToolOutcome, malformed: int, unknown: int
) -> None:
    world = ScriptedWorld(a=outcome)
    episode = await play(ScriptedAgent(agent("", "a")), ScriptedUser(says("Do it.")), world, max_errors=3)
    assert (episode.end.reason, episode.end.fault) == (ep.END_REASON_ERROR_LIMIT, ep.FAULT_PARTY_AGENT)
    assert episode.errors == ep.ErrorCounts(
        tool_errors=3, agent_malformed_calls=malformed, agent_unknown_tools=unknown
    )


async def test_empty_and_cut_messages_of_the_agent_are_errors() -> None:
    an_agent = ScriptedAgent(agent(" "), agent("It is", finish=ep.FINISH_REASON_LENGTH))
    episode = await play(an_agent, ScriptedUser(says("And?")), max_errors=3)
    assert episode.end.reason == ep.END_REASON_ERROR_LIMIT
    assert episode.errors == ep.ErrorCounts(agent_empty_messages=1, agent_truncated=2)


async def test_a_user_without_a_usable_message_is_reminded_and_then_at_fault() -> None:
    user = ScriptedUser(says(" "), says("I wou", finish=ep.FINISH_REASON_LENGTH), says(""))
    episode = await play(ScriptedAgent(agent("Hm.")), user, max_errors=3)
    assert (episode.end.reason, episode.end.fault) == (ep.END_REASON_ERROR_LIMIT, ep.FAULT_PARTY_CUSTOMER)
    assert user.reminders == 2
    assert episode.errors.customer_errors == 3


async def test_a_user_that_calls_tools_in_vain_is_at_fault() -> None:
    world = ScriptedWorld(a=UNKNOWN)
    user = ScriptedUser(says("", "a"))
    episode = await play(ScriptedAgent(agent("Hm.")), user, world, max_errors=2)
    assert (episode.end.reason, episode.end.fault) == (ep.END_REASON_ERROR_LIMIT, ep.FAULT_PARTY_CUSTOMER)
    assert episode.errors == ep.ErrorCounts(customer_errors=2, tool_errors=2)


@pytest.mark.parametrize("side", ["agent", "user"])
async def test_a_context_that_overflows_is_a_result(side: str) -> None:
    overflow = agent(finish=ep.FINISH_REASON_CONTEXT_OVERFLOW)
    user = ScriptedUser(ContextOverflow("too long") if side == "user" else says("Hi."))
    episode = await play(ScriptedAgent(overflow), user)
    assert episode.end.reason == ep.END_REASON_CONTEXT_OVERFLOW
    assert episode.end.fault == (ep.FAULT_PARTY_AGENT if side == "agent" else ep.FAULT_PARTY_CUSTOMER)


async def test_the_token_budget_ends_it() -> None:
    episode = await play(ScriptedAgent(agent("Hm.", tokens=1001)), ScriptedUser(says("Hi.")))
    assert (episode.end.reason, episode.end.fault) == (ep.END_REASON_TOKEN_BUDGET, ep.FAULT_PARTY_BUDGET)


async def test_a_tool_that_fails_for_reasons_of_its_own_is_at_fault() -> None:
    world = ScriptedWorld(a=ToolFault("a failed"))
    episode = await play(ScriptedAgent(agent("", "a")), ScriptedUser(says("Hi.")), world)
    assert episode.end == ep.EpisodeEnd(
        reason=ep.END_REASON_TOOL_FAULT, fault=ep.FAULT_PARTY_TOOLS, detail="a failed"
    )


async def test_a_fault_of_the_infrastructure_leaves_no_episode() -> None:
    with pytest.raises(AgentUnavailable):
        await play(ScriptedAgent(AgentUnavailable("gone")), ScriptedUser(says("Yes. ###STOP###")))


async def test_an_agent_that_breaks_the_contract_is_told() -> None:
    with pytest.raises(AgentContractError, match="answered with role ROLE_TOOL"):
        await play(ScriptedAgent(agent("Hm.", role=ep.ROLE_TOOL)), ScriptedUser(says("Hi.")))
    declaring = agent("Done.")
    declaring.resolution.outcome = ep.OUTCOME_DENY_REFUND
    with pytest.raises(AgentContractError, match="declared OUTCOME_DENY_REFUND, which was not offered"):
        await play(ScriptedAgent(declaring), ScriptedUser(says("Hi.")))
