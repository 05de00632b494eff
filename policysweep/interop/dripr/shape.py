"""The form of a conversation record of the public DRIP-R code, for one conversation (`..._1`).

Two keys are ours and may be missing: `policysweep` says what the layout has no place for, and
`arguments_json` and `result_json` keep a text that its JSON value does not give back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from policysweep.datasets.problems import Finding, Rule
from policysweep.datasets.rules.scenario import SCENARIO
from policysweep.datasets.rules.shape import (
    boolean,
    choice,
    filled,
    integer,
    listing,
    mapping,
    nullable,
    record,
    string,
)
from policysweep.datasets.rules.world_shape import OUTCOMES
from policysweep.sweep.spec_fields import agent_name
from policysweep.v1 import episode_pb2 as ep


def _names(names: list[str], prefix: str, *without: str) -> list[str]:
    return [name.removeprefix(prefix) for name in names if name.removeprefix(prefix) not in without]


PERSONAS = _names(ep.AgentPersona.keys(), "AGENT_PERSONA_", "UNSPECIFIED")
END_REASONS = _names(ep.EndReason.keys(), "END_REASON_", "UNSPECIFIED")
FAULTS = _names(ep.FaultParty.keys(), "FAULT_PARTY_", "INFRASTRUCTURE")
"""Who may have failed in a conversation that is kept: never the infrastructure."""


def persona_name(text: str) -> str:
    """An agent persona as the contract spells it. The public code lets the agent itself write the name."""
    return re.sub(r"[\s-]+", "_", text.strip()).upper()


def _persona(value: Any) -> Iterator[Finding]:
    yield from choice(*PERSONAS)(persona_name(value) if isinstance(value, str) else value)


def _nothing(value: Any) -> Iterator[Finding]:
    if value is not None and value != []:
        yield Finding((), "must be null in a turn of this kind")


_ANYTHING = mapping(lambda _: ())

_CALL = {"tool_call_id": string, "tool_name": filled, "arguments": _ANYTHING, "arguments_json": string}
_RESULT = {"tool_call_id": string, "tool_name": filled, "result": _ANYTHING}


def _turn_of(kind: str) -> Rule:
    parts: dict[str, Rule] = {
        "turn": choice(kind),
        "message": _nothing,
        "tool_calls": _nothing,
        "tool_result": _nothing,
    }
    optional = ["message", "tool_calls", "tool_result"]
    if kind == "tool_call":
        call = record(_CALL, optional=["arguments_json"], unknown="warning")
        parts["tool_calls"] = listing(call, at_least=1)
        optional.remove("tool_calls")
    elif kind == "tool_result":
        parts["tool_result"] = record(
            _RESULT | {"result_json": string}, optional=["result_json"], unknown="warning"
        )
        optional.remove("tool_result")
    else:
        parts["message"] = string
        optional.remove("message")
    return record(parts, optional=optional, unknown="warning")


_TURNS = {kind: _turn_of(kind) for kind in ("customer", "agent", "tool_call", "tool_result")}


def _turn(value: Any) -> Iterator[Finding]:
    kind = value.get("turn") if isinstance(value, dict) else None
    known = _TURNS.get(kind) if isinstance(kind, str) else None
    yield from (known or record({"turn": choice(*_TURNS)}, unknown="warning"))(value)


def _agent(value: Any) -> Iterator[Finding]:
    try:
        agent_name(value if isinstance(value, str) else "")
    except ValueError as error:
        yield Finding((), str(error))


_INTERACTIONS = listing(
    record(_CALL | {"caller": string}, optional=["caller", "arguments_json"], unknown="warning")
)

_OURS = record(
    {
        "unit_id": string,
        "agent": _agent,
        "trial": integer(0),
        "rehearsal": boolean,
        "end": record({"reason": choice(*END_REASONS), "fault": choice(*FAULTS), "detail": string}),
    },
    optional=["unit_id", "agent", "trial", "rehearsal", "end"],
    unknown="warning",
)

_FIELDS: dict[str, Rule] = {
    "scenario_id": filled,
    "conversation_type": string,
    "finished": boolean,
    "source_scenario": SCENARIO,
    "conversation_1": listing(_turn, at_least=1),
    "tool_interactions_1": _INTERACTIONS,
    "customer_tool_interactions_1": _INTERACTIONS,
    "customer_withdrew_1": boolean,
    "agent_persona_1": _persona,
    "resolution_1": nullable(
        record({"resolution_type": choice(*OUTCOMES), "resolution_description": string}, unknown="warning")
    ),
    "num_conversations": choice(1),
    "row_id": string,
    "user_idx": integer(0),
    "scenario_idx": integer(0),
    "policysweep": _OURS,
}
_OPTIONAL = ("conversation_type", "num_conversations", "row_id", "user_idx", "scenario_idx", "policysweep")
_SHAPE = record(_FIELDS, optional=_OPTIONAL, unknown="warning")
_FURTHER = re.compile(r"conversation_(?!1$)[0-9]+")


def conversation_shape(value: Any) -> Iterator[Finding]:
    """What is wrong with the form of a conversation record."""
    yield from _SHAPE(value)
    if isinstance(value, dict):
        for key in filter(_FURTHER.fullmatch, value):
            yield Finding((key,), "a second conversation of a scenario belongs in a record of its own")
