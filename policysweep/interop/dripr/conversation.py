"""One conversation record of the public DRIP-R code <-> one episode.

The public code writes `finished: false` for a conversation that was broken off, by its turn limit or after
too many errors, and does not say which, nor whose errors they were. Here that is an end that is not clean: at
the turn limit when the customer spoke that often, else an end whose fault is not stated. Such units are
recorded, are not scored, and lower the coverage of every table.

A withdrawal is the outcome USER_ABORT. The public code leaves `resolution_1` empty then, and its evaluator
reads that as unknown; written from here it says USER_ABORT.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from policysweep.datasets import dripr
from policysweep.datasets.problems import Finding
from policysweep.interop.dripr.scenarios import scenario_record, split_row, with_row
from policysweep.interop.dripr.shape import persona_name
from policysweep.interop.dripr.transcript import (
    AGENT_CALLS,
    CONVERSATION,
    CUSTOMER_CALLS,
    Transcript,
    interactions,
    turns,
)
from policysweep.interop.names import wire_name
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import run_pb2, scenario_pb2

Json = Mapping[str, Any]

MAX_TURNS = 20
"""Replies of the customer after which the public code breaks off, unless told otherwise."""

_ABORT = "USER_ABORT"
_WITHDRAWAL = "withdraw_from_conversation"


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a record holds. The episode lacks what the run gives it: ids, task and seed."""

    scenario: scenario_pb2.Scenario
    episode: ep.Episode
    row: int
    agent: str | None
    """The agent, in a record that was exported from a run; the public code does not name it."""
    trial: int | None
    """Likewise the trial."""


def contradictions(record: Json) -> Iterator[Finding]:
    """What contradicts itself in a record whose form is right, its turns apart."""
    if record["source_scenario"]["scenario_id"] != record["scenario_id"]:
        yield Finding(("source_scenario", "scenario_id"), f"is not scenario_id, {record['scenario_id']!r}")
    resolution, withdrew = record["resolution_1"], record["customer_withdrew_1"]
    if not record["finished"] and (resolution or withdrew):
        told = "a resolution" if resolution else "a withdrawal"
        yield Finding(("finished",), f"is false, and yet there is {told}")
    if withdrew and resolution and resolution["resolution_type"] != _ABORT:
        told = f"is {resolution['resolution_type']}, and yet the customer withdrew"
        yield Finding(("resolution_1", "resolution_type"), told)
    if record["finished"] and "end" in record.get("policysweep", {}):
        yield Finding(("policysweep", "end"), "is only for a conversation with finished false")


def read(record: Json, max_turns: int = MAX_TURNS) -> tuple[Conversation, list[Finding]]:
    """The conversation of a record whose form is right, and what contradicts itself in it.

    `max_turns` is the limit under which the conversation was played, in replies of the customer.
    """
    transcript = Transcript()
    transcript.read(record)
    ours = record.get("policysweep", {})
    episode = ep.Episode(
        agent_persona=ep.AgentPersona.Value(f"AGENT_PERSONA_{persona_name(record['agent_persona_1'])}"),
        messages=transcript.messages,
        customer_tool_events=transcript.events,
        turns=transcript.customer_turns,
        rehearsal=ours.get("rehearsal", False),
    )
    _end(episode, record, max_turns)
    scenario = dripr.scenario(record["source_scenario"])
    row = split_row(scenario.scenario_id)[1]
    found = Conversation(scenario, episode, row, ours.get("agent"), ours.get("trial"))
    return found, [*contradictions(record), *transcript.findings]


def _end(episode: ep.Episode, record: Json, max_turns: int) -> None:
    """Fill in how the conversation ended, and the outcome."""
    resolution = record["resolution_1"]
    if record["customer_withdrew_1"]:
        episode.outcome = ep.OUTCOME_USER_ABORT
        episode.end.reason = ep.END_REASON_CUSTOMER_WITHDREW
        episode.end.detail = _withdrawal_reason(record)
    elif not record["finished"]:
        episode.end.CopyFrom(_broken_off(episode, record, max_turns))
    else:
        episode.end.reason = ep.END_REASON_RESOLVED
        if resolution:
            episode.outcome = ep.Outcome.Value(f"OUTCOME_{resolution['resolution_type']}")
            episode.resolution.outcome = episode.outcome
            episode.resolution.description = resolution["resolution_description"]
        else:
            episode.end.detail = "the record holds no resolution, as if written with --no_resolution"


