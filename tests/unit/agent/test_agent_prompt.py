"""The prompt: what it holds, in which order, and that nothing already sent is ever rewritten."""

from __future__ import annotations

from typing import Any, cast

import orjson
import pytest

from policysweep.domains.returns.resolution import RESOLUTION_TOOL, resolution_options
from policysweep.errors import InputError
from policysweep.v1 import agent_pb2, scenario_pb2
from policysweep.v1 import episode_pb2 as ep
from services.agent.prompt import PERSONAS, PROMPT_DIGEST, RULES, chat_messages, offered_tools, system_text

LOOK_UP = ep.ToolDefinition(
    name="look_up",
    description="Looks an order up.",
    parameters_json='{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"string"}}}',
)


def asked(*messages: ep.Message, **fields: Any) -> agent_pb2.RespondRequest:
    defaults: dict[str, Any] = {
        "policy": scenario_pb2.Policy(
            primary=scenario_pb2.PolicyDocument(text="PRIMARY"),
            related=[
                scenario_pb2.PolicyDocument(text="SECOND"),
                scenario_pb2.PolicyDocument(url="u", text="THIRD"),
            ],
        ),
        "case_brief": "BRIEF",
        "agent_persona": ep.AGENT_PERSONA_FAIR,
        "messages": messages or (customer("hello"),),
        "tools": [LOOK_UP],
        "resolution_options": resolution_options(),
    }
    return agent_pb2.RespondRequest(**{**defaults, **fields})


def customer(text: str) -> ep.Message:
    return ep.Message(role=ep.ROLE_CUSTOMER, content=text)


def agent(text: str, *calls: ep.ToolCall) -> ep.Message:
    return ep.Message(role=ep.ROLE_AGENT, content=text, tool_calls=calls)


def result(call: ep.ToolCall, content: str) -> ep.Message:
    return ep.Message(role=ep.ROLE_TOOL, content=content, tool_call_id=call.id, tool_name=call.name)


def call(name: str, arguments: str, identifier: str = "c1") -> ep.ToolCall:
    return ep.ToolCall(id=identifier, name=name, arguments_json=arguments)


class TestSystemMessage:
    def test_what_is_shared_by_most_requests_comes_first(self) -> None:
        text = system_text(asked())
        parts = [RULES, "PRIMARY", "SECOND", "THIRD", PERSONAS[ep.AGENT_PERSONA_FAIR]]
        assert text.startswith(RULES)
        assert [text.index(part) for part in parts] == sorted(text.index(part) for part in parts)

    @pytest.mark.parametrize("persona", sorted(PERSONAS))
    def test_a_persona_changes_nothing_before_it(self, persona: int) -> None:
        fair, other = system_text(asked()), system_text(asked(agent_persona=persona))
        shared = fair.index("## How you are asked to behave")
        assert other[:shared] == fair[:shared]
        assert ep.AgentPersona.Name(cast(Any, persona)).removeprefix("AGENT_PERSONA_") + ": You are" in other

    def test_no_persona_leaves_no_heading(self) -> None:
        text = system_text(asked(agent_persona=ep.AGENT_PERSONA_UNSPECIFIED))
        assert text.endswith("THIRD")

    def test_the_case_changes_nothing_in_it(self) -> None:
        # Many chat templates put the tools behind it, which all scenarios should share.
        assert system_text(asked(case_brief="OTHER")) == system_text(asked(case_brief=""))

    def test_five_personas_told_apart(self) -> None:
        assert len(set(PERSONAS.values())) == len(PERSONAS) == 5

    def test_an_unknown_persona_is_refused(self) -> None:
        with pytest.raises(InputError, match="agent_persona is 9"):
            system_text(asked(agent_persona=9))

    def test_a_missing_policy_is_refused(self) -> None:
        with pytest.raises(InputError, match=r"policy\.primary\.text"):
            system_text(asked(policy=scenario_pb2.Policy()))


