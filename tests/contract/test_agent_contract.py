"""The contract of AgentService, as any agent has to keep it.

    pytest tests/contract --agent-target HOST:PORT

A call is answered, or refused with a code that says why; never with a crash, and never out of memory of
another conversation. What the project promises for its own agents alone is marked as such.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from policysweep.domains.returns.environment import agent_tools
from policysweep.domains.returns.resolution import resolution_options
from policysweep.v1 import agent_pb2, scenario_pb2
from policysweep.v1 import episode_pb2 as ep
from tests.contract.conftest import Target

SERVICE = "policysweep.v1.AgentService"
RESPOND = f"/{SERVICE}/Respond"
MAX_STEPS = 40
ORDER_ID = "ORD-104-204511"
ORDER = {
    "status": "ok",
    "order_id": ORDER_ID,
    "customer_id": "CUST-40738115",
    "placed_at": "2026-01-03",
    "today": "2026-01-27",
    "items": [
        {
            "item_id": "I-003-1",
            "product_id": "P-003-1",
            "name": "Enameled Dutch Oven, 5 qt",
            "category": "Home, kitchen, and garden",
            "quantity": 1,
            "unit_price": 148.0,
            "currency": "USD",
            "seller": {"name": "Merrowick", "type": "first_party", "fulfilled_by": "merrowick"},
            "tags": [],
            "return_window_days_on_listing": None,
        }
    ],
    "delivery_dates": [
        {
            "shipment_id": "S-003-1",
            "carrier_status": "delivered",
            "items": ["I-003-1"],
            "delivered_at": "2026-01-08",
        }
    ],
    "promotions": [],
    "payment": {"method": "credit_card", "amount": 148.0, "paid_back": 0.0, "refunds": []},
}


def customer(text: str) -> ep.Message:
    return ep.Message(role=ep.ROLE_CUSTOMER, content=text)


OPENING = customer(
    f"My order number is {ORDER_ID}. I would like to send the Dutch oven back: it is too heavy."
)


def asked(*messages: ep.Message, **fields: Any) -> agent_pb2.RespondRequest:
    """A request as the simulator makes it."""
    defaults: dict[str, Any] = {
        "episode_id": "contract-1",
        "policy": scenario_pb2.Policy(
            primary=scenario_pb2.PolicyDocument(
                text="Items may be sent back within 30 days of delivery if they are unused."
            )
        ),
        "case_brief": "Customer asks to return a Dutch oven.",
        "tools": agent_tools(),
        "messages": messages or (OPENING,),
        "resolution_options": resolution_options(),
        "agent_persona": ep.AGENT_PERSONA_FAIR,
        "seed": 7,
    }
    return agent_pb2.RespondRequest(**{**defaults, **fields})


def looked_up(
    content: str = json.dumps(ORDER), status: ep.ToolStatus.ValueType = ep.TOOL_STATUS_OK, text: str = ""
) -> tuple[ep.Message, ep.Message]:
    """An agent message that looks the order up, and the result."""
    call = ep.ToolCall(id="call-1", name="get_order_details", arguments_json=f'{{"order_id": "{ORDER_ID}"}}')
    result = ep.Message(
        role=ep.ROLE_TOOL, content=content, tool_call_id=call.id, tool_name=call.name, tool_status=status
    )
    return ep.Message(role=ep.ROLE_AGENT, content=text, tool_calls=[call]), result


def check(request: agent_pb2.RespondRequest, response: agent_pb2.RespondResponse) -> None:
    """What holds for every answer."""
    message = response.message
    assert message.role == ep.ROLE_AGENT
    assert (message.tool_call_id, message.tool_name) == ("", ""), "an agent message is not a tool result"
    assert message.tool_status == ep.TOOL_STATUS_UNSPECIFIED
    assert response.finish_reason in ep.FinishReason.values()
    ids = [call.id for call in message.tool_calls]
    before = {call.id for turn in request.messages for call in turn.tool_calls}
    assert all(ids), "a call without an id"
    assert len(set(ids) - before) == len(ids), "the id of a call is used twice in the episode"
    if response.HasField("resolution"):
        offered = {option.outcome for option in request.resolution_options}
        assert response.resolution.outcome in offered
        assert response.resolution.description
    if response.finish_reason == ep.FINISH_REASON_CONTEXT_OVERFLOW:
        assert message == ep.Message(role=ep.ROLE_AGENT), "nothing can have been written"


def answer(target: Target, request: agent_pb2.RespondRequest) -> agent_pb2.RespondResponse:
    response = target.respond(request)
    check(request, response)
    return response


def said(response: agent_pb2.RespondResponse) -> bytes:
    """An answer without what may differ between two times: tokens and time."""
    copy = agent_pb2.RespondResponse()
    copy.CopyFrom(response)
    copy.ClearField("usage")
    return copy.SerializeToString(deterministic=True)


def refusal(call: Callable[[], object]) -> grpc.StatusCode:
    with pytest.raises(grpc.RpcError) as caught:
        call()
    error: Any = caught.value  # also a grpc.Call, which the published types do not know
    assert error.details(), "a refusal says why"
    code: grpc.StatusCode = error.code()
    return code


class TestServer:
    def test_health(self, target: Target) -> None:
        stub: Any = health_pb2_grpc.HealthStub(target.channel)
        for service in ("", SERVICE):
            status = stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=target.timeout).status
            assert status == health_pb2.HealthCheckResponse.SERVING

    def test_reflection_lists_the_service(self, target: Target) -> None:
        stub: Any = reflection_pb2_grpc.ServerReflectionStub(target.channel)
        request = reflection_pb2.ServerReflectionRequest(list_services="")
        try:
            (response,) = stub.ServerReflectionInfo(iter([request]), timeout=target.timeout)
        except grpc.RpcError as error:
            if target.ours or error.code() is not grpc.StatusCode.UNIMPLEMENTED:
                raise
            pytest.skip("no reflection: recommended, not required")
        listed = {service.name for service in response.list_services_response.service}
        assert SERVICE in listed

    def test_a_call_without_deadline_is_refused(self, target: Target) -> None:
        if not target.ours:
            pytest.skip("refusing calls without a deadline is recommended, not required")
        codes = {
            refusal(lambda: target.stub().Respond(asked())),
            refusal(lambda: target.stub().GetAgentInfo(agent_pb2.GetAgentInfoRequest())),
        }
        assert codes == {grpc.StatusCode.INVALID_ARGUMENT}


class TestInfo:
    def test_complete(self, target: Target) -> None:
        info = target.info()
        assert info.variant
        assert info.model
        assert info.version
        assert re.fullmatch(r"[0-9a-f]{64}", info.prompt_digest)
        assert info.memory_mode in {"none", "static_start", "static_turn", "retrieve", "full"}
        assert "://" not in str(info), "an address does not belong into a manifest"

    def test_stable(self, target: Target) -> None:
        first = target.info()
        answer(target, asked())
        assert target.info() == first

    def test_rehearsal_is_told_alike(self, target: Target) -> None:
        assert answer(target, asked()).rehearsal == target.info().rehearsal


class TestAnswers:
    def test_the_opening(self, target: Target) -> None:
        response = answer(target, asked())
        assert response.message.content or response.message.tool_calls or response.HasField("resolution")

    @pytest.mark.parametrize("persona", ep.AgentPersona.values())
    def test_every_persona(self, target: Target, persona: ep.AgentPersona.ValueType) -> None:
        answer(target, asked(agent_persona=persona))

    @pytest.mark.parametrize(
        ("status", "content"),
        [
            (ep.TOOL_STATUS_OK, json.dumps(ORDER)),
            (ep.TOOL_STATUS_OK, "{}"),
            (ep.TOOL_STATUS_OK, "not JSON at all"),
            (ep.TOOL_STATUS_OK, ""),
            (ep.TOOL_STATUS_ERROR, '{"status": "error", "error": "There is no such order."}'),
            (
                ep.TOOL_STATUS_VERIFICATION_REQUIRED,
                '{"status": "verification_required", "message": "Ask first.", "questions": ["Opened?"]}',
            ),
            (
                ep.TOOL_STATUS_ALREADY_CALLED,
                '{"status": "already_called", "message": "Its result stands.", "earlier_call_id": "c"}',
            ),
        ],
        ids=["ok", "empty object", "not JSON", "empty", "error", "verification", "already called"],
    )
    def test_every_kind_of_tool_result(
        self, target: Target, status: ep.ToolStatus.ValueType, content: str
    ) -> None:
        answer(target, asked(OPENING, *looked_up(content, status)))

    def test_its_own_mistakes_in_the_history(self, target: Target) -> None:
        """A malformed call, an unknown tool and an empty message are results; the next answer must come."""
        calls = [
            ep.ToolCall(id="a", name="get_order_details", arguments_json='{"order_id": '),
            ep.ToolCall(id="b", name="no such tool!", arguments_json="[1]"),
            ep.ToolCall(id="c", name="", arguments_json=""),
        ]
        results = [
            ep.Message(
                role=ep.ROLE_TOOL,
                content='{"status": "error"}',
                tool_call_id=call.id,
                tool_name=call.name,
                tool_status=ep.TOOL_STATUS_ERROR,
            )
            for call in calls
        ]
        agent = ep.Message(role=ep.ROLE_AGENT, tool_calls=calls)
        empty = ep.Message(role=ep.ROLE_AGENT)
        answer(target, asked(OPENING, agent, *results, empty, customer("Hello? Are you there?")))

    @pytest.mark.parametrize(
        "text",
        [
            "Größe 42, 返品したい, أريد إرجاعه, \U0001f469\u200d\U0001f373",
            "one\u2028two\u2029three\x85four",
            "\x00\x01\x1b[31m\ufeff\u202e",
            'quotes " \\ { } </s> <|im_end|> [INST] {{ jinja }} %s',
            " ",
        ],
        ids=["scripts", "separators", "control", "markup", "blank"],
    )
    def test_any_text(self, target: Target, text: str) -> None:
        answer(target, asked(customer(f"{OPENING.content} {text}"), *looked_up(json.dumps({"note": text}))))

    @pytest.mark.parametrize("kind", ["customer", "tool", "many"])
    def test_large_conversations(self, target: Target, kind: str) -> None:
        """One message of 1 MB; 6 MB in all, which gRPC's own default limit of 4 MiB would refuse."""
        megabyte = "lorem ipsum " * (1 << 16)
        history = {
            "customer": [customer(OPENING.content + megabyte)],
            "tool": [OPENING, *looked_up(json.dumps({"note": megabyte}))],
            "many": [OPENING, *looked_up(), *[customer(megabyte[: 1 << 16])] * 96],
        }[kind]
        answer(target, asked(*history))

    def test_no_tools_and_nothing_to_declare(self, target: Target) -> None:
        answer(target, asked(tools=(), resolution_options=()))


