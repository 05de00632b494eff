"""`policysweep show`: print one unit's conversation."""

from __future__ import annotations

import asyncio

import click
from google.protobuf import json_format
from rich.console import Console
from rich.text import Text

from policysweep.domains.returns.resolution import outcome_name
from policysweep.errors import InputError
from policysweep.sweep.records import DamagedRecord
from policysweep.sweep.runs import open_run
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import run_pb2

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
    record = asyncio.run(_find(run, unit))
    if as_json:
        click.echo(json_format.MessageToJson(record, preserving_proto_field_name=True))
    else:
        _print(record, Console(), None if full else _RESULT_CHARACTERS)


async def _find(run: str, beginning: str) -> run_pb2.UnitRecord:
    ledger = await open_run(run)
    found = [unit for unit in sorted(await ledger.done_units()) if unit.startswith(beginning)]
    if len(found) != 1:
        some = f": {', '.join(found[:5])} ..." if found else ""
        raise InputError(f"{len(found)} recorded units of {ledger.url} begin with {beginning!r}{some}")
    async for record in ledger.scan_records(found):
        if not isinstance(record, DamagedRecord):
            return record
    raise InputError(f"the record of unit {found[0]} is damaged: see policysweep verify")


def _print(record: run_pb2.UnitRecord, console: Console, limit: int | None) -> None:
    unit, episode = record.unit, record.episode
    persona = ep.AgentPersona.Name(unit.agent_persona).removeprefix("AGENT_PERSONA_")
    console.rule(Text(f"{unit.scenario_id}, {unit.agent} as {persona}, trial {unit.trial}"))
    for message in episode.messages:
        _print_message(message, console, limit)
    console.rule()
    console.print(Text(_ending(episode)))
    if episode.HasField("resolution"):
        console.print(Text(episode.resolution.description))
    if episode.reconciliation.mismatch:
        console.print(Text(f"Mismatch: {episode.reconciliation.explanation}", style="yellow"))
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
    reason = ep.EndReason.Name(episode.end.reason).removeprefix("END_REASON_")
    outcome = outcome_name(episode.outcome) if episode.outcome else "no outcome"
    fault = ep.FaultParty.Name(episode.end.fault).removeprefix("FAULT_PARTY_")
    blame = "" if episode.end.fault == ep.FAULT_PARTY_UNSPECIFIED else f", fault of {fault}"
    detail = f": {episode.end.detail}" if episode.end.detail else ""
    return f"{outcome} ({reason}{blame}){detail}"
