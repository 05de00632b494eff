from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from policysweep.domains.returns import toolset
from policysweep.domains.returns.arguments import GetProductInfo
from policysweep.domains.returns.environment import ErrorKind, agent_tools
from policysweep.domains.returns.resolution import RESOLUTION_TOOL
from policysweep.domains.returns.toolset import AGENT_TOOLS, CUSTOMER_TOOLS, ReadTool
from policysweep.errors import ToolFault
from policysweep.v1 import episode_pb2

from .support import ALREADY, ERROR, OK, VERIFY, Conversation, return_of

OWN = {"order_id": "current", "customer_id": "current"}
BROKEN = [
    "{",
    "None",
    "null",
    "[]",
    '"text"',
    "1",
    '{"order_id": "ORD-1"',
    '{"order_id": "ORD-1"} trailing',
    '{"order_id": "\\ud800"}',
    '{"order_id": {"}": "{"}}',
    '{"order_id": NaN}',
    "[" * 5000,
    "{'order_id': 'ORD-1'}",
]


@pytest.mark.parametrize("text", BROKEN)
def test_arguments_that_cannot_be_read_are_malformed(text: str) -> None:
    outcome = Conversation().raw("get_order_details", text)
    assert (outcome.status, outcome.error_kind) == (ERROR, ErrorKind.MALFORMED)
    problem = json.loads(outcome.content)["problems"][0]
    assert problem.keys() == {"field", "problem"}


def test_no_text_stands_for_no_arguments() -> None:
    talk = Conversation()
    for text in ("", "  \n"):
        assert talk.raw("customer_inspect_profile", text).status in (OK, ALREADY)
        required = talk.raw("get_order_details", text)
        assert json.loads(required.content)["problems"] == [
            {"field": "order_id", "problem": "Field required"}
        ]


def test_every_problem_names_its_field() -> None:
    request = return_of(("I-1", 0, "new"), surprise=1)
    outcome = Conversation().outcome("process_return", **OWN, **request)
    fields = [problem["field"] for problem in json.loads(outcome.content)["problems"]]
    assert fields == ["items_to_return[0].quantity", "items_to_return[0].condition", "surprise"]


@pytest.mark.parametrize("amount", ["NaN", "Infinity", "-1", "0", "0.001", "1e9", '"12 dollars"', "[1]"])
def test_amounts_are_positive_and_exact(amount: str) -> None:
    text = (
        '{"order_id":"current","customer_id":"current","refund_type":"goodwill",'
        f'"refund_method":"gift_card","refund_reason":"x","amount":{amount}}}'
    )
    assert Conversation().raw("issue_refund", text).error_kind is ErrorKind.MALFORMED


def test_braces_and_unicode_in_strings_are_text() -> None:
    talk = Conversation()
    reason = 'größer } als { "gedacht" 🧵'
    shown = talk.give_back(("I-1", 1, "opened_used"), return_reason=reason)["return"]
    assert shown["reason"] == reason


def test_unknown_tools_are_named_with_the_known_ones() -> None:
    outcome = Conversation().outcome("refund_everything{}")
    assert outcome.error_kind is ErrorKind.UNKNOWN_TOOL
    assert json.loads(outcome.content)["tools"] == [tool.name for tool in agent_tools()]
    talk = Conversation()
    call = episode_pb2.ToolCall(id="c", name="get_order_details", arguments_json="{}")
    assert talk.environment.call_customer_tool(call, statements=1).error_kind is ErrorKind.UNKNOWN_TOOL


def test_a_resolution_is_no_tool_call() -> None:
    talk = Conversation()
    bad = talk.outcome(RESOLUTION_TOOL, resolution_type="REFUND")
    good = talk.outcome(RESOLUTION_TOOL, resolution_type="DENY_REFUND", description="late")
    assert {bad.error_kind, good.error_kind} == {ErrorKind.MALFORMED}
    assert "resolution_type" in bad.content
    assert "resolution field" in good.content
    assert not talk.environment.writes()


def test_a_retried_call_id_gets_the_stored_answer() -> None:
    talk = Conversation()
    request = {**OWN, **return_of(("I-1", 1, "opened_used"))}
    first = talk.outcome("process_return", "retry", **request)
    respelled = json.dumps({**request, "order_id": " ord-1 "}, indent=2).replace(
        '"quantity": 1', '"quantity": "1.0"'
    )
    assert talk.raw("process_return", respelled, "retry") == first
    assert len(talk.environment.writes()) == 1
    reused = talk.outcome("process_return", "retry", **OWN, **return_of(("I-1", 2, "opened_used")))
    assert reused.error_kind is ErrorKind.REFUSED
    assert talk.outcome("get_order_details", "retry", order_id="current").error_kind is ErrorKind.REFUSED
    assert len(talk.environment.writes()) == 1


