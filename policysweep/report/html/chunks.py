"""The transcripts of one scenario as a script: what the viewer shows side by side, in one file.

A page opened from disk may not read other files, but it may run them, so the data is the argument of a call.
It is protobuf JSON with the contract's names: a scenario without its policy text, and the records and
verdicts of its units. docs/reading-the-report.md shows how to read it without the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from policysweep.report.html.embed import script_json
from policysweep.v1 import judge_pb2, run_pb2, scenario_pb2

JUDGED_UNIT = tuple[run_pb2.UnitRecord, Sequence[run_pb2.VerdictRecord]]
"""A unit's record with what the judges found on it."""


def chunk(
    position: int,
    scenario: scenario_pb2.Scenario,
    units: Iterable[JUDGED_UNIT],
    goals: Sequence[judge_pb2.Goal] = (),
) -> str:
    """The file of a scenario; `position` is its place in the data set, `goals` the customer's in its task."""
    shown = scenario_pb2.Scenario()
    shown.CopyFrom(scenario)
    shown.ClearField("policy")
    content = {
        "scenario": _json(shown),
        "goals": [_json(goal) for goal in goals],
        "units": [_unit(record, verdicts) for record, verdicts in units],
    }
    return f"policysweepTranscripts({position}, {script_json(content)});\n"


def _unit(record: run_pb2.UnitRecord, verdicts: Iterable[run_pb2.VerdictRecord]) -> dict[str, Any]:
    return {**_json(record), "verdicts": [_json(verdict) for verdict in verdicts]}


def _json(message: Message) -> dict[str, Any]:
    made: dict[str, Any] = MessageToDict(message, preserving_proto_field_name=True)
    return made
