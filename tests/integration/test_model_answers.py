"""Every answer of a model server that is known to occur, over real HTTP: what comes of it, who it counts for.

What is expected stands in one place, the table of docs/methodology.md. Each row is a fault of the rehearsal
server, at every call. The client is asked once; then a conversation is played with the faulty model as the
agent, one with it as the customer, and a panel is judged with it.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import orjson
import pytest

from policysweep.datasets.load import load
from policysweep.domains.returns.environment import customer_tools
from policysweep.errors import ModelServerBusy, PolicysweepError
from policysweep.models.chat import ChatReply, ChatRequest, ResponseSchema
from policysweep.models.openai_api import OpenAIChatModel
from policysweep.models.refusals import LONGEST_WAIT
from policysweep.models.rehearsal import FaultKind, RehearsalConfig, RehearsalServer
from policysweep.models.tools import openai_tools
from policysweep.v1 import agent_pb2, judge_pb2, simulator_pb2
from policysweep.v1 import episode_pb2 as ep
from services.agent.variants.baseline import BaselineAgent
from services.judge import prompt
from services.judge.asking import Interrogator
from services.judge.panels import Case, judge_panels
from services.judge.rubric_files import read_rubric
from services.simulator import environment
from services.simulator.customer import ModelCustomer, character, opening_chat
from services.simulator.ports import CustomerReply
from services.simulator.turn_loop import TurnLoop

ROOT = Path(__file__).parents[2]
DATA = load("builtin")
RUBRIC = read_rubric(ROOT / "services/judge/rubrics/drip-r-1.toml")
STALLS = ("stall", "stall_mid_body")
NOTHING = "nothing"


class Row(NamedTuple):
    """A row of the table."""

    fault: str
    client: str
    agent: str
    customer: str
    judge: str


def documented() -> list[Row]:
    text = (ROOT / "docs/methodology.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| ([\w `,]+) \| (\w+) \| (\w+) \| (\w+) \|$", text, re.MULTILINE)
    return [Row(fault, client.replace("`", ""), *parties) for fault, client, *parties in rows]


def test_every_fault_has_its_row() -> None:
    assert [row.fault for row in documented()] == list(FaultKind)


def test_the_rehearsal_servers_page_lists_every_fault() -> None:
    page = (ROOT / "docs/rehearsal.md").read_text(encoding="utf-8").partition("## Faults")[2]
    kinds = [row.partition("|")[0] for row in re.findall(r"^\| (`.*)", page, re.MULTILINE)]
    assert sorted(re.findall(r"`(\w+)`", " ".join(kinds))) == sorted(FaultKind)


@pytest.mark.parametrize("row", documented(), ids=lambda row: row.fault)
async def test_what_the_client_gives_and_who_it_counts_for(row: Row) -> None:
    seconds = 0.05 if row.fault in STALLS else 20.0
    async with RehearsalServer(RehearsalConfig(faults={row.fault: 1.0}, retry_after=2.0)) as server:
        assert row == Row(
            row.fault,
            await as_client(server, seconds),
            await as_agent(server, seconds),
            await as_customer(server, seconds),
            await as_judge(server, seconds),
        )


# ------------------------------------------------------------------------ client

TOOL = {
    "type": "function",
    "function": {
        "name": "look_up",
        "parameters": {
            "type": "object",
            "properties": {"order_id": {"type": "string"}},
            "required": ["order_id"],
        },
    },
}
ASKED = ChatRequest(
    messages=[{"role": "user", "content": "Where is my order?"}],
    tools=[TOOL],
    sampling=agent_pb2.Sampling(max_tokens=500),
    timeout=20,
)


@asynccontextmanager
async def model(server: RehearsalServer, name: str = "fair") -> AsyncIterator[OpenAIChatModel]:
    async with OpenAIChatModel(base_url=server.url, model=f"rehearsal-{name}") as chat:
        yield chat


async def as_client(server: RehearsalServer, seconds: float) -> str:
    """The class of the error, or what the reply holds and why it ended."""
    request = replace(ASKED, timeout=seconds)
    async with model(server) as chat:
        try:
            reply = await chat.complete(request)
        except PolicysweepError as error:
            return type(error).__name__
    calls = f"{len(reply.tool_calls)} calls" if len(reply.tool_calls) > 1 else "a call"
    held = calls if reply.tool_calls else "text" if reply.text else "no text"
    return f"{held}, {ep.FinishReason.Name(reply.finish_reason).removeprefix('FINISH_REASON_')}"


async def asked(fault: str, request: ChatRequest = ASKED) -> ChatReply:
    async with (
        RehearsalServer(RehearsalConfig(faults={fault: 1.0}, retry_after=7.0)) as server,
        model(server) as chat,
    ):
        return await chat.complete(request)


def order_of(reply: ChatReply) -> str | None:
    """The argument of the first call."""
    order: str | None = orjson.loads(reply.tool_calls[0].arguments_json).get("order_id")
    return order


Check = Callable[[ChatReply], bool]
DETAILS: Mapping[str, Check] = {
    "null_content": lambda reply: reply.text == "",
    "content_parts": lambda reply: reply.text.endswith("."),
    "half_surrogate": lambda reply: reply.text.endswith(" ?"),
    "reasoning_content": lambda reply: "Let me think" not in reply.text,
    "reasoning": lambda reply: "Let me think" not in reply.text,
    "think_tags": lambda reply: reply.text.startswith("<think>The customer"),
    "misplaced_answer": lambda reply: reply.text == "",
    "no_usage": lambda reply: not reply.usage.HasField("prompt_tokens"),
    "null_usage_details": lambda reply: (
        reply.usage.prompt_tokens > 0 and not reply.usage.HasField("cached_prompt_tokens")
    ),
    "object_arguments": lambda reply: bool(order_of(reply)),
    "none_arguments": lambda reply: reply.tool_calls[0].arguments_json == "{}",
    "braces_in_arguments": lambda reply: str(order_of(reply)).endswith(' }{ "]["\\'),
    "unicode_arguments": lambda reply: "\u6f22\u5b57 \U0001f642 \u2028" in str(order_of(reply)),
    "malformed_tool_call": lambda reply: reply.tool_calls[0].arguments_json.startswith('{"order_id":'),
    "duplicate_call_ids": lambda reply: len({call.id for call in reply.tool_calls}) == 3,
    "missing_call_ids": lambda reply: bool(reply.tool_calls[0].id),
    "missing_name": lambda reply: reply.tool_calls[0].name == "",
    "call_with_reasoning": lambda reply: reply.text == "",
    "refusal": lambda reply: reply.text.startswith("I'm sorry"),
}
"""What the reply to a fault has to hold beyond its row."""


@pytest.mark.parametrize("fault", DETAILS)
async def test_what_the_reply_holds(fault: str) -> None:
    reply = await asked(fault)
    assert DETAILS[fault](reply), reply


async def test_a_structured_answer_that_is_taken_for_reasoning_is_found() -> None:
    schema = ResponseSchema("verdict", {"type": "object", "properties": {"score": {"const": 3}}})
    request = ChatRequest(messages=ASKED.messages, response_schema=schema, timeout=20)
    assert orjson.loads((await asked("misplaced_answer", request)).text) == {"score": 3}


@pytest.mark.parametrize("fault", ["reasoning_content", "reasoning", "call_with_reasoning", "call_with_stop"])
async def test_a_named_tool_is_called_with_and_without_reasoning(fault: str) -> None:
    named = {"type": "function", "function": {"name": "look_up"}}
    reply = await asked(fault, replace(ASKED, tool_choice=named))
    assert [call.name for call in reply.tool_calls] == ["look_up"]
    assert order_of(reply)
    assert reply.text == ""


@pytest.mark.parametrize(
    ("fault", "at_least", "at_most"),
    [
        ("http_429", 7, 7),
        ("http_503", 7, 7),
        ("http_429_date", 0, 7),
        ("http_429_absurd", LONGEST_WAIT, LONGEST_WAIT),
    ],
)
async def test_a_busy_server_says_how_long_to_wait(fault: str, at_least: float, at_most: float) -> None:
    with pytest.raises(ModelServerBusy) as caught:
        await asked(fault)
    assert caught.value.retry_after is not None
    assert at_least <= caught.value.retry_after <= at_most


# ------------------------------------------------------------------ conversations

SCENARIO = DATA.scenarios[0]
SETUP = simulator_pb2.RunEpisodeRequest(
    episode_id="e",
    scenario=SCENARIO,
    world=DATA.worlds[SCENARIO.task_id],
    agent_persona=ep.AGENT_PERSONA_FAIR,
    seed=1,
    # One error ends a conversation, so that an answer is told from a harmless one.
    limits=simulator_pb2.EpisodeLimits(
        max_turns=2, max_tool_rounds=6, max_errors=1, max_repeated_calls=3, max_tokens=10**6
    ),
)
SAMPLING = agent_pb2.Sampling(max_tokens=1000)
JUDGE_SAMPLING = agent_pb2.Sampling(max_tokens=8000)
PARTIES = {
    ep.FAULT_PARTY_AGENT: "agent",
    ep.FAULT_PARTY_CUSTOMER: "customer",
    ep.FAULT_PARTY_JUDGE: "judge",
    ep.FAULT_PARTY_INFRASTRUCTURE: "infrastructure",
}
LIMITS = (ep.END_REASON_TURN_LIMIT, ep.END_REASON_TOOL_ROUND_LIMIT)
"""The conversation went on until it was long enough."""


class Agent:
    """The baseline agent, called without gRPC."""

    def __init__(self, chat: OpenAIChatModel, seconds: float) -> None:
        self._agent = BaselineAgent(chat, SAMPLING)
        self._shared = agent_pb2.RespondRequest.FromString(environment.shared_part(SETUP))
        self._seconds = seconds

    async def respond(self, request: agent_pb2.RespondRequest) -> agent_pb2.RespondResponse:
        whole = agent_pb2.RespondRequest()
        whole.CopyFrom(request)
        whole.MergeFrom(self._shared)
        return await self._agent.respond(whole, self._seconds)


class PoliteAgent:
    """Says the same for ever."""

    async def respond(self, request: agent_pb2.RespondRequest) -> agent_pb2.RespondResponse:
        said = ep.Message(role=ep.ROLE_AGENT, content="What is wrong with the item?")
        return agent_pb2.RespondResponse(message=said, finish_reason=ep.FINISH_REASON_STOP)


class PatientCustomer:
    """Says the same for ever."""

    async def reply(self) -> CustomerReply:
        return CustomerReply("It does not work.", (), ep.FINISH_REASON_STOP, ep.Usage())

    def hear(self, text: str) -> None: ...

    def result(self, call: ep.ToolCall, content: str) -> None: ...

    def remind(self) -> None: ...


async def as_agent(server: RehearsalServer, seconds: float) -> str:
    async with model(server) as chat:
        return await counted(Agent(chat, seconds), PatientCustomer())


async def as_customer(server: RehearsalServer, seconds: float) -> str:
    async with model(server, "customer") as chat:
        customer = ModelCustomer(
            chat,
            chat=opening_chat(character(SCENARIO, SETUP.world.order.order_id), environment.opening(SETUP)),
            tools=openai_tools(customer_tools()),
            sampling=SAMPLING,
            seed=1,
            session_id="e",
            timeout=lambda: seconds,
        )
        return await counted(PoliteAgent(), customer)


async def counted(agent: Agent | PoliteAgent, customer: ModelCustomer | PatientCustomer) -> str:
    """Who a conversation counts for."""
    try:
        episode = await played(agent, customer)
    except PolicysweepError as error:
        return PARTIES[error.party]
    if episode.end.reason in LIMITS or episode.end.fault == ep.FAULT_PARTY_UNSPECIFIED:
        return NOTHING
    return PARTIES[episode.end.fault]


async def played(agent: Agent | PoliteAgent, customer: ModelCustomer | PatientCustomer) -> ep.Episode:
    loop = TurnLoop(
        SETUP,
        environment.first_request(SETUP),
        agent,
        customer,
        environment.returns_environment(SETUP),
        lambda message: None,
    )
    return await loop.play(environment.opening(SETUP))


# ------------------------------------------------------------------------- judge


async def as_judge(server: RehearsalServer, seconds: float) -> str:
    """The party, or the reason why scores are absent."""
    panel = next(each for each in RUBRIC.panels if each.key == "dialogue")
    case = Case(
        RUBRIC, SCENARIO, EPISODE, [], 1, prompt.episode_text(RUBRIC, SCENARIO, EPISODE), lambda: seconds
    )
    async with model(server, "judge") as chat:
        judge = Interrogator(
            chat, JUDGE_SAMPLING, use_logprobs="off", top_logprobs=5, samples=1, parse_attempts=1
        )
        try:
            (verdict,) = (await judge_panels(judge, case, [panel])).panels
        except PolicysweepError as error:
            return PARTIES[error.party]
    fine = (judge_pb2.ABSENT_REASON_UNSPECIFIED, judge_pb2.ABSENT_REASON_NOT_APPLICABLE)
    return NOTHING if all(score.absent_reason in fine for score in verdict.scores) else "judge"


EPISODE = ep.Episode(
    episode_id="e",
    scenario_id=SCENARIO.scenario_id,
    agent_persona=ep.AGENT_PERSONA_FAIR,
    messages=[
        ep.Message(role=ep.ROLE_CUSTOMER, content="My kettle is too loud."),
        ep.Message(role=ep.ROLE_AGENT, content="Then I take it back, less 10%."),
    ],
    resolution=ep.Resolution(outcome=ep.OUTCOME_RETURN_REFUND_PARTIAL_BANK, description="Used once."),
    outcome=ep.OUTCOME_RETURN_REFUND_PARTIAL_BANK,
    end=ep.EpisodeEnd(reason=ep.END_REASON_RESOLVED),
)