def test_a_retry_does_not_pass_verification() -> None:
    talk = Conversation()
    request = {**OWN, **return_of(("I-1", 1, "unopened"))}
    first = talk.outcome("process_return", "a", **request)
    talk.statements += 1
    assert (first.status, talk.outcome("process_return", "a", **request)) == (VERIFY, first)


def test_a_read_is_not_repeated_while_the_order_is_unchanged() -> None:
    talk = Conversation()
    talk.outcome("get_order_details", "first", order_id="ORD-1")
    repeated = talk.raw("get_order_details", '{"detail_type": "full", "order_id": "current"}')
    assert repeated.status == ALREADY
    assert json.loads(repeated.content)["earlier_call_id"] == "first"
    talk.statements += 1
    assert talk.outcome("get_order_details", order_id="ORD-1").status == ALREADY
    talk.own("apply_discount", discount_type="free_shipping")
    assert talk.outcome("get_order_details", order_id="ORD-1").status == OK


def test_a_successful_write_is_never_repeated() -> None:
    talk = Conversation()
    request = {**OWN, "refund_type": "goodwill", "refund_method": "gift_card", "refund_reason": "sorry"}
    assert talk.outcome("issue_refund", **request, amount=5).status == OK
    talk.own("apply_discount", discount_type="free_shipping")
    talk.statements += 5
    assert talk.outcome("issue_refund", **request, amount="5.00").status == ALREADY
    assert talk.outcome("issue_refund", **request, amount=5.01).status == OK


def test_a_refused_call_waits_for_the_customer_or_a_change() -> None:
    talk = Conversation()
    request = {**OWN, "refund_type": "full", "refund_method": "gift_card", "refund_reason": "x"}
    lines = {"items": [{"item_id": "I-2"}]}
    assert talk.outcome("issue_refund", **request, **lines).status == ERROR
    assert talk.outcome("issue_refund", **request, **lines).status == ALREADY
    talk.statements += 1
    assert talk.outcome("issue_refund", **request, **lines).status == ERROR
    talk.give_back(("I-2", 1, "defective"), kind="RETURN_REFUND_PARTIAL_BANK")
    assert talk.outcome("issue_refund", **request, **lines).status == OK


def test_both_sides_keep_their_own_calls() -> None:
    talk = Conversation()
    assert talk.outcome("get_order_details", "same", order_id="current").status == OK
    assert talk.outcome("customer_view_order_details", "same", order_id="current").status == OK


def test_a_fault_of_a_tool_never_looks_like_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(desk: toolset.Desk, arguments: GetProductInfo) -> dict[str, Any]:
        raise KeyError("stock")

    tool = ReadTool("get_product_info", "", GetProductInfo, run=broken)
    monkeypatch.setitem(AGENT_TOOLS, "get_product_info", tool)
    with pytest.raises(ToolFault, match="get_product_info failed: KeyError") as caught:
        Conversation().outcome("get_product_info", product_id="P-1")
    assert isinstance(caught.value.__cause__, KeyError)


def test_definitions_are_complete_plain_and_stable() -> None:
    tools = agent_tools()
    assert (len(tools), len(CUSTOMER_TOOLS)) == (11, 5)
    assert agent_tools() is tools
    required = {tool.name: json.loads(tool.parameters_json).get("required", []) for tool in tools}
    own = ["order_id", "customer_id"]
    assert required == {
        "get_product_info": [],
        "get_order_details": ["order_id"],
        "check_inventory": ["product_id"],
        "get_purchase_history": ["customer_id"],
        "get_policy_info": ["policy_type"],
        "get_return_frequency_assessment": ["customer_id"],
        "update_order": [*own, "update_type"],
        "process_return": [*own, "resolution_type", "items_to_return", "return_reason"],
        "process_exchange": [*own, "items_to_exchange", "exchange_reason"],
        "issue_refund": [*own, "refund_type", "refund_method", "refund_reason"],
        "apply_discount": [*own, "discount_type"],
    }
    for tool in (*tools, *toolset.definitions(CUSTOMER_TOOLS)):
        assert tool.description
        for forbidden in ("$ref", "$defs", "anyOf", '"title"', "null"):
            assert forbidden not in tool.parameters_json
    assert toolset.definitions(AGENT_TOOLS) == tools


def test_every_argument_is_described() -> None:
    def properties(schema: dict[str, Any], check: Callable[[dict[str, Any]], None]) -> None:
        for field in schema.get("properties", {}).values():
            check(field)
            properties(field.get("items", field), check)

    def described(field: dict[str, Any]) -> None:
        assert field["description"]
        assert field["type"]

    for tool in (*agent_tools(), *toolset.definitions(CUSTOMER_TOOLS)):
        properties(json.loads(tool.parameters_json), described)
