"""The baseline agent over a model that answers what a test tells it to."""

from __future__ import annotations

from typing import Any

import pytest

from policysweep import __version__
from policysweep.domains.returns.resolution import RESOLUTION_TOOL, resolution_options
from policysweep.errors import ContextOverflow, ModelServerRejected, ModelServerUnavailable
from policysweep.models.chat import ChatReply, ChatRequest
from policysweep.models.openai_api import ModelDescription
from policysweep.v1 import agent_pb2, scenario_pb2
from policysweep.v1 import episode_pb2 as ep
from services.agent.agent import MemoryUnsupported
from services.agent.prompt import PROMPT_DIGEST
from services.agent.variants.baseline import BaselineAgent

SAMPLING = agent_pb2.Sampling(temperature=0.5, top_p=0.9, max_tokens=100)
DECLARED = (
    '{"resolution_type":"DENY_REFUND","description":"why","conditions":["c"],'
    '"customer_next_steps":["n"],"message":"Sorry."}'
)


class ScriptedModel:
    """Answers with `said`, or raises it."""

    name = "scripted"

    def __init__(self, said: ChatReply | Exception | None = None, max_model_len: int | None = None) -> None:
        self.said = said
        self.max_model_len = max_model_len
        self.asked: list[ChatRequest] = []
        self.described = 0

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.asked.append(request)
        if isinstance(self.said, ChatReply):
            return self.said
        raise self.said or AssertionError("no answer scripted")

    async def describe(self, timeout_seconds: float) -> ModelDescription:
        self.described += 1
        if isinstance(self.said, Exception):
            raise self.said
        return ModelDescription("m", rehearsal=True, max_model_len=self.max_model_len)


def reply(text: str = "", *calls: tuple[str, str], **fields: Any) -> ChatReply:
    return ChatReply(
        text=text,
        tool_calls=[
            ep.ToolCall(id=f"c{index}", name=name, arguments_json=arguments)
            for index, (name, arguments) in enumerate(calls)
        ],
        finish_reason=fields.pop("finish_reason", ep.FINISH_REASON_STOP),
        usage=ep.Usage(prompt_tokens=7, model_calls=1),
        rehearsal=fields.pop("rehearsal", False),
    )


def request(**fields: Any) -> agent_pb2.RespondRequest:
    defaults: dict[str, Any] = {
        "episode_id": "ep-1",
        "seed": 11,
        "policy": scenario_pb2.Policy(primary=scenario_pb2.PolicyDocument(text="policy")),
        "messages": [ep.Message(role=ep.ROLE_CUSTOMER, content="hi")],
        "resolution_options": resolution_options(),
    }
    return agent_pb2.RespondRequest(**{**defaults, **fields})


async def respond(said: ChatReply | Exception, **fields: Any) -> agent_pb2.RespondResponse:
    return await BaselineAgent(ScriptedModel(said), SAMPLING).respond(request(**fields), 9.0)


async def test_what_the_model_is_asked() -> None:
    model = ScriptedModel(reply("hello"))
    await BaselineAgent(model, SAMPLING).respond(request(), 9.0)
    (asked,) = model.asked
    assert (asked.seed, asked.session_id, asked.timeout, asked.sampling) == (11, "ep-1", 9.0, SAMPLING)


async def test_an_answer_is_passed_on_with_all_that_is_known_of_it() -> None:
    response = await respond(
        reply("Let me see.", ("look_up", "{broken"), finish_reason=ep.FINISH_REASON_LENGTH, rehearsal=True)
    )
    assert response.message.role == ep.ROLE_AGENT
    assert response.message.content == "Let me see."
    assert [(c.id, c.name, c.arguments_json) for c in response.message.tool_calls] == [
        ("c0", "look_up", "{broken")
    ]
    assert not response.HasField("resolution")
    assert (response.usage.prompt_tokens, response.usage.model_calls) == (7, 1)
    assert response.finish_reason == ep.FINISH_REASON_LENGTH
    assert response.rehearsal


