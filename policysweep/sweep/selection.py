"""Which scenarios of a data set a sweep plays: the filters of the sweep file."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from policysweep.errors import InputError
from policysweep.sweep.spec import ScenarioFilter
from policysweep.v1 import scenario_pb2


def select_scenarios(
    scenarios: Sequence[scenario_pb2.Scenario], wanted: ScenarioFilter
) -> list[scenario_pb2.Scenario]:
    """The scenarios that pass the filter, in the order of the data set.

    InputError for an id that the data set does not have, and when nothing is left.
    """
    task_ids = _known("tasks", wanted.tasks, [each.task_id for each in scenarios])
    persona_ids = _known("personas", wanted.personas, [each.persona.persona_id for each in scenarios])
    chosen = [
        each for each in scenarios if each.task_id in task_ids and each.persona.persona_id in persona_ids
    ]
    if not chosen:
        raise InputError(
            "scenarios: no scenario of the data set has one of these tasks and one of these personas"
        )
    return _spread(chosen, wanted.limit) if wanted.limit else chosen


def _known(field: str, wanted: Sequence[str] | None, present: Sequence[str]) -> set[str]:
    known = set(present)
    for name in wanted or ():
        if name not in known:
            close = difflib.get_close_matches(name, sorted(known), n=1)
            hint = f"did you mean {close[0]}?" if close else f"it has {', '.join(sorted(known)[:5])} ..."
            raise InputError(f"scenarios.{field}: the data set has no {name}; {hint}")
    return known if wanted is None else set(wanted)


def _spread(scenarios: Sequence[scenario_pb2.Scenario], limit: int) -> list[scenario_pb2.Scenario]:
    """At most `limit` scenarios: every task once before any task twice, starting each at another persona."""
    by_task: dict[str, list[int]] = {}
    for position, scenario in enumerate(scenarios):
        by_task.setdefault(scenario.task_id, []).append(position)
    dealt = [
        (turn, rank, positions[(rank + turn) % len(positions)])
        for rank, positions in enumerate(by_task.values())
        for turn in range(len(positions))
    ]
    return [scenarios[position] for position in sorted(position for _, _, position in sorted(dealt)[:limit])]
