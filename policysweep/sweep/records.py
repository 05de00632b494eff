"""What makes a record a record: its name, its bytes, and what must hold between its unit and its episode.

The names of failed attempts, which lie beside them, are here as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import run_pb2, stream_pb2

_UNIT_ID = re.compile(r"[0-9a-f]{32}")
_SUFFIX = ".binpb"
_FAILURE_SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class DamagedRecord:
    """A blob under a record's name that is no record of that unit."""

    unit_id: str
    """The unit that the name promises."""
    problem: str


def record_name(unit_id: str) -> str:
    """The name of a unit's record in its folder. ValueError for what is no unit id."""
    return f"{_checked(unit_id)}{_SUFFIX}"


def failure_name(unit_id: str) -> str:
    """The name of a unit's failed attempts in their folder. ValueError for what is no unit id."""
    return f"{_checked(unit_id)}{_FAILURE_SUFFIX}"


def unit_of(name: str) -> str | None:
    """The unit whose record has this name; None when it is no record's name."""
    return _stem(name, _SUFFIX)


def failed_unit(name: str) -> str | None:
    """The unit whose failed attempts have this name; None when it is no such name."""
    return _stem(name, _FAILURE_SUFFIX)


def _stem(name: str, suffix: str) -> str | None:
    unit_id = name.removesuffix(suffix)
    return unit_id if name.endswith(suffix) and _UNIT_ID.fullmatch(unit_id) else None


def _checked(unit_id: str) -> str:
    if not _UNIT_ID.fullmatch(unit_id):
        raise ValueError(f"{unit_id!r} is not a unit id")
    return unit_id


def record_problems(record: run_pb2.UnitRecord) -> list[str]:
    """What contradicts itself in a record, whatever the plan; [] when it is sound."""
    return episode_problems(record.unit, record.episode, ("scenario_id", "task_id", "agent_persona", "seed"))


def episode_problems(
    unit: run_pb2.Unit | stream_pb2.StreamTask, episode: ep.Episode, fields: Iterable[str]
) -> list[str]:
    """What is wrong with the episode of a unit, which agrees with it in the fields; [] when it is sound.

    An episode that an infrastructure fault ended is no result and must never become a record.
    """
    problems = []
    if episode.episode_id != unit.unit_id:
        problems.append(f"its episode is {episode.episode_id or 'missing'}")
    for field in fields:
        planned, played = getattr(unit, field), getattr(episode, field)
        if planned != played:
            problems.append(f"its episode has {field} {played} instead of {planned}")
    if episode.end.reason == ep.END_REASON_UNSPECIFIED:
        problems.append("its episode did not end")
    if episode.end.fault == ep.FAULT_PARTY_INFRASTRUCTURE:
        problems.append(f"it keeps a fault of the infrastructure as a result: {episode.end.detail}")
    return problems