async def test_an_empty_answer_stays_empty() -> None:
    response = await respond(reply())
    assert (response.message.content, len(response.message.tool_calls)) == ("", 0)


async def test_a_valid_declaration_becomes_the_resolution() -> None:
    response = await respond(reply("Bye.", ("issue_refund", "{}"), (RESOLUTION_TOOL, DECLARED)))
    assert response.resolution == ep.Resolution(
        outcome=ep.OUTCOME_DENY_REFUND, description="why", conditions=["c"], customer_next_steps=["n"]
    )
    assert response.message.content == "Bye.\n\nSorry."
    assert [call.name for call in response.message.tool_calls] == ["issue_refund"]


@pytest.mark.parametrize(("text", "content"), [("", "Sorry."), ("So: Sorry.", "So: Sorry.")])
async def test_the_closing_words_are_said_once(text: str, content: str) -> None:
    response = await respond(reply(text, (RESOLUTION_TOOL, DECLARED)))
    assert response.message.content == content


@pytest.mark.parametrize(
    ("calls", "options"),
    [
        ([(RESOLUTION_TOOL, DECLARED[:-4])], resolution_options()),
        ([(RESOLUTION_TOOL, "{}")], resolution_options()),
        ([(RESOLUTION_TOOL, DECLARED), (RESOLUTION_TOOL, DECLARED)], resolution_options()),
        ([(RESOLUTION_TOOL, DECLARED)], resolution_options()[:2]),
        ([(RESOLUTION_TOOL, DECLARED)], ()),
    ],
    ids=["half", "empty", "twice", "not offered", "nothing offered"],
)
async def test_an_invalid_declaration_stays_a_call_verbatim(
    calls: list[tuple[str, str]], options: tuple[agent_pb2.ResolutionOption, ...]
) -> None:
    response = await respond(reply("x", *calls), resolution_options=options)
    assert not response.HasField("resolution")
    assert [(c.name, c.arguments_json) for c in response.message.tool_calls] == calls


async def test_a_prompt_that_does_not_fit_is_a_result() -> None:
    response = await respond(ContextOverflow("too long"))
    assert response.finish_reason == ep.FINISH_REASON_CONTEXT_OVERFLOW
    assert response.message == ep.Message(role=ep.ROLE_AGENT)


async def test_a_fault_of_the_server_is_none() -> None:
    with pytest.raises(ModelServerUnavailable):
        await respond(ModelServerUnavailable("down"))


async def test_a_bank_is_refused_before_the_model_is_asked() -> None:
    model = ScriptedModel(reply("x"))
    with pytest.raises(MemoryUnsupported, match="bank_id is 'b1', but this variant has no memory"):
        await BaselineAgent(model, SAMPLING).respond(request(bank_id="b1"), 9.0)
    assert model.asked == []


class TestInfo:
    async def test_all_that_changes_behaviour(self) -> None:
        info = await BaselineAgent(ScriptedModel(reply("x"), max_model_len=8192), SAMPLING).info(1.0)
        assert info == agent_pb2.AgentInfo(
            variant="baseline",
            model="m",
            prompt_digest=PROMPT_DIGEST,
            sampling=SAMPLING,
            memory_mode="none",
            rehearsal=True,
            version=__version__,
            tool_mode="native",
        )

    async def test_a_success_is_remembered_and_a_failure_is_not(self) -> None:
        model = ScriptedModel(ModelServerUnavailable("down"))
        agent = BaselineAgent(model, SAMPLING)
        for _ in range(2):
            with pytest.raises(ModelServerUnavailable):
                await agent.info(1.0)
        model.said = reply("x")
        await agent.info(1.0)
        await agent.info(1.0)
        assert model.described == 3

    async def test_no_room_for_a_prompt_is_found_before_the_first_unit(self) -> None:
        with pytest.raises(ModelServerRejected, match=r"max_tokens is 100.*context of 100 tokens"):
            await BaselineAgent(ScriptedModel(reply("x"), max_model_len=100), SAMPLING).info(1.0)
