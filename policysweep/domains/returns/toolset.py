"""The tools of an episode: name, what the model is told, what each takes, and what carries it out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from policysweep.domains.returns import (
    arguments as args,
)
from policysweep.domains.returns import (
    customer_tools,
    exchanging,
    paying,
    policy_text,
    products,
    reads,
    returning,
    updating,
)
from policysweep.domains.returns.paying import Written
from policysweep.domains.returns.results import Json, Refused
from policysweep.domains.returns.returning import Facts
from policysweep.domains.returns.schema import Arguments, tool_definition
from policysweep.domains.returns.state import OrderState
from policysweep.domains.returns.verification import Verifier
from policysweep.v1 import episode_pb2, scenario_pb2

A = TypeVar("A", bound=Arguments)


@dataclass(slots=True)
class Desk:
    """What the tools of one episode have at hand."""

    state: OrderState
    verifier: Verifier
    policy: scenario_pb2.Policy
    customer_name: str
    statements: int = 0
    """Customer messages so far."""
    withdrawal: customer_tools.Withdrawal | None = None


@dataclass(frozen=True, slots=True)
class ReadTool:
    """A tool that leaves the order as it is."""

    name: str
    description: str
    arguments: type[Arguments]
    run: Callable[[Desk, Any], Json]


@dataclass(frozen=True, slots=True)
class WriteTool:
    """A tool that changes the order."""

    name: str
    description: str
    arguments: type[Arguments]
    run: Callable[[Desk, Any], Written]


Tool: TypeAlias = ReadTool | WriteTool


def _seen(function: Callable[[OrderState, A], Json]) -> Callable[[Desk, A], Json]:
    return lambda desk, arguments: function(desk.state, arguments)


def _done(function: Callable[[OrderState, A], Written]) -> Callable[[Desk, A], Written]:
    return lambda desk, arguments: function(desk.state, arguments)


def _verified(function: Callable[[OrderState, Facts, A], Written]) -> Callable[[Desk, A], Written]:
    return lambda desk, arguments: function(desk.state, Facts(desk.verifier, desk.statements), arguments)


def _policy_info(desk: Desk, arguments: args.GetPolicyInfo) -> Json:
    return policy_text.get_policy_info(desk.policy, arguments)


def _profile(desk: Desk, arguments: customer_tools.CustomerInspectProfile) -> Json:
    return customer_tools.inspect_profile(desk.state, desk.customer_name, arguments)


def _withdraw(desk: Desk, arguments: customer_tools.WithdrawFromConversation) -> Json:
    if desk.withdrawal is not None:
        raise Refused("You have already left the conversation.")
    desk.withdrawal = customer_tools.Withdrawal(
        arguments.reason, arguments.details or "", arguments.will_return
    )
    return {"message": "You have left the conversation."}


def _by_name(tools: Iterable[Tool]) -> Mapping[str, Tool]:
    return {tool.name: tool for tool in tools}


AGENT_TOOLS = _by_name(
    [
        ReadTool(
            "get_product_info",
            "Show a product: price, stock, variants and what its page says.",
            args.GetProductInfo,
            run=_seen(products.get_product_info),
        ),
        ReadTool(
            "get_order_details",
            "Show an order of the customer: items, deliveries, promotions, payment, and returns so far.",
            args.GetOrderDetails,
            run=_seen(reads.get_order_details),
        ),
        ReadTool(
            "check_inventory",
            "Check whether a product is in stock, when it will be, and what else of its category is.",
            args.CheckInventory,
            run=_seen(products.check_inventory),
        ),
        ReadTool(
            "get_purchase_history",
            "List the customer's orders and returns, newest first.",
            args.GetPurchaseHistory,
            run=_seen(reads.get_purchase_history),
        ),
        ReadTool(
            "get_policy_info",
            "Look up the sections of the written policy on a subject.",
            args.GetPolicyInfo,
            run=_policy_info,
        ),
        ReadTool(
            "get_return_frequency_assessment",
            "Show how often the customer returns things, and the deduction that the shop recommends.",
            args.GetReturnFrequencyAssessment,
            run=_seen(reads.get_return_frequency_assessment),
        ),
        WriteTool(
            "update_order",
            "Change what has not been delivered yet: address, instructions, quantity, cancellation.",
            args.UpdateOrder,
            run=_done(updating.update_order),
        ),
        WriteTool(
            "process_return",
            "Open a return, with label and refund, or note a denial or an escalation. The stated facts are "
            "checked first; the system may ask you to confirm them with the customer.",
            args.ProcessReturn,
            run=_verified(returning.process_return),
        ),
        WriteTool(
            "process_exchange",
            "Take items back and send the same or other products out for them. The stated facts are "
            "checked first, as for a return.",
            args.ProcessExchange,
            run=_verified(exchanging.process_exchange),
        ),
        WriteTool(
            "issue_refund",
            "Pay money back for returned items, for shipping, or as goodwill; never more than was paid.",
            args.IssueRefund,
            run=_done(paying.issue_refund),
        ),
        WriteTool(
            "apply_discount",
            "Lower the price of the order afterwards; the difference is paid back.",
            args.ApplyDiscount,
            run=_done(updating.apply_discount),
        ),
    ]
)

CUSTOMER_TOOLS = _by_name(
    [
        ReadTool(
            "withdraw_from_conversation",
            "Give up and leave the conversation for good.",
            customer_tools.WithdrawFromConversation,
            run=_withdraw,
        ),
        ReadTool(
            "customer_view_order_details",
            "Open the page of one of your orders.",
            customer_tools.CustomerViewOrderDetails,
            run=_seen(customer_tools.view_order_details),
        ),
        ReadTool(
            "customer_check_item_availability",
            "See whether a product is in stock.",
            customer_tools.CustomerCheckItemAvailability,
            run=_seen(customer_tools.check_item_availability),
        ),
        ReadTool(
            "customer_confirm_returned_items",
            "See which returns, exchanges and refunds the shop has on file for an order.",
            customer_tools.CustomerConfirmReturnedItems,
            run=_seen(customer_tools.confirm_returned_items),
        ),
        ReadTool(
            "customer_inspect_profile",
            "Open your profile: name, addresses, payment methods, membership, orders.",
            customer_tools.CustomerInspectProfile,
            run=_profile,
        ),
    ]
)


def definitions(tools: Mapping[str, Tool]) -> tuple[episode_pb2.ToolDefinition, ...]:
    """What a model is shown of the tools, in their order."""
    return tuple(tool_definition(tool.name, tool.description, tool.arguments) for tool in tools.values())
