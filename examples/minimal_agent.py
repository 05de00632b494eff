"""A complete agent in one file: no model, four rules, nothing but grpcio and the published stubs.

    python examples/minimal_agent.py --listen 127.0.0.1:50060

It looks the order up, asks one question, refuses what arrived too long ago and hands every other case to a
human. It keeps no state: each request carries the whole conversation. See docs/writing-an-agent.md.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import signal
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from policysweep.v1 import agent_pb2, agent_pb2_grpc
from policysweep.v1 import episode_pb2 as ep

SERVICE = agent_pb2.DESCRIPTOR.services_by_name["AgentService"].full_name
LOOK_UP = "get_order_details"
ORDER_ID = re.compile(r"\bORD-\d+-\d+\b", re.IGNORECASE)
LONGEST_WINDOW_DAYS = 60
ASK_ORDER = "I am glad to help. Could you tell me your order number? It looks like ORD-123-456789."
ASK_STATE = "Thank you, I have your order here. Which items is it about, and what state are they in?"
REFUSED = "I am sorry: the parcel arrived too long ago, so I cannot take anything back from this order."
HANDED_OVER = "This needs a colleague's decision. I am handing your case over, and you will hear from us."


def respond(request: agent_pb2.RespondRequest) -> agent_pb2.RespondResponse:
    """The next message of the conversation in `request`."""
    heard = " ".join(message.content for message in request.messages if message.role == ep.ROLE_CUSTOMER)
    said = [message.content for message in request.messages if message.role == ep.ROLE_AGENT]
    found = next((message for message in request.messages if message.tool_name == LOOK_UP), None)
    order_id = ORDER_ID.search(heard)
    if found is None and order_id and any(tool.name == LOOK_UP for tool in request.tools):
        arguments = json.dumps({"order_id": order_id[0].upper()})
        call = ep.ToolCall(id=f"call-{request.step}", name=LOOK_UP, arguments_json=arguments)
        return agent_pb2.RespondResponse(message=ep.Message(role=ep.ROLE_AGENT, tool_calls=[call]))
    question = ASK_STATE if order_id else ASK_ORDER
    if question not in said:
        return agent_pb2.RespondResponse(message=ep.Message(role=ep.ROLE_AGENT, content=question))
    if found is not None and days_since_arrival(found) > LONGEST_WINDOW_DAYS:
        return declare(request, ep.OUTCOME_DENY_REFUND, REFUSED, "past every return window of the policy")
    return declare(
        request, ep.OUTCOME_ESCALATE_HUMAN_AGENT, HANDED_OVER, "the policy leaves room for judgement"
    )


def days_since_arrival(result: ep.Message) -> int:
    """Days since the last parcel arrived; 0 when the result does not say so."""
    try:
        order = json.loads(result.content)
        arrived = max(parcel["delivered_at"] for parcel in order["delivery_dates"])
        return (date.fromisoformat(order["today"]) - date.fromisoformat(arrived)).days
    except (ValueError, KeyError, TypeError):  # an error, an older order, a parcel that is on its way
        return 0


def declare(
    request: agent_pb2.RespondRequest, outcome: ep.Outcome.ValueType, text: str, why: str
) -> agent_pb2.RespondResponse:
    """Close the case with `outcome`, if it is among those offered."""
    response = agent_pb2.RespondResponse(message=ep.Message(role=ep.ROLE_AGENT, content=text))
    if any(option.outcome == outcome for option in request.resolution_options):
        response.resolution.MergeFrom(ep.Resolution(outcome=outcome, description=why))
    return response


class MinimalAgent(agent_pb2_grpc.AgentServiceServicer):
    """The two methods of the contract."""

    def Respond(self, request: agent_pb2.RespondRequest, context: Any) -> agent_pb2.RespondResponse:  # noqa: N802
        """Answer, or refuse what cannot be answered."""
        if not request.messages:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "messages must not be empty")
        if request.bank_id:
            context.abort(
                grpc.StatusCode.FAILED_PRECONDITION, "this agent has no memory: leave bank_id empty"
            )
        return respond(request)

    def GetAgentInfo(self, request: Any, context: Any) -> agent_pb2.GetAgentInfoResponse:  # noqa: N802
        """All that changes behaviour. The rules are this file, so its digest stands for the prompts."""
        digest = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
        info = agent_pb2.AgentInfo(
            variant="minimal", model="rules", prompt_digest=digest, memory_mode="none", version="1"
        )
        return agent_pb2.GetAgentInfoResponse(info=info)


def serve(listen: str) -> None:
    """Serve the agent with health and reflection until SIGTERM."""
    limits = [(f"grpc.max_{way}_message_length", 16 << 20) for way in ("send", "receive")]
    server = grpc.server(ThreadPoolExecutor(16), options=limits)
    agent_pb2_grpc.add_AgentServiceServicer_to_server(MinimalAgent(), server)
    status = health.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(status, server)
    reflection.enable_server_reflection([SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME], server)
    port = server.add_insecure_port(listen)
    server.start()
    status.set(SERVICE, health_pb2.HealthCheckResponse.SERVING)
    signal.signal(signal.SIGTERM, lambda *_: server.stop(grace=10))
    print(f"listening on {listen.rpartition(':')[0]}:{port}", flush=True)  # noqa: T201 - for whoever started it
    server.wait_for_termination()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--listen", default="127.0.0.1:50060", metavar="HOST:PORT")
    serve(parser.parse_args().listen)
