"""Where the agents split most: every conversation at a glance, and the tasks ranked by disagreement."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from policysweep.report.html.markup import Child, Markup, el
from policysweep.report.html.parts import dim, figure, folded, list_address, listed, section, table
from policysweep.report.html.strips import strips
from policysweep.report.outcomes import KEYS, NO_OUTCOME
from policysweep.report.sentences import count, counted, decimal

Json = Mapping[str, Any]

_TOP = 10


def tasks_section(summary: Json, index: Json) -> Markup | None:
    """The mosaic and the ranking; None without tasks."""
    ranked = summary["splits"]["tasks"]
    if not ranked:
        return None
    outcomes = _outcomes(index)
    rows = [
        _row(found, {name: outcomes[found["task"]][name] for name in summary["agents"]}) for found in ranked
    ]
    return section("tasks", "Where the agents split", _mosaic(index), _ranking(rows), _shared(summary))


def _mosaic(index: Json) -> Markup:
    return figure(
        "mosaic",
        f"Every conversation by its outcome, n = {count(len(index['units']))}: a row is a task, the most "
        "divided on top; a column is a customer persona; a panel is an agent. Rows that differ between "
        "panels are tasks that the agents decide differently. Select a cell to read the conversation.",
        "Outcome of every conversation by agent, task and persona",
    )


def _ranking(rows: Sequence[Sequence[Child]]) -> Child:
    columns = ["Task and what is open in the policy", "Outcomes by agent"]
    columns += ["Bits between agents", "All agree", "Units"]
    title = "Tasks by how much they divide the agents"
    return [
        el(
            "p",
            "Bits between agents is the entropy of the agents' outcomes on the same case, averaged over the "
            "cases of the task: 0 when they always agree. A strip shows an agent's conversations by outcome.",
        ),
        table(title, columns, rows[:_TOP], words=2),
        folded(
            f"The other {counted(len(rows) - _TOP, 'task')}",
            table(f"{title}, from rank {_TOP + 1}", columns, rows[_TOP:], words=2),
        )
        if len(rows) > _TOP
        else None,
    ]


def _shared(summary: Json) -> Child:
    """Issues that are named for several tasks, by how much these divide the agents."""
    rows: list[Sequence[Child]] = [
        [found["issue"], ", ".join(found["tasks"]), decimal(found["between_agents_bits"])]
        for found in summary["splits"]["issues"]
        if len(found["tasks"]) > 1 and found["between_agents_bits"] is not None
    ]
    if not rows:
        return None
    columns = ["What is open in the policy", "Tasks", "Mean bits between agents"]
    return folded("Issues that several tasks share", table("Issues of several tasks", columns, rows, words=2))


def _outcomes(index: Json) -> Mapping[str, Mapping[str, Counter[str]]]:
    """Units by task, agent and category; units that are not scored left out."""
    found: defaultdict[str, defaultdict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for unit in index["units"]:
        fault, task = unit.get("fault"), index["scenarios"][unit["scenario"]]["task"]
        key = KEYS[NO_OUTCOME] if fault == "AGENT" else unit.get("outcome")
        if key and fault in (None, "AGENT"):
            found[task][unit["agent"]][key] += 1
    return found


def _row(found: Json, outcomes: Mapping[str, Counter[str]]) -> Sequence[Child]:
    kinds = ", ".join([*found["ambiguity_types"], *filter(None, [found["complexity"]])])
    address = list_address(task=found["task"])
    bits = found["between_agents_bits"]
    return [
        [
            el("a", found["task"], href=address),
            [" ", found["summary"]] if found["summary"] else None,
            listed(found["issues"], class_="issues"),
            dim(kinds),
        ],
        strips(outcomes),
        decimal(bits) if bits is not None else dim("none"),
        f"{count(found['all_agree'])} of {count(found['conversations'])}",
        count(found["units"]),
    ]