class TestTurns:
    def test_the_first_turn_tells_of_the_case(self) -> None:
        first = chat_messages(asked(customer("hi"), agent("yes?"), customer("so")))[1]["content"]
        assert first == "## This case\n\nBRIEF\n\n## The customer's first message\n\nhi"
        assert chat_messages(asked(customer("hi"), case_brief=""))[1]["content"] == "hi"

    def test_a_case_without_an_opening_of_the_customer_is_refused(self) -> None:
        with pytest.raises(InputError, match=r"messages\[0\]\.role must be CUSTOMER"):
            chat_messages(asked(agent("hello")))

    def test_roles_calls_and_results(self) -> None:
        looked_up = call("look_up", '{"a":"1"}')
        messages = chat_messages(
            asked(customer("hi"), agent("wait", looked_up), result(looked_up, '{"x":1}'), customer("so?"))
        )
        assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool", "user"]
        assert messages[2]["tool_calls"] == [
            {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": '{"a":"1"}'}}
        ]
        assert messages[3] == {"role": "tool", "tool_call_id": "c1", "content": '{"x":1}'}

    def test_a_longer_conversation_starts_with_the_shorter_one(self) -> None:
        bad = call(RESOLUTION_TOOL, "{", "c2")
        turns = [
            customer("hi"),
            agent("", call("look_up", "{broken"), bad),
            result(call("look_up", ""), "no"),
            result(bad, "unknown tool"),
            customer("\u2028\u2029\x00"),
            agent(""),
            customer("?"),
        ]
        whole = chat_messages(asked(*turns))
        for length in range(1, len(turns) + 1):
            assert chat_messages(asked(*turns[:length])) == whole[: length + 1]

    def test_an_empty_conversation_is_refused(self) -> None:
        with pytest.raises(InputError, match="messages must not be empty"):
            chat_messages(asked(messages=()))

    @pytest.mark.parametrize("role", [ep.ROLE_UNSPECIFIED, 9])
    def test_a_message_of_nobody_is_refused(self, role: Any) -> None:
        with pytest.raises(InputError, match=r"messages\[1\]\.role is [09]"):
            chat_messages(asked(customer("hi"), ep.Message(role=role)))


class TestRefusedDeclarations:
    def told(self, *calls: ep.ToolCall, **fields: Any) -> str:
        history = (customer("hi"), agent("", *calls), result(calls[0], "there is no such tool"))
        error: str = orjson.loads(chat_messages(asked(*history, **fields))[-1]["content"])["error"]
        return error

    def test_the_model_learns_what_was_wrong(self) -> None:
        told = self.told(call(RESOLUTION_TOOL, '{"resolution_type": "MAYBE"}'))
        assert "not accepted" in told
        assert "resolution_type" in told
        assert "description" in told

    def test_two_declarations(self) -> None:
        declared = '{"resolution_type": "DENY_REFUND", "description": "d"}'
        told = self.told(call(RESOLUTION_TOOL, declared), call(RESOLUTION_TOOL, declared, "c2"))
        assert "one message declares one outcome, not 2" in told

    def test_an_outcome_that_was_not_offered(self) -> None:
        declared = call(RESOLUTION_TOOL, '{"resolution_type": "DENY_REFUND", "description": "d"}')
        assert "DENY_REFUND is not among" in self.told(declared, resolution_options=resolution_options()[:1])


class TestTools:
    def test_the_contracts_tools_and_then_the_declaration(self) -> None:
        tools = orjson.loads(orjson.dumps(offered_tools(asked())))
        assert [tool["function"]["name"] for tool in tools] == ["look_up", RESOLUTION_TOOL]
        assert tools[0]["function"]["description"] == "Looks an order up."
        assert list(tools[0]["function"]["parameters"]["properties"]) == ["b", "a"]

    def test_only_the_outcomes_offered_can_be_declared(self) -> None:
        tools = orjson.loads(orjson.dumps(offered_tools(asked(resolution_options=resolution_options()[3:5]))))
        assert tools[-1]["function"]["parameters"]["properties"]["resolution_type"]["enum"] == [
            "DENY_REFUND",
            "REPLACEMENT_EXCHANGE",
        ]

    def test_nothing_to_declare_no_tool_for_it(self) -> None:
        assert len(offered_tools(asked(resolution_options=()))) == 1

    def test_equal_tools_are_converted_once(self) -> None:
        assert offered_tools(asked()) is offered_tools(asked(customer("another conversation")))

    @pytest.mark.parametrize(
        ("tools", "said"),
        [
            (
                [ep.ToolDefinition(name="f", parameters_json="{")],
                r"tools\[0\].parameters_json of f is not JSON",
            ),
            ([ep.ToolDefinition(name="f", parameters_json="")], "is not JSON"),
            ([ep.ToolDefinition(name="f", parameters_json="[]")], "is not a JSON object"),
            ([LOOK_UP, LOOK_UP], r"tools\[1\].name 'look_up'"),
            ([ep.ToolDefinition(parameters_json="{}")], r"tools\[0\].name ''"),
            ([ep.ToolDefinition(name=RESOLUTION_TOOL, parameters_json="{}")], "reserved"),
        ],
    )
    def test_what_no_server_would_take_is_refused(self, tools: list[ep.ToolDefinition], said: str) -> None:
        with pytest.raises(InputError, match=said):
            offered_tools(asked(tools=tools))


def test_the_digest_is_a_sha256() -> None:
    assert len(bytes.fromhex(PROMPT_DIGEST)) == 32
