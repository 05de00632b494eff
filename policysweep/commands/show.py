"""`policysweep show`: print one unit's conversation, and what came of it."""

from __future__ import annotations

import asyncio

import click
from google.protobuf import json_format
from rich.console import Console
from rich.text import Text

from policysweep.domains.returns.resolution import outcome_name
from policysweep.errors import InputError
from policysweep.streams.ledger import StreamLedger
from policysweep.streams.plan import bank_id, has_bank, method_name, planned_streams, regime_name
from policysweep.sweep.records import DamagedRecord
from policysweep.sweep.runs import open_any_run
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import policybank_pb2 as pb
from policysweep.v1 import run_pb2, stream_pb2

_STYLES = {ep.ROLE_CUSTOMER: "cyan", ep.ROLE_AGENT: "green", ep.ROLE_TOOL: "dim"}

_RESULT_CHARACTERS = 240
"""How much of a tool result is printed unless asked for all."""


@click.command()
@click.argument("run")
@click.argument("unit")
@click.option("--json", "as_json", is_flag=True, help="Print the record as protobuf JSON.")
@click.option("--full", is_flag=True, help="Print tool results whole.")
def show(run: str, unit: str, as_json: bool, full: bool) -> None:
    """Print the conversation of one unit of RUN. UNIT is the beginning of a unit id."""
    record, about = asyncio.run(_find(run, unit))
    if as_json:
        click.echo(json_format.MessageToJson(record, preserving_proto_field_name=True))
        return
    console, limit = Console(), None if full else _RESULT_CHARACTERS
    if isinstance(record, stream_pb2.StreamRecord):
        _print_task(record, about, console, limit)
    else:
        _print(record, console, limit)


async def _find(run: str, beginning: str) -> tuple[run_pb2.UnitRecord | stream_pb2.StreamRecord, str]:
    """The record, and what a task's stream is; "" for a unit of a sweep, which says that itself."""
    ledger = await open_any_run(run)
    names = await ledger.record_names()
    found = [unit for unit in names.unit_ids if unit.startswith(beginning)]
    if len(found) != 1:
        some = f": {', '.join(found[:5])} ..." if found else ""
        raise InputError(f"{len(found)} recorded units of {ledger.url} begin with {beginning!r}{some}")
    async for record in ledger.scan_records(found):
        if isinstance(record, stream_pb2.StreamRecord) and isinstance(ledger, StreamLedger):
            return record, _about(record, await ledger.read_manifest())
        if not isinstance(record, DamagedRecord):
            return record, ""
    raise InputError(f"the record of unit {found[0]} is damaged: see policysweep verify")


def _print(record: run_pb2.UnitRecord, console: Console, limit: int | None) -> None:
    unit, episode = record.unit, record.episode
    persona = ep.AgentPersona.Name(unit.agent_persona).removeprefix("AGENT_PERSONA_")
    console.rule(Text(f"{unit.scenario_id}, {unit.agent} as {persona}, trial {unit.trial + 1}"))
    _print_messages(episode, console, limit)
    console.print(Text(_ending(episode)))
    if episode.HasField("resolution"):
        console.print(Text(episode.resolution.description))
    if episode.reconciliation.mismatch:
        console.print(Text(f"Mismatch: {episode.reconciliation.explanation}", style="yellow"))
    _print_rehearsal(episode, console)


def _about(record: stream_pb2.StreamRecord, manifest: stream_pb2.StreamManifest) -> str:
    """Which stream a task is of, and where its bank is to be looked at."""
    streams = {each.stream_id: each for each in planned_streams(manifest)}
    if (stream := streams.get(record.task.stream_id)) is None:
        return "the run plans no such stream: see policysweep verify"
    method = method_name(stream.method)
    feedback = f" with {regime_name(stream.regime)}" if stream.regime else ""
    told = (
        f"{stream.domain}, {method}{feedback}, {stream.agent}, seed {stream.seed}, trial {stream.trial + 1}"
    )
    if not has_bank(stream.method):
        return told
    return f"{told}\nbank {bank_id(manifest, stream)}, at revision {record.bank_revision_before} here"


def _print_task(record: stream_pb2.StreamRecord, about: str, console: Console, limit: int | None) -> None:
    """A task of a stream, with its grade and what was learnt from it."""
    task, episode, revision = record.task, record.episode, record.revision
    console.rule(Text(f"task {task.task_id}, position {task.position} of stream {task.stream_id[:8]}"))
    console.print(Text(about, style="dim"), soft_wrap=True)
    _print_messages(episode, console, limit)
    console.print(Text(_end(episode)))
    reward = f"{record.grade.reward:g}" if record.grade.HasField("reward") else "absent"
    console.print(Text(f"reward {reward}"))
    if record.HasField("revision"):
        kind = pb.RevisionKind.Name(revision.kind).removeprefix("REVISION_KIND_")
        console.print(
            Text(f"{kind} {revision.capability_id} (revision {revision.number}): {revision.rationale}")
        )
        console.print(Text(revision.diff, style="dim"))
    if record.HasField("missing_feedback"):
        missing = record.missing_feedback
        party = ep.FaultParty.Name(missing.party).removeprefix("FAULT_PARTY_")
        console.print(
            Text(f"Nothing learnt, fault of {party}: {missing.reason}: {missing.message}", style="yellow")
        )
    _print_rehearsal(episode, console)


def _print_messages(episode: ep.Episode, console: Console, limit: int | None) -> None:
    consulted = {
        call.after_message: call.consulted_spec_ids
        for call in episode.model_calls
        if call.role == ep.ROLE_AGENT and call.consulted_spec_ids
    }
    for index, message in enumerate(episode.messages):
        if index in consulted:
            console.print(Text(f"  consulted {', '.join(consulted[index])}", style="dim"))
        _print_message(message, console, limit)
    console.rule()


def _print_rehearsal(episode: ep.Episode, console: Console) -> None:
    if episode.rehearsal:
        console.print(Text("REHEARSAL: no real model took part.", style="bold magenta"))


def _print_message(message: ep.Message, console: Console, limit: int | None) -> None:
    style = _STYLES.get(message.role, "")
    name = ep.Role.Name(message.role).removeprefix("ROLE_").lower()
    if message.role == ep.ROLE_TOOL:
        status = ep.ToolStatus.Name(message.tool_status).removeprefix("TOOL_STATUS_")
        name = f"{message.tool_name} {status}"
    content = message.content
    if message.role == ep.ROLE_TOOL and limit is not None and len(content) > limit:
        content = f"{content[:limit]} ... ({len(content)} characters, see --full)"
    console.print(Text(f"{name}: ", style=f"bold {style}") + Text(content, style=style))
    for call in message.tool_calls:
        console.print(Text(f"  -> {call.name}({call.arguments_json})", style="dim"))


def _ending(episode: ep.Episode) -> str:
    outcome = outcome_name(episode.outcome) if episode.outcome else "no outcome"
    return f"{outcome} ({_end(episode)})"


def _end(episode: ep.Episode) -> str:
    reason = ep.EndReason.Name(episode.end.reason).removeprefix("END_REASON_")
    fault = ep.FaultParty.Name(episode.end.fault).removeprefix("FAULT_PARTY_")
    blame = "" if episode.end.fault == ep.FAULT_PARTY_UNSPECIFIED else f", fault of {fault}"
    detail = f": {episode.end.detail}" if episode.end.detail else ""
    return f"{reason}{blame}{detail}"
