"""Worlds to test on: the built-in ones, and one small order in which every parcel is somewhere else."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

from google.protobuf.json_format import ParseDict

from policysweep.domains.returns.environment import ReturnsEnvironment, ToolOutcome
from policysweep.v1 import episode_pb2, scenario_pb2, world_pb2

BUILTIN = Path(__file__).parents[3] / "policysweep" / "datasets" / "builtin"
TASKS = sorted(path.stem for path in (BUILTIN / "tasks").glob("*.json"))
OK = episode_pb2.TOOL_STATUS_OK
ERROR = episode_pb2.TOOL_STATUS_ERROR
VERIFY = episode_pb2.TOOL_STATUS_VERIFICATION_REQUIRED
ALREADY = episode_pb2.TOOL_STATUS_ALREADY_CALLED


@functools.cache
def builtin_world(task: str) -> world_pb2.OrderWorld:
    text = (BUILTIN / "tasks" / f"{task}.json").read_text(encoding="utf-8")
    return ParseDict(json.loads(text)["world"], world_pb2.OrderWorld())


@functools.cache
def policy() -> scenario_pb2.Policy:
    texts = [(BUILTIN / name).read_text(encoding="utf-8") for name in ("policy.md", "third_party.md")]
    primary, related = (scenario_pb2.PolicyDocument(text=text) for text in texts)
    return scenario_pb2.Policy(primary=primary, related=[related])


def _parcel(number: int, status: str, **dates: str) -> dict[str, Any]:
    return {
        "shipment_id": f"S-{number}",
        "carrier_status": status,
        "promised_by": "2026-01-10",
        "items": [f"I-{number}"],
        **dates,
    }


def _item(number: int, quantity: int, price: float, **more: Any) -> dict[str, Any]:
    return {
        "item_id": f"I-{number}",
        "product_id": f"P-{number}",
        "name": f"Thing {number}",
        "category": "Toys, games, and baby products",
        "quantity": quantity,
        "unit_price": price,
        "currency": "USD",
        **more,
    }


@functools.cache
def mixed_world() -> world_pb2.OrderWorld:
    """I-1: 3 x $10.01, delivered on time, opened_used. I-2: $20.00, delivered late, defective, lid missing.

    I-3: 2 x $15.00, lost. I-4: $8.00, in transit. I-5: 2 x $6.00, not sent. $5.00 coupon on all, $7.50
    shipping. P-1 has 2 in stock, P-2 none, P-6 costs $25.00 and has variants.
    """
    stock = {1: 2, 2: 0, 3: 5, 4: 5, 5: 5}
    conditions = {1: "opened_used", 2: "defective", 3: "unopened", 4: "unopened", 5: "unopened"}
    items = [_item(1, 3, 10.01), _item(2, 1, 20.0), _item(3, 2, 15.0), _item(4, 1, 8.0), _item(5, 2, 6.0)]
    world = {
        "today": "2026-01-27",
        "customer": {
            "customer_id": "CUST-1",
            "member_tier": "Circle",
            "membership": [{"tier": "Circle", "from": "2025-01-01", "to": None}],
            "return_history": {
                "orders_12m": 4,
                "returns_12m": 2,
                "rate": 0.5,
                "abuse_risk_level": "HIGH",
                "recommended_deduction_percentage": 10,
            },
            "payment_methods": [{"type": "credit_card", "label": "Card 1", "status": "active"}],
            "addresses": [
                {"label": "Home", "kind": "home", "cross_border": False},
                {"label": "Work", "kind": "work", "cross_border": True},
            ],
        },
        "order": {
            "order_id": "ORD-1",
            "placed_at": "2026-01-02",
            "channel": "web",
            "ship_to": {"address_label": "Home", "cross_border": False},
            "shipping_charge": 7.5,
            "payment": {"method": "credit_card", "amount": 102.53, "gift_card_part": 0.0},
            "promotions": [
                {
                    "promo_id": "PR-1",
                    "description": "Coupon",
                    "amount": -5.0,
                    "scope": "order",
                    "item_ids": [],
                    "conditions": "none",
                }
            ],
            "shipments": [
                _parcel(1, "delivered", shipped_at="2026-01-05", delivered_at="2026-01-09"),
                _parcel(2, "delivered", shipped_at="2026-01-05", delivered_at="2026-01-20"),
                _parcel(3, "lost", shipped_at="2026-01-05"),
                _parcel(4, "in_transit", shipped_at="2026-01-26"),
                _parcel(5, "label_created"),
            ],
            "items": items,
        },
        "other_orders": [
            {
                "order_id": "ORD-0",
                "placed_at": "2025-06-01",
                "status": "returned",
                "amount": 12.0,
                "items": [
                    {
                        "item_id": "I-H1",
                        "product_id": "P-H1",
                        "name": "Old thing",
                        "category": "Books, stationery, and crafts",
                        "quantity": 1,
                        "unit_price": 12.0,
                    }
                ],
                "returns": [
                    {
                        "item_id": "I-H1",
                        "returned_at": "2025-06-20",
                        "reason": "Torn",
                        "outcome": "RETURN_REFUND_FULL_BANK",
                    }
                ],
            }
        ],
        "products": [
            {
                "product_id": f"P-{i}",
                "name": f"Thing {i}",
                "category": "Toys, games, and baby products",
                "price": item["unit_price"],
                "specs": {"Page note": "Nice", "Age": "3", "Color": "red"},
                "stock": {"available": stock[i], "restock_date": "2026-02-15"},
                "variants": [],
            }
            for i, item in enumerate(items, 1)
        ]
        + [
            {
                "product_id": "P-6",
                "name": "Better thing",
                "category": "Toys, games, and baby products",
                "price": 25.0,
                "specs": {},
                "stock": {"available": 3},
                "variants": [
                    {"variant_id": "P-6-A", "label": "Red", "available": 1},
                    {"variant_id": "P-6-B", "label": "Blue", "available": 3},
                ],
            }
        ],
        "inspection_truth": [
            {
                "item_id": f"I-{i}",
                "condition": condition,
                "notes": "as said",
                "accessories_missing": ["lid"] if i == 2 else [],
            }
            for i, condition in conditions.items()
        ],
        "gold_facts": {"reason_truth": "as said"},
    }
    return ParseDict(world, world_pb2.OrderWorld())


class Conversation:
    """An environment with a caller that numbers its calls and counts customer messages."""

    def __init__(self, world: world_pb2.OrderWorld | None = None) -> None:
        self.world = world or mixed_world()
        self.environment = ReturnsEnvironment(self.world, policy(), "Ada Quill")
        self.statements = 1
        self._calls = 0

    def outcome(self, tool: str, call_id: str | None = None, /, **arguments: object) -> ToolOutcome:
        return self.raw(tool, json.dumps(arguments), call_id)

    def raw(self, tool: str, arguments_json: str, call_id: str | None = None) -> ToolOutcome:
        self._calls += 1
        call = episode_pb2.ToolCall(
            id=call_id or f"call-{self._calls}", name=tool, arguments_json=arguments_json
        )
        customers = tool.startswith(("customer_", "withdraw"))
        run = self.environment.call_customer_tool if customers else self.environment.call_agent_tool
        return run(call, statements=self.statements)

    def ok(self, tool: str, **arguments: object) -> dict[str, Any]:
        """The content of a call that must work."""
        return self._content(self.outcome(tool, **arguments), OK, "ok")

    def error(self, tool: str, **arguments: object) -> str:
        """All of the content of a call that must fail, as text."""
        outcome = self.outcome(tool, **arguments)
        self._content(outcome, ERROR, "error")
        return outcome.content

    def own(self, tool: str, **arguments: object) -> dict[str, Any]:
        """A write on the open order that must work."""
        return self.ok(tool, order_id="current", customer_id="current", **arguments)

    def own_error(self, tool: str, **arguments: object) -> str:
        """A write on the open order that must be refused."""
        return self.error(tool, order_id="current", customer_id="current", **arguments)

    def give_back(
        self, *lines: tuple[str, int, str], kind: str = "RETURN_REFUND_FULL_BANK", **more: object
    ) -> dict[str, Any]:
        """A return of (item, quantity, condition) lines that must work."""
        return self.own("process_return", **return_of(*lines, kind=kind, **more))

    def implied(self) -> list[str]:
        """The outcomes that the writes amount to."""
        return [
            episode_pb2.Outcome.Name(write.implied_outcome).removeprefix("OUTCOME_")
            for write in self.environment.writes()
        ]

    @staticmethod
    def _content(outcome: ToolOutcome, status: episode_pb2.ToolStatus.ValueType, word: str) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(outcome.content)
        assert (outcome.status, content["status"]) == (status, word), outcome.content
        return content


def return_of(
    *lines: tuple[str, int, str], kind: str = "RETURN_REFUND_FULL_BANK", **more: object
) -> dict[str, object]:
    items = [{"item_id": item, "quantity": units, "condition": state} for item, units, state in lines]
    return {
        "resolution_type": kind,
        "items_to_return": items,
        "return_reason": "changed_mind",
        **more,
    }


def truthful_lines(world: world_pb2.OrderWorld) -> list[tuple[str, int, str]]:
    """All lines of the order in their true condition."""
    truth = {entry.item_id: entry.condition for entry in world.inspection_truth}
    return [(item.item_id, item.quantity, truth[item.item_id]) for item in world.order.items]
