"""Writes the file of gold actions that a rehearsal server can be given: `policysweep rehearsal --tau2-gold`.

It holds what no agent may see, so it goes from here to the rehearsal server and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson

from policysweep.datasets.tau2 import Tau2Dataset, overreach
from policysweep.domains.tau2 import Domain, load_domain
from policysweep.errors import InputError
from policysweep.models.rehearsal.tau2.gold import FORMAT, reference
from policysweep.v1 import tau2_pb2

_SUPPORTS = {
    tau2_pb2.TAU2_SUPPORT_UNSPECIFIED: "policy",
    tau2_pb2.TAU2_SUPPORT_CLARIFICATION: "clarification",
    tau2_pb2.TAU2_SUPPORT_NONE: "none",
}


def write_gold(path: Path, datasets: Iterable[Tau2Dataset]) -> None:
    """Write the gold actions of all tasks of `datasets`. Raises InputError if the file cannot be written."""
    tasks = [_task(task, load_domain(each.domain)) for each in datasets for task in each.tasks]
    try:
        path.write_bytes(orjson.dumps({"format": FORMAT, "tasks": tasks}))
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error


def _task(task: tau2_pb2.Tau2Task, domain: Domain) -> dict[str, Any]:
    told = task.user_scenario
    return {
        "domain": task.domain,
        "task_id": task.task_id,
        "reference": reference([getattr(told, field.name) for field in told.DESCRIPTOR.fields]),
        "gap": task.gap_id,
        "steps": [_step(action, domain) for action in task.criteria.gold.actions],
        "information": list(task.criteria.communicate_info),
        "overreach": [_step(action, domain) for action in overreach(task)],
    }


def _step(action: tau2_pb2.Tau2Action, domain: Domain) -> dict[str, Any]:
    return {
        "name": action.name,
        "arguments": orjson.loads(action.arguments_json),
        "writes": action.name in domain.agent_box.writes,
        "support": _SUPPORTS[action.support],
    }
