"""Where the agents part: tasks ranked by their disagreement, and the policy issues that go with it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from statistics import fmean

import numpy as np

from policysweep.report.design import Design
from policysweep.report.figures import Json
from policysweep.report.outcomes import NO_OUTCOME
from policysweep.report.tally import Tallies


def splits_section(tallies: Tallies, tasks: Mapping[str, Json], design: Design | None) -> Json:
    """`tasks` holds the entropies, as in `agreement.tasks`; without `design` the issues are not known."""
    ranked = sorted(tasks, key=lambda task: _rank(task, tasks[task]))
    met = _met(tallies)
    return {
        "tasks": [
            {"task": task, **tasks[task], **met.get(task, _NEVER_MET), **_described(task, design)}
            for task in ranked
        ],
        "issues": [] if design is None else _issues(tasks, design),
    }


_NEVER_MET = {"conversations": 0, "all_agree": 0}


def _rank(task: str, entropy: Json) -> tuple[float, float, str]:
    """The most divided first: between agents on the same case, then over all units."""
    return -(entropy["between_agents_bits"] or 0.0), -entropy["entropy_bits"], task


def _met(tallies: Tallies) -> dict[str, Json]:
    """Conversations that all agents have a scored unit of, and in how many they agree, by task."""
    grid, tasks, task_ids = tallies.matched(list(tallies.agents))
    if len(tallies.agents) < 2:
        return {}
    same = (grid == grid[:, :1]).all(axis=1) & (grid[:, 0] != NO_OUTCOME)
    return {
        task: {"conversations": int(n), "all_agree": int(agreed)}
        for task, n, agreed in zip(
            task_ids,
            np.bincount(tasks, minlength=len(task_ids)),
            np.bincount(tasks, same, minlength=len(task_ids)),
            strict=True,
        )
    }


def _described(task: str, design: Design | None) -> Json:
    case = design.tasks.get(task) if design else None
    if case is None:
        return {"summary": None, "complexity": None, "ambiguity_types": [], "issues": []}
    return {
        "summary": case.summary or None,
        "complexity": case.complexity.title if case.complexity else None,
        "ambiguity_types": [group.title for group in case.ambiguity],
        "issues": list(case.issues),
    }


def _issues(tasks: Mapping[str, Json], design: Design) -> list[Json]:
    """Mean entropy of the tasks that an issue is named for, the most divided first."""
    named: dict[str, list[str]] = defaultdict(list)
    for task in sorted(tasks):
        for issue in dict.fromkeys(design.tasks[task].issues if task in design.tasks else ()):
            named[issue].append(task)
    found = []
    for issue, of in named.items():
        between = [bits for task in of if (bits := tasks[task]["between_agents_bits"]) is not None]
        found.append(
            {
                "issue": issue,
                "tasks": of,
                "between_agents_bits": fmean(between) if between else None,
                "entropy_bits": fmean(tasks[task]["entropy_bits"] for task in of),
            }
        )
    return sorted(found, key=lambda each: (*_rank("", each)[:2], each["issue"]))
