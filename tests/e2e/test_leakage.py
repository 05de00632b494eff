"""No private text reaches an agent before the customer says it.

Unique canaries are planted in every private field of a scenario, its design and its hidden truth. An agent
that keeps every byte it is sent then plays the scenarios through the real simulator.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import grpc
import pytest

from policysweep.rpc.server import Service, serving
from policysweep.v1 import agent_pb2, agent_pb2_grpc
from policysweep.v1 import episode_pb2 as ep

pytestmark = pytest.mark.e2e

SAYABLE = ("private_info", "behavior")
"""Private fields that the customer model is given, so that its messages may quote them."""


class Recorder(agent_pb2_grpc.AgentServiceServicer):
    """Reads everything that its tools offer, asks questions, and keeps what it is sent."""

    def __init__(self) -> None:
        self.requests: list[agent_pb2.RespondRequest] = []

    async def Respond(  # noqa: N802 - the contract's name
        self, request: agent_pb2.RespondRequest, context: Any
    ) -> agent_pb2.RespondResponse:
        self.requests.append(agent_pb2.RespondRequest.FromString(request.SerializeToString()))
        response = agent_pb2.RespondResponse(message=ep.Message(role=ep.ROLE_AGENT))
        order = request.messages[0].content.split("My order number is ")[1].split(". ")[0]
        if request.step < len(READS):
            name, arguments = READS[request.step]
            call = ep.ToolCall(id=f"call-{request.step}", name=name)
            call.arguments_json = json.dumps({**arguments, **self._owner(request, order, name)})
            response.message.tool_calls.append(call)
        elif request.step < len(READS) + 2:
            response.message.content = "In what state is each item, was it used, and what happened to it?"
        else:
            response.message.content = "I am sorry, we cannot take it back."
            response.resolution.outcome = ep.OUTCOME_DENY_REFUND
        return response

    def _owner(self, request: agent_pb2.RespondRequest, order: str, tool: str) -> dict[str, Any]:
        details: dict[str, Any] = next(
            (json.loads(m.content) for m in request.messages if m.role == ep.ROLE_TOOL), {}
        )
        customer = details.get("customer_id", "CUST-00000000")
        item = details.get("items", [{}])[0]
        known = {"order_id": order, "customer_id": customer, "product_id": item.get("product_id", "P")}
        wanted = {
            "get_order_details": ["order_id"],
            "get_product_info": ["product_id"],
            "get_purchase_history": ["customer_id"],
            "get_return_frequency_assessment": ["customer_id"],
            "check_inventory": ["product_id"],
            "process_return": ["order_id", "customer_id"],
            "get_policy_info": [],
        }[tool]
        extra = {}
        if tool == "process_return":
            extra["items_to_return"] = [
                {"item_id": item.get("item_id", "I"), "quantity": 1, "condition": "unopened"}
            ]
        return {**{key: known[key] for key in wanted}, **extra}

    async def GetAgentInfo(  # noqa: N802 - the contract's name
        self, request: agent_pb2.GetAgentInfoRequest, context: Any
    ) -> agent_pb2.GetAgentInfoResponse:
        return agent_pb2.GetAgentInfoResponse(info=agent_pb2.AgentInfo(variant="recorder", model="none"))


READS: list[tuple[str, dict[str, Any]]] = [
    ("get_order_details", {"detail_type": "full", "include_tracking": True}),
    ("get_product_info", {"include_specs": True}),
    ("get_purchase_history", {"include_returns": True}),
    ("get_return_frequency_assessment", {}),
    ("get_policy_info", {"policy_type": "all"}),
]
# A second turn's worth: the false condition provokes the verification against the hidden truth.
READS += [
    (
        "process_return",
        {"resolution_type": "RETURN_REFUND_FULL_BANK", "return_reason": "defective"},
    )
]


@pytest.fixture
def planted(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A data set with a canary in every private field, and the canaries by field."""
    folder = tmp_path / "data"
    subprocess.run(
        [sys.executable, "-m", "policysweep", "dataset", "build", "builtin", "--output", str(folder)],
        check=True,
        capture_output=True,
    )
    canaries: dict[str, str] = {}

    def plant(path: str) -> str:
        return canaries.setdefault(path, f"CANARY{len(canaries):03d}QZX")

    _rewrite(folder / "scenarios.jsonl", lambda scenario: _plant_scenario(scenario, plant))
    _rewrite(folder / "tasks.jsonl", lambda task: _plant_task(task, plant))
    _rewrite(folder / "worlds.jsonl", lambda line: _plant_world(line["world"], plant))
    return folder, canaries