class TestRefusals:
    def test_an_empty_conversation(self, target: Target) -> None:
        code = refusal(lambda: target.respond(asked(messages=())))
        assert code is grpc.StatusCode.INVALID_ARGUMENT

    def test_a_bank_without_memory(self, target: Target) -> None:
        """Answering without it would record the result of another experiment."""
        if target.info().memory_mode != "none":
            pytest.skip("this agent has a memory")
        code = refusal(lambda: target.respond(asked(bank_id="bank-1")))
        assert code is grpc.StatusCode.FAILED_PRECONDITION

    def test_after_a_refusal_it_goes_on(self, target: Target) -> None:
        refusal(lambda: target.respond(asked(messages=())))
        answer(target, asked())


class TestStatelessness:
    longer = (OPENING, *looked_up(text="Let me look."), customer("It was used once. What now?"))

    def test_the_same_request_twice_and_in_any_order(self, target: Target) -> None:
        requests = [asked(*self.longer[:length], step=length // 2) for length in (1, 3, 4)]
        forward = [answer(target, request) for request in requests]
        backward = [answer(target, request) for request in reversed(requests)][::-1]
        if target.info().model == "rules" or target.info().rehearsal:
            assert list(map(said, forward)) == list(map(said, backward))

    def test_nothing_of_one_conversation_reaches_another(self, target: Target) -> None:
        canary = "ORD-987-654321"
        note = json.dumps({**ORDER, "order_id": canary, "note": f"belongs to {canary}"})
        answer(target, asked(customer(f"It is about {canary}."), *looked_up(note), episode_id="other"))
        response = answer(target, asked(customer("Hello, I want to return something."), episode_id="this"))
        assert canary not in str(response)
        assert ORDER_ID not in str(response), "of an earlier test"

    def test_concurrent_calls(self, target: Target) -> None:
        requests = [asked(*self.longer[: 1 + index % 2 * 2], episode_id=f"c-{index}") for index in range(32)]
        with ThreadPoolExecutor(32) as pool:
            for request, response in zip(requests, pool.map(target.respond, requests), strict=True):
                check(request, response)

    def test_a_cancelled_call_harms_no_other(self, target: Target) -> None:
        calls = [target.stub().Respond.future(asked(), timeout=target.timeout) for _ in range(8)]
        for call in calls:
            call.cancel()
        assert all(call.cancelled() or call.done() for call in calls)
        answer(target, asked())


def test_fields_of_a_newer_client_are_tolerated(target: Target) -> None:
    newer = asked().SerializeToString() + b"\xc2\x3e\x05hello"  # field 1000, five bytes
    method = target.channel.unary_unary(
        RESPOND, request_serializer=bytes, response_deserializer=agent_pb2.RespondResponse.FromString
    )
    check(asked(), method(newer, timeout=target.timeout))


@dataclass
class ScriptedCustomer:
    """Answers every question at once, agrees to everything, and presses for an end."""

    lines: Iterator[str] = field(
        default_factory=lambda: iter(
            [
                "It is the Dutch oven, nothing else. I used it once, and it has a faint mark inside.",
                "Yes, I agree. Please go ahead.",
                "Fine, do it that way.",
            ]
        )
    )

    def reply(self) -> str:
        return next(self.lines, "Please decide now, whichever way, and close the case.")


def converse(
    target: Target, options: Sequence[agent_pb2.ResolutionOption]
) -> tuple[ep.Resolution | None, list[ep.Message]]:
    """Play until a resolution is accepted or MAX_STEPS answers were given. Every tool says that it worked."""
    request = asked(resolution_options=options)
    scripted = ScriptedCustomer()
    for step in range(MAX_STEPS):
        request.step = step
        response = answer(target, request)
        request.continuation = response.continuation
        request.messages.append(response.message)
        for call in response.message.tool_calls:
            content = json.dumps(ORDER if call.name == "get_order_details" else {"status": "ok"})
            request.messages.add(
                role=ep.ROLE_TOOL,
                content=content,
                tool_call_id=call.id,
                tool_name=call.name,
                tool_status=ep.TOOL_STATUS_OK,
            )
        if response.HasField("resolution"):
            return response.resolution, list(request.messages)
        if not response.message.tool_calls:
            request.messages.append(customer(scripted.reply()))
    return None, list(request.messages)


class TestConversation:
    def test_from_the_opening_to_a_resolution(self, target: Target) -> None:
        resolution, messages = converse(target, resolution_options())
        assert resolution is not None, f"no resolution after {MAX_STEPS} answers"
        assert any(call.name == "get_order_details" for turn in messages for call in turn.tool_calls)

    def test_only_what_is_offered_is_declared(self, target: Target) -> None:
        """`check` holds every answer to the options of its request."""
        for option in resolution_options():
            converse(target, [option])

    def test_without_options_nothing_is_declared(self, target: Target) -> None:
        resolution, _ = converse(target, ())
        assert resolution is None
