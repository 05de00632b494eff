"""Import, export, import: the records are the same, whatever was said."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policysweep.errors import InputError
from policysweep.interop.exporting import export_run
from policysweep.sweep.verify import verify_run
from policysweep.v1 import run_pb2

from .samples import answered, called, conversation, imported, lines, our_run, records, said, stream

Json = dict[str, Any]

# Any text but lone surrogates, which neither UTF-8 nor the contract can hold.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | st.sampled_from(
    ["\u2028\u2029\x85", "a\r\nb\rc\n", "\U0001f9fe\U0001f468\u200d\U0001f4bb", '"\\u2028', "\x00\x1c", ""]
)
NAMES = st.sampled_from(["get_order_details", "process_return", "customer_inspect_profile", "no_such_tool"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, width=32) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(TEXT, VALUES, max_size=3)


@st.composite
def talks(draw: st.DrawFn) -> Sequence[Json]:
    """Turns in any order that the layout allows: calls get their results at once, later, or never."""
    turns = [said("customer", draw(TEXT))]
    waiting: list[tuple[str, str]] = []
    for _ in range(draw(st.integers(0, 8))):
        kind = draw(st.sampled_from(["customer", "agent", "call", "result"]))
        if kind == "call":
            call = draw(NAMES), draw(st.sampled_from(["call_0", "call_1", "x", ""]))
            turns.append(called(*call) | {"tool_calls": [_call(*call, arguments=draw(OBJECTS))]})
            waiting.append(call)
        elif kind == "result" and waiting:
            call = waiting.pop(draw(st.integers(0, len(waiting) - 1)))
            turns.append(answered(*call) | {"tool_result": _call(*call, result=draw(OBJECTS))})
        elif kind in ("customer", "agent"):
            turns.append(said(kind, draw(TEXT)))
    return turns


def _call(name: str, call_id: str, **content: Json) -> Json:
    return {"tool_name": name, "tool_call_id": call_id, **content}


@st.composite
def conversations(draw: st.DrawFn) -> list[Json]:
    """A file: some scenarios, any personas, all ways to end."""
    endings: list[Json] = [
        {},
        {"resolution_1": None},
        {"finished": False, "resolution_1": None},
        {"customer_withdrew_1": True, "resolution_1": None},
    ]
    found = []
    for row in range(draw(st.integers(1, 4))):
        changes = dict(draw(st.sampled_from(endings)))
        if "resolution_1" not in changes:
            outcome = draw(st.sampled_from(["DENY_REFUND", "USER_ABORT", "REPLACEMENT_EXCHANGE"]))
            changes["resolution_1"] = {
                "resolution_type": outcome,
                "resolution_description": draw(TEXT),
            }
        changes["agent_persona_1"] = draw(st.sampled_from(["FAIR", "DIRECT"]))
        found.append(
            conversation(
                draw(talks()),
                scenario=draw(st.integers(0, 1)),
                row=row,
                by_customer=["customer_inspect_profile"],
                **changes,
            )
        )
    return found


async def _there_and_back(folder: Path, given: Sequence[Json]) -> tuple[list[Any], list[Any]]:
    first = await imported(lines(folder / "gpt.jsonl", given))
    assert (await verify_run(first)).ok
    await export_run(first, stream([]), "dripr", folder / "out")
    second = await imported(folder / "out" / "gpt" / "conversations.jsonl")
    return await records(first), await records(second)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(conversations())
def test_import_export_import_gives_the_same_records(given: list[Json]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        before, after = asyncio.run(_there_and_back(Path(folder), given))
    assert before == after
    assert len(before) == len(given)


async def test_a_message_of_a_megabyte_survives(tmp_path: Path) -> None:
    text = "Zeile\u2028\r\n\U0001f600 \u00e9" * 65_000
    talk = [said("customer", text), called(note=text), answered(note=text), said("agent", text)]
    before, after = await _there_and_back(tmp_path, [conversation(talk)])
    assert before == after
    assert len(text.encode()) > 2**20
    assert before[0].episode.messages[0].content == before[0].episode.messages[-1].content == text


async def test_a_lone_surrogate_is_refused_where_it_stands(tmp_path: Path) -> None:
    path = lines(tmp_path / "gpt.jsonl", [conversation(), conversation([said("customer", "HERE")])])
    path.write_bytes(path.read_bytes().replace(b"HERE", rb"\ud83d"))
    with pytest.raises(InputError, match=rf"{path}:2: not JSON: no low surrogate in string at column"):
        await imported(path)


async def test_what_was_played_here_survives_as_far_as_the_layout_has_a_place(tmp_path: Path) -> None:
    ours = await our_run()
    await export_run(ours, stream([]), "dripr", tmp_path / "out")
    before = {_played(record): record.episode for record in await records(ours)}
    after: dict[Any, Any] = {}
    for agent in ("strict", "fair"):
        again = await imported(tmp_path / "out" / agent / "conversations.jsonl")
        assert (await verify_run(again)).ok
        after |= {_played(record): record.episode for record in await records(again)}
    assert after.keys() == before.keys()
    for unit, episode in after.items():
        assert list(episode.messages) == list(before[unit].messages)
        assert list(episode.customer_tool_events) == list(before[unit].customer_tool_events)
        assert (episode.outcome, episode.end) == (before[unit].outcome, before[unit].end)
        assert episode.rehearsal


def _played(record: run_pb2.UnitRecord) -> tuple[str, str, int, int]:
    unit = record.unit
    return unit.scenario_id, unit.agent, unit.agent_persona, unit.trial