def _withdrawal_reason(record: Json) -> str:
    for call in record[CUSTOMER_CALLS]:
        if call["tool_name"] == _WITHDRAWAL and isinstance(call["arguments"].get("reason"), str):
            return str(call["arguments"]["reason"])
    return ""


def _broken_off(episode: ep.Episode, record: Json, max_turns: int) -> ep.EpisodeEnd:
    if end := record.get("policysweep", {}).get("end"):
        return ep.EpisodeEnd(
            reason=ep.EndReason.Value(f"END_REASON_{end['reason']}"),
            fault=ep.FaultParty.Value(f"FAULT_PARTY_{end['fault']}"),
            detail=end["detail"],
        )
    if episode.turns > max_turns:
        return ep.EpisodeEnd(
            reason=ep.END_REASON_TURN_LIMIT,
            fault=ep.FAULT_PARTY_AGENT,
            detail=f"no resolution after {max_turns} replies of the customer",
        )
    return ep.EpisodeEnd(
        reason=ep.END_REASON_ERROR_LIMIT,
        detail="broken off before the turn limit; the record does not say who failed",
    )


# ------------------------------------------------------------------------------------------------ writing


def write(record: run_pb2.UnitRecord, scenario: scenario_pb2.Scenario, row: int) -> dict[str, Any]:
    """The conversation record of a unit, under the id of a row of its agent's file, counted from 0."""
    unit, episode = record.unit, record.episode
    name = with_row(unit.scenario_id, row)
    agent_calls = [call for message in episode.messages for call in message.tool_calls]
    customer_calls = [event.call for event in episode.customer_tool_events]
    return {
        "scenario_id": name,
        "conversation_type": "single",
        "finished": bool(episode.outcome) or episode.end.reason == ep.END_REASON_RESOLVED,
        "source_scenario": scenario_record(scenario) | {"scenario_id": name},
        CONVERSATION: list(turns(episode)),
        AGENT_CALLS: interactions(agent_calls, "agent"),
        CUSTOMER_CALLS: interactions(customer_calls, "customer"),
        "customer_withdrew_1": episode.end.reason == ep.END_REASON_CUSTOMER_WITHDREW,
        "agent_persona_1": wire_name(ep.AgentPersona.DESCRIPTOR, unit.agent_persona),
        "resolution_1": _resolution(episode),
        "num_conversations": 1,
        "row_id": name,
        "user_idx": row + 1,
        "scenario_idx": row + 1,
        "policysweep": _ours(record),
    }


def _resolution(episode: ep.Episode) -> dict[str, str] | None:
    """What was declared, in the one text that the public code makes of it."""
    if not episode.outcome:
        return None
    declared = episode.resolution
    parts = [declared.description]
    if episode.end.reason == ep.END_REASON_CUSTOMER_WITHDREW:
        parts = ["The customer withdrew from the conversation.", episode.end.detail]
    if declared.conditions:
        parts.append(f"CONDITIONS: {'; '.join(declared.conditions)}")
    if declared.customer_next_steps:
        parts.append(f"CUSTOMER NEXT STEPS: {'; '.join(declared.customer_next_steps)}")
    return {
        "resolution_type": wire_name(ep.Outcome.DESCRIPTOR, episode.outcome),
        "resolution_description": "\n\n".join(part for part in parts if part),
    }


def _ours(record: run_pb2.UnitRecord) -> dict[str, Any]:
    unit, episode = record.unit, record.episode
    ours: dict[str, Any] = {
        "unit_id": unit.unit_id,
        "agent": unit.agent,
        "trial": unit.trial,
        "rehearsal": episode.rehearsal,
    }
    if not episode.outcome and episode.end.reason != ep.END_REASON_RESOLVED:
        ours["end"] = {
            "reason": wire_name(ep.EndReason.DESCRIPTOR, episode.end.reason),
            "fault": wire_name(ep.FaultParty.DESCRIPTOR, episode.end.fault),
            "detail": episode.end.detail,
        }
    return ours