def _rewrite(file: Path, change: Any) -> None:
    records = [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n") if line]
    for record in records:
        change(record)
    file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def _plant_scenario(scenario: dict[str, Any], plant: Any) -> None:
    for field in ("private_info", "behavior"):
        # In every sentence, so that whatever the customer gives away carries it.
        text = scenario["customer_task_detail"][field]
        scenario["customer_task_detail"][field] = text.replace(". ", f" {plant(field)}. ")
    _plant_task(scenario["task"], plant)


def _plant_task(task: dict[str, Any], plant: Any) -> None:
    for field in ("detail", "reason", "task"):
        task[field] += f" {plant('task.' + field)}"
    issues = json.loads(task["related_policy_issues"])
    task["related_policy_issues"] = json.dumps([f"{issue} {plant('task.issues')}" for issue in issues])


def _plant_world(world: dict[str, Any], plant: Any) -> None:
    for truth in world["inspection_truth"]:
        truth["notes"] += f" {plant('truth.notes')}"
        truth["accessories_missing"].append(plant("truth.accessories"))
    world["gold_facts"]["reason_truth"] += f" {plant('gold.reason')}"
    stated = world["gold_facts"]["what_customer_may_misstate"] or "Nothing at all is misstated here."
    world["gold_facts"]["what_customer_may_misstate"] = f"{stated} {plant('gold.misstate')}"


async def test_nothing_private_reaches_the_agent_before_the_customer_says_it(
    make_sweep: Any, planted: tuple[Path, dict[str, str]]
) -> None:
    import asyncio

    folder, canaries = planted
    recorder = Recorder()

    def register(server: grpc.aio.Server) -> None:
        agent_pb2_grpc.add_AgentServiceServicer_to_server(recorder, server)

    async with serving("127.0.0.1:0", [Service("policysweep.v1.AgentService", register)]) as address:
        sweep = make_sweep(
            dataset=str(folder), agents=[{"name": "spy", "target": address}], limits={"max_tool_rounds": 9}
        )
        code, output = await asyncio.to_thread(sweep.run)
    assert code == 0, output
    assert len(canaries) >= 10
    assert recorder.requests
    said = 0
    for request in recorder.requests:
        spoken = " ".join(m.content for m in request.messages if m.role == ep.ROLE_CUSTOMER)
        for message in request.messages:
            if message.role == ep.ROLE_CUSTOMER:
                message.content = ""
        sent = request.SerializeToString()
        for field, canary in canaries.items():
            assert canary.encode() not in sent, f"{field} leaked outside of the customer's words"
            assert field in SAYABLE or canary not in spoken, f"{field} was told by the customer"
        said += canaries["private_info"] in spoken
    # The test would prove nothing if the planted texts never came up at all.
    assert said > 0


async def test_verification_was_provoked_and_revealed_nothing(
    make_sweep: Any, planted: tuple[Path, dict[str, str]]
) -> None:
    folder, canaries = planted
    sweep = make_sweep(dataset=str(folder))
    assert sweep.run()[0] == 0
    hidden = [canary for field, canary in canaries.items() if field not in SAYABLE]
    for path in sweep.records:
        data = path.read_bytes()
        assert not [canary for canary in hidden if canary.encode() in data]
