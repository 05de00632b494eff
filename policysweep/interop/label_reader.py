"""From the rows of a label file to labels of a run's units.

A row is held against the run: it must name exactly one unit that has a record, a metric of the run's rubric
when one is known, and a value of the metric's scale. Each cell is checked by itself, so that one reading of a
file tells all that is wrong with it.
"""

from __future__ import annotations

import difflib
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from policysweep.datasets.problems import Problem
from policysweep.interop.dripr.shape import PERSONAS, persona_name
from policysweep.interop.label_files import Row
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2, run_pb2

OUTCOME = "outcome"
"""The metric whose value is the outcome that a person saw."""
LOWEST, HIGHEST = 1, 5
"""The scale of all other metrics."""

_METRIC = re.compile(r"[a-z][a-z0-9_]{0,63}")
_WHOLE = re.compile(r"[0-9]{1,9}")
_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")
_PREFIX = re.compile(r"[0-9a-f]{1,32}")
_LONGEST_ANNOTATOR = 100
_OUTCOMES = [name.removeprefix("OUTCOME_") for name, number in ep.Outcome.items() if number]
_SHOWN = 3

Metrics = Mapping[str, bool]
"""Metrics that may be labelled, and whether each looks at turns."""


def metrics_of(rubric: judge_pb2.Rubric) -> Metrics:
    """The metrics of a rubric."""
    return {metric.key: metric.level == judge_pb2.METRIC_LEVEL_TURN for metric in rubric.metrics}


class _Cell(Exception):
    """Something is wrong with a cell."""

    def __init__(self, column: str, message: str) -> None:
        super().__init__(message)
        self.column = column
        self.message = message


class LabelReader:
    """Turns rows into labels, and gathers what is wrong with them."""

    def __init__(self, units: Iterable[run_pb2.Unit], metrics: Metrics | None) -> None:
        """`units` are those that have a record. `metrics` is None when the run knows no rubric: then only the
        form of a metric's key is checked.
        """
        self.problems: list[Problem] = []
        self._metrics = metrics
        self._units = sorted(units, key=lambda unit: unit.unit_id)
        self._ids = [unit.unit_id for unit in self._units]
        self._of_scenario: defaultdict[str, list[run_pb2.Unit]] = defaultdict(list)
        for unit in self._units:
            self._of_scenario[unit.scenario_id].append(unit)

    def label(self, row: Row) -> run_pb2.HumanLabel | None:
        """The label of a row that has what it needs; None when something is wrong, see `problems`."""
        label = run_pb2.HumanLabel()
        before = len(self.problems)
        for fill in (self._unit, self._metric, self._message_index, self._value, self._annotator):
            try:
                fill(row, label)
            except _Cell as cell:
                self.problems.append(row.problem(cell.column, cell.message))
        return label if len(self.problems) == before else None

    def _unit(self, row: Row, label: run_pb2.HumanLabel) -> None:
        found = [unit for unit in self._candidates(row) if _fits(unit, row)]
        if len(found) != 1:
            given = ("unit", "scenario", "agent", "trial", "agent_persona")
            told = ", ".join(f"{name} {row.cell(name)}" for name in given if row.cell(name))
            ids = ", ".join(unit.unit_id for unit in found[:_SHOWN])
            some = (
                f"{len(found)} recorded units have {told}: {ids}" if found else f"no recorded unit has {told}"
            )
            raise _Cell("unit" if row.cell("unit") else "scenario", some)
        label.unit_id = found[0].unit_id

    def _candidates(self, row: Row) -> Sequence[run_pb2.Unit]:
        """Units with the id or the scenario of a row."""
        prefix, scenario = row.cell("unit"), row.cell("scenario")
        if not prefix and not scenario:
            raise _Cell("unit", "is missing: name a unit, or a scenario with its agent and trial")
        if not prefix:
            return self._of_scenario.get(scenario, ())
        if not _PREFIX.fullmatch(prefix):
            raise _Cell("unit", f"must be a unit id or the beginning of one, in hex digits, is {prefix!r}")
        return self._units[bisect_left(self._ids, prefix) : bisect_left(self._ids, f"{prefix}g")]

    def _metric(self, row: Row, label: run_pb2.HumanLabel) -> None:
        label.metric = row.cell("metric")
        if not _METRIC.fullmatch(label.metric):
            raise _Cell("metric", f"must be the key of a metric, or {OUTCOME!r}, is {label.metric!r}")
        if self._metrics is not None and label.metric not in (*self._metrics, OUTCOME):
            near = difflib.get_close_matches(label.metric, self._metrics, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(self._metrics)}"
            raise _Cell("metric", f"the run's rubric has no {label.metric!r}; {hint}")

    def _message_index(self, row: Row, label: run_pb2.HumanLabel) -> None:
        cell, metric = row.cell("message_index"), label.metric
        looks_at_turns = False if metric == OUTCOME else (self._metrics or {}).get(metric)
        if not cell:
            if looks_at_turns:
                raise _Cell("message_index", f"is missing: {metric!r} looks at turns")
            return
        if looks_at_turns is False:
            raise _Cell("message_index", f"must be left out: {metric!r} does not look at turns")
        label.message_index = _whole(row, "message_index")

    def _value(self, row: Row, label: run_pb2.HumanLabel) -> None:
        value = row.cell("value")
        if label.metric == OUTCOME:
            if value not in _OUTCOMES:
                raise _Cell("value", f"must be one of {', '.join(_OUTCOMES)}, is {value!r}")
            label.outcome = ep.Outcome.Value(f"OUTCOME_{value}")
        elif not _NUMBER.fullmatch(value) or not LOWEST <= float(value) <= HIGHEST:
            raise _Cell("value", f"must be a number from {LOWEST} to {HIGHEST}, is {value!r}")
        else:
            label.value = float(value)

    def _annotator(self, row: Row, label: run_pb2.HumanLabel) -> None:
        label.annotator = row.cell("annotator")
        if not label.annotator.isprintable() or not 0 < len(label.annotator) <= _LONGEST_ANNOTATOR:
            raise _Cell("annotator", f"must be 1 to {_LONGEST_ANNOTATOR} characters in one line")


def _fits(unit: run_pb2.Unit, row: Row) -> bool:
    """Whether a unit has what a row says of it beside its id."""
    if row.cell("scenario") and unit.scenario_id != row.cell("scenario"):
        return False
    if row.cell("agent") and unit.agent != row.cell("agent"):
        return False
    if row.cell("trial") and unit.trial != _whole(row, "trial"):
        return False
    return not row.cell("agent_persona") or unit.agent_persona == _persona(row)


def _persona(row: Row) -> ep.AgentPersona.ValueType:
    persona = persona_name(row.cell("agent_persona"))
    if persona not in PERSONAS:
        raise _Cell("agent_persona", f"must be one of {', '.join(PERSONAS)}, is {persona!r}")
    return ep.AgentPersona.Value(f"AGENT_PERSONA_{persona}")


def _whole(row: Row, column: str) -> int:
    cell = row.cell(column)
    if not _WHOLE.fullmatch(cell):
        raise _Cell(column, f"must be a whole number, counted from 0, is {cell!r}")
    return int(cell)
