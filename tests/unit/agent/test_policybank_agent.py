"""The agent with a memory, over a model and a bank that answer what a test tells them to."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from policysweep.domains.returns.resolution import resolution_options
from policysweep.errors import BankNotFound, ContextOverflow, InputError, ServiceUnavailable
from policysweep.models.chat import ChatReply, ChatRequest
from policysweep.models.openai_api import ModelDescription
from policysweep.v1 import agent_pb2, scenario_pb2
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import policybank_pb2 as pb
from services.agent.config import AgentConfig, MemoryMode
from services.agent.variants.policybank import PolicyBankAgent

CUSTOMER, AGENT, TOOL = ep.ROLE_CUSTOMER, ep.ROLE_AGENT, ep.ROLE_TOOL
OPENING = ep.Message(role=CUSTOMER, content="I want my money back.")


class Model:
    """Answers in turn; a text is a message, a list are calls, an error is raised."""

    name = "scripted"

    def __init__(self, *said: str | list[tuple[str, str]] | Exception) -> None:
        self.said = list(said)
        self.asked: list[ChatRequest] = []

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.asked.append(request)
        said = self.said.pop(0)
        if isinstance(said, Exception):
            raise said
        calls = [] if isinstance(said, str) else said
        usage = ep.Usage(prompt_tokens=10, latency_seconds=0.5, model_calls=1)
        numbered = [
            ep.ToolCall(id=f"c{len(self.asked)}{at}", name=name, arguments_json=arguments)
            for at, (name, arguments) in enumerate(calls)
        ]
        text = said if isinstance(said, str) else ""
        return ChatReply(text, numbered, ep.FINISH_REASON_STOP, usage, rehearsal=True)

    async def describe(self, timeout_seconds: float) -> ModelDescription:
        return ModelDescription("m", rehearsal=True, max_model_len=None)


class Bank:
    """Two entries; the recall of a query is the query itself. Remembers how it was read."""

    entries: Sequence[pb.Entry] = (
        pb.Entry(capability_id="refund", header="About refunds", spec=pb.Spec(action="Pay back.")),
        pb.Entry(capability_id="other", header="About the rest", spec=pb.Spec(action="Ask.")),
    )

    def __init__(self, failing: Exception | None = None) -> None:
        self.failing = failing
        self.read: list[Any] = []

    def _note(self, *what: Any) -> None:
        self.read.append(what)
        if self.failing is not None:
            raise self.failing

    async def recall(self, bank: pb.BankRef, query: str, limit: int, seconds: float) -> list[pb.RecalledItem]:
        self._note("recall", _shown(bank), query, limit)
        return [pb.RecalledItem(capability_id=f"near {query}", text=f"NEAR {query}")]

    async def everything(self, bank: pb.BankRef, seconds: float) -> list[pb.RecalledItem]:
        self._note("everything", _shown(bank))
        return [pb.RecalledItem(capability_id=each.capability_id, text=each.header) for each in self.entries]

    async def headers(self, bank: pb.BankRef, seconds: float) -> list[pb.Header]:
        self._note("headers", _shown(bank))
        return [pb.Header(capability_id=each.capability_id, header=each.header) for each in self.entries]

    async def specs(self, bank: pb.BankRef, ids: Sequence[str], seconds: float) -> pb.BatchGetSpecsResponse:
        self._note("specs", _shown(bank), list(ids))
        known = {each.capability_id: each for each in self.entries}
        return pb.BatchGetSpecsResponse(
            entries=[known[each] for each in ids if each in known],
            unknown_ids=[each for each in ids if each not in known],
        )

    async def check(self, seconds: float) -> None:
        self._note("check")


def _shown(bank: pb.BankRef) -> str:
    """`b`, or `b@3` where a revision is named."""
    return f"{bank.bank_id}@{bank.revision}" if bank.HasField("revision") else bank.bank_id


def request(*messages: ep.Message, **fields: Any) -> agent_pb2.RespondRequest:
    given: dict[str, Any] = {
        "episode_id": "e",
        "bank_id": "b",
        "policy": scenario_pb2.Policy(primary=scenario_pb2.PolicyDocument(text="THE POLICY")),
        "messages": messages or (OPENING,),
        "resolution_options": resolution_options(),
    }
    return agent_pb2.RespondRequest(**{**given, **fields})


def agent(mode: MemoryMode, model: Model, bank: Bank, **settings: Any) -> PolicyBankAgent:
    config = AgentConfig(model_url="http://m", model="m", memory=mode, bank_target="b", **settings)
    return PolicyBankAgent(model, agent_pb2.Sampling(max_tokens=9), bank, config)


async def play(
    mode: MemoryMode, model: Model, bank: Bank, turns: Sequence[Callable[[], ep.Message]], **settings: Any
) -> list[agent_pb2.RespondResponse]:
    """Respond, append the answer and a turn, and so on."""
    player, messages, continuation = agent(mode, model, bank, **settings), [OPENING], b""
    answers = []
    for turn in (*turns, None):
        response = await player.respond(request(*messages, continuation=continuation), 9.0)
        answers.append(response)
        continuation = response.continuation
        messages.append(response.message)
        if turn is not None:
            messages.append(turn())
    return answers


def said(text: str) -> Callable[[], ep.Message]:
    return lambda: ep.Message(role=CUSTOMER, content=text)


def found(content: str) -> Callable[[], ep.Message]:
    return lambda: ep.Message(role=TOOL, content=content, tool_call_id="c10", tool_name="look_up")


def is_prefix(first: ChatRequest, second: ChatRequest) -> bool:
    """Whether the second prompt begins with the first: what was sent once is sent the same way again."""
    messages = list(first.messages)
    return list(second.messages)[: len(messages)] == messages and json.dumps(
        first.tools, default=repr
    ) == json.dumps(second.tools, default=repr)


class TestRetrieve:
    async def test_headers_then_entries_then_an_answer(self) -> None:
        model = Model(
            [("retrieve_policy", "{}")],
            [("retrieve_policy", '{"capability_ids": ["refund", "no such", "refund"]}')],
            "Here is your money.",
        )
        bank = Bank()
        (response,) = await play("retrieve", model, bank, [])
        assert bank.read == [("headers", "b"), ("specs", "b", ["refund", "no such"])]
        assert response.message == ep.Message(role=AGENT, content="Here is your money.")
        assert list(response.consulted_spec_ids) == ["refund"]
        assert (response.usage.model_calls, response.usage.prompt_tokens) == (3, 30)
        assert response.usage.latency_seconds == 1.5
        assert not response.usage.HasField("completion_tokens")
        headers, specs = (json.loads(model.asked[-1].messages[at]["content"]) for at in (3, 5))
        assert headers["entries"][0] == {"capability_id": "refund", "header": "About refunds"}
        assert specs == {
            "entries": [{"capability_id": "refund", "entry": "About refunds\nACTION: Pay back."}],
            "unknown_capability_ids": ["no such"],
        }

    async def test_what_was_looked_up_stays_in_the_conversation(self) -> None:
        model = Model(
            [("retrieve_policy", "{}")],
            [("look_up", "{}")],
            "It will take a day.",
            [("retrieve_policy", '{"capability_ids": ["other"]}')],
            "Goodbye.",
        )
        answers = await play("retrieve", model, Bank(), [found("{}"), said("And now?")])
        assert [each.name for each in answers[0].message.tool_calls] == ["look_up"]
        assert all(is_prefix(*pair) for pair in zip(model.asked, model.asked[1:], strict=False))
        assert [list(each.consulted_spec_ids) for each in answers] == [[], [], ["other"]]
        roles = [message["role"] for message in model.asked[-1].messages]
        assert roles == [
            "system", "user", "assistant", "tool", "assistant", "tool", "assistant", "user", "assistant",
            "tool",
        ]  # fmt: skip

    async def test_a_call_beside_a_look_up_is_put_off(self) -> None:
        model = Model([("pay", '{"amount": 5}'), ("retrieve_policy", "{}")], "Wait.")
        (response,) = await play("retrieve", model, Bank(), [])
        assert not response.message.tool_calls
        results = {each["tool_call_id"]: each["content"] for each in model.asked[1].messages[3:]}
        assert "not executed" in results["c10"]
        assert "refund" in results["c11"]

    @pytest.mark.parametrize(
        ("arguments", "problem"),
        [
            ("{", "are not JSON"),
            ("[]", "not a JSON object"),
            ('{"capability_ids": "refund"}', "must be a list of texts"),
            ('{"capability_ids": [1]}', "must be a list of texts"),
        ],
    )
    async def test_arguments_that_cannot_be_used_are_told(self, arguments: str, problem: str) -> None:
        model, bank = Model([("retrieve_policy", arguments)], "Sorry."), Bank()
        await play("retrieve", model, bank, [])
        assert problem in model.asked[1].messages[3]["content"]
        assert bank.read == []

    @pytest.mark.parametrize(
        "arguments", ["", "null", "{}", '{"capability_ids": null}', '{"capability_ids": []}']
    )
    async def test_no_ids_ask_for_the_headers(self, arguments: str) -> None:
        bank = Bank()
        await play("retrieve", Model([("retrieve_policy", arguments)], "Well."), bank, [])
        assert bank.read == [("headers", "b")]

    async def test_looking_up_without_end_goes_out_as_it_is(self) -> None:
        """It is what the model did, so it is scored; it is no error of the service."""
        model, bank = Model(*[[("retrieve_policy", "{}")]] * 4), Bank()
        (response,) = await play("retrieve", model, bank, [], retrieval_rounds=3)
        assert [each.name for each in response.message.tool_calls] == ["retrieve_policy"]
        assert len(bank.read) == 3
        assert response.usage.model_calls == 4

    async def test_a_prompt_that_overflows_after_a_look_up_is_an_answer(self) -> None:
        model = Model([("retrieve_policy", "{}")], ContextOverflow("full"))
        (response,) = await play("retrieve", model, Bank(), [])
        assert response.finish_reason == ep.FINISH_REASON_CONTEXT_OVERFLOW
        assert response.usage.model_calls == 2

    async def test_the_tool_and_its_guide_are_offered(self) -> None:
        model = Model("Hello.")
        await play("retrieve", model, Bank(), [])
        assert model.asked[0].tools[0]["function"]["name"] == "retrieve_policy"
        assert "## Your policy bank" in model.asked[0].messages[0]["content"]

    async def test_a_revision_that_is_named_is_the_one_that_is_read(self) -> None:
        bank = Bank()
        model = Model(
            [("retrieve_policy", "{}")], [("retrieve_policy", '{"capability_ids": ["refund"]}')], "A"
        )
        await agent("retrieve", model, bank).respond(request(bank_revision=3), 9.0)
        for mode in ("full", "static_start", "static_turn"):
            await agent(mode, Model("A"), bank).respond(request(bank_revision=3), 9.0)
        assert [each[1] for each in bank.read] == ["b@3"] * 5


class TestStatic:
    async def test_at_the_start_it_recalls_once_for_the_first_message(self) -> None:
        model, bank = Model("When?", "Fine."), Bank()
        answers = await play("static_start", model, bank, [said("Yesterday.")], recall_limit=2)
        assert bank.read == [("recall", "b", OPENING.content, 2)]
        assert f"NEAR {OPENING.content}" in model.asked[0].messages[0]["content"]
        assert is_prefix(*model.asked)
        assert [list(each.consulted_spec_ids) for each in answers] == [[f"near {OPENING.content}"], []]

    async def test_after_every_turn_it_recalls_as_if_it_had_looked_up(self) -> None:
        model, bank = Model([("look_up", "{}")], "When?", "Fine."), Bank()
        answers = await play("static_turn", model, bank, [found("{}"), said("Yesterday.")])
        assert [each[2] for each in bank.read] == [OPENING.content, "Yesterday."]
        messages = model.asked[-1].messages
        roles = "system user assistant tool assistant tool assistant user assistant tool"
        assert [message["role"] for message in messages] == roles.split()
        for user, answer in ((1, 3), (7, 9)):
            assert messages[answer]["content"].endswith(f"NEAR {messages[user]['content']}")
            assert messages[answer]["tool_call_id"] == messages[answer - 1]["tool_calls"][0]["id"]
        assert all(is_prefix(*pair) for pair in zip(model.asked, model.asked[1:], strict=False))
        assert not any(call.name == "recall_memory" for each in answers for call in each.message.tool_calls)

    async def test_all_entries_are_in_the_prompt(self) -> None:
        model, bank = Model("When?", "Fine."), Bank()
        answers = await play("full", model, bank, [said("Yesterday.")])
        assert bank.read == [("everything", "b")]
        assert "About refunds\n\nAbout the rest" in model.asked[1].messages[0]["content"]
        assert list(answers[0].consulted_spec_ids) == ["refund", "other"]

    async def test_an_empty_bank_adds_nothing(self) -> None:
        class Empty(Bank):
            entries = ()

        model, bank = Model("When?", "Fine."), Empty()
        await play("full", model, bank, [said("Yesterday.")])
        assert bank.read == [("everything", "b")]
        assert "What you remember" not in model.asked[1].messages[0]["content"]

    async def test_a_retry_of_a_call_is_answered_alike(self) -> None:
        player = agent("static_turn", Model("A", "A"), Bank())
        first, second = [await player.respond(request(), 9.0) for _ in range(2)]
        assert first == second


class TestSettings:
    async def test_the_policy_can_be_left_out_of_the_prompt(self) -> None:
        texts = []
        for shown in (True, False):
            model = Model("Hello.")
            await play("full", model, Bank(), [], policy_in_prompt=shown)
            texts.append("THE POLICY" in model.asked[0].messages[0]["content"])
        assert texts == [True, False]

    async def test_the_description_tells_how_the_bank_is_used(self) -> None:
        info = await agent("full", Model(), Bank(), policy_in_prompt=False).info(9)
        assert (info.variant, info.memory_mode, info.policy_withheld) == ("policybank", "full", True)
        other = await agent("full", Model(), Bank(), recall_limit=3).info(9)
        assert info.prompt_digest != other.prompt_digest
        with pytest.raises(ServiceUnavailable):
            await agent("full", Model(), Bank(ServiceUnavailable("down"))).info(9)

    @pytest.mark.parametrize(
        ("settings", "problem"),
        [
            ({"memory": "retrieve"}, "memory retrieve needs --bank-target"),
            ({"bank_target": "b"}, "need a memory"),
            ({"policy_in_prompt": False}, "need a memory"),
        ],
    )
    def test_settings_that_do_not_go_together(self, settings: dict[str, Any], problem: str) -> None:
        with pytest.raises(InputError, match=problem):
            AgentConfig(model_url="http://m", model="m", **settings).check()


class TestRefusals:
    async def test_a_request_without_a_bank(self) -> None:
        with pytest.raises(InputError, match="bank_id must not be empty: this agent's memory_mode is full"):
            await agent("full", Model(), Bank()).respond(request(bank_id=""), 9.0)

    @pytest.mark.parametrize("continuation", [b"x", b"{}", b"[]", b'{"system": "", "exchanges": []}'])
    async def test_a_continuation_of_somebody_else(self, continuation: bytes) -> None:
        with pytest.raises(InputError, match="continuation is not one of this agent's"):
            await agent("full", Model(), Bank()).respond(request(continuation=continuation), 9.0)

    @pytest.mark.parametrize("error", [BankNotFound("no bank"), ServiceUnavailable("down")])
    async def test_a_bank_that_cannot_be_read_is_no_answer(self, error: Exception) -> None:
        for mode in ("static_start", "full", "static_turn"):
            with pytest.raises(type(error)):
                await play(mode, Model("x"), Bank(error), [])

    async def test_a_tool_of_the_same_name(self) -> None:
        tool = ep.ToolDefinition(name="retrieve_policy", parameters_json="{}")
        with pytest.raises(InputError, match=r"tools\[0\]\.name 'retrieve_policy'"):
            await agent("retrieve", Model("x"), Bank()).respond(request(tools=[tool]), 9.0)
