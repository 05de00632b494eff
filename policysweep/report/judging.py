"""The part of report.json that the judges' scores make up: `judging`.

    rubric       what was asked
    left_out     verdicts that no figure rests on, by why
    judges       by name: who it is, how reliably it answered, what it took, and its scores of every agent
    between_judges, calibration    see `between_judges.py`, `calibration.py`

An agent's dimension scores leave out the metrics of the simulated customer, which have a section of their
own; the paper's definition, which pools both sides, stands beside them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import combinations

import numpy as np
from google.protobuf.json_format import MessageToDict

from policysweep.report.between_judges import between_judges_section
from policysweep.report.calibration import calibration_section
from policysweep.report.criteria import Criteria, Side
from policysweep.report.families import model_families
from policysweep.report.figures import (
    Json,
    dimension_differences,
    dimension_levels,
    level_json,
    metric_differences,
    metric_levels,
    partial,
    withheld,
)
from policysweep.report.judge_answers import answers_section
from policysweep.report.judge_outcomes import outcome_section
from policysweep.report.judged import Judged
from policysweep.report.per_agent import Settings
from policysweep.report.scores import ScoreTable, absences, low_mass, reason_name
from policysweep.report.statistics import IntArray
from policysweep.v1 import judge_pb2, run_pb2

_BOTH_AGENTS = "planned conversations have this score of both agents"


def judging_section(
    judged: Judged, models: Mapping[str, str], labels: Iterable[run_pb2.HumanLabel], settings: Settings
) -> Json:
    """Everything that the judges found. `models` is the model of each agent."""
    return {
        "rubric": _rubric(judged.criteria),
        "left_out": judged.left_out,
        "judges": {name: _judge(judged, name, settings) for name in judged.judges},
        "between_judges": between_judges_section(judged, models, settings),
        "calibration": calibration_section(judged, labels, settings),
    }


def _rubric(criteria: Criteria) -> Json:
    rubric = criteria.rubric
    return {
        "name": rubric.ref.name,
        "version": rubric.ref.version,
        "digest": rubric.digest,
        "min_scale_mass": rubric.min_scale_mass,
        "dimensions": [{"key": each.key, "title": each.title} for each in rubric.dimensions],
        "panels": [{"key": each.key, "title": each.title, "digest": each.digest} for each in rubric.panels],
        "metrics": [_metric(metric) for metric in rubric.metrics],
    }


def _metric(metric: judge_pb2.Metric) -> Json:
    sides = [side.name for side in (Side.AGENT, Side.CUSTOMER) if not side.value.isdisjoint(metric.subjects)]
    return {
        "key": metric.key,
        "title": metric.title,
        "dimension": metric.dimension,
        "panel": metric.panel,
        "level": judge_pb2.MetricLevel.Name(metric.level).removeprefix("METRIC_LEVEL_"),
        "sides": sides,
        "derived": metric.derived,
    }


def _judge(judged: Judged, judge: str, settings: Settings) -> Json:
    info = judged.verdicts.infos[judge]
    return {
        "info": {**_info(info), "families": sorted(model_families(info.model))},
        **answers_section(judged, judge),
        "agents": {name: _agent(judged, judge, name, settings) for name in judged.units.agents},
        "customer": _customer(judged, judge, settings),
        "differences": [
            _difference(judged, judge, first, second, settings)
            for first, second in combinations(judged.units.agents, 2)
        ],
    }


def _info(info: judge_pb2.JudgeInfo) -> Json:
    """All that changes the judge's behaviour, under the contract's names."""
    found: Json = MessageToDict(
        info, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    return found


def _agent(judged: Judged, judge: str, agent: str, settings: Settings) -> Json:
    criteria, minimum = judged.criteria, settings.min_coverage
    rows, planned = judged.rows(agent, Side.AGENT), judged.planned[agent]
    own, pooled = (judged.table(judge, side, rows, planned) for side in (Side.AGENT, Side.POOLED))
    return {
        "metrics": _metrics(judged, judge, Side.AGENT, rows, own, minimum),
        "dimensions": dimension_levels(own, criteria.by_dimension(Side.AGENT), criteria, minimum),
        "pooled_dimensions": dimension_levels(pooled, criteria.by_dimension(Side.POOLED), criteria, minimum),
        "outcome": outcome_section(judged, judge, agent, settings),
    }


def _metrics(
    judged: Judged, judge: str, side: Side, rows: IntArray, table: ScoreTable, minimum: float
) -> dict[str, Json]:
    """Every metric with what became of its planned units and of its single scores.

    planned = n + not_applicable + without_score + not_judged.
    """
    criteria, scores, lines = judged.criteria, judged.scores(judge, side), judged.lines(judge)
    lines = lines.where(np.isin(lines.unit, rows) & np.isin(lines.subject, list(side.value)))
    absent = absences(lines)
    low = Counter(lines.metric[low_mass(lines, criteria)].tolist())
    found = metric_levels(table, criteria.columns(side), criteria, minimum)
    for metric, figure in found.items():
        column = criteria.column[metric]
        judged_units = int(scores.judged[rows, column].sum())
        figure |= {
            "without_score": judged_units - figure["n"] - figure["not_applicable"],
            "not_judged": table.planned - judged_units,
            "incomplete": int(scores.incomplete[rows, column].sum()),
            "absent": {
                reason_name(reason): absent[column, reason]
                for reason in sorted(reason for of, reason in absent if of == column)
            },
            "low_mass": low[column],
        }
    return found


def _customer(judged: Judged, judge: str, settings: Settings) -> Json:
    """Quality of the customer simulator: over all units, and in the conversations with each agent."""
    rows = {name: judged.rows(name, Side.CUSTOMER) for name in judged.units.agents}
    everything = np.sort(np.concatenate([*rows.values(), np.array([], dtype=np.int64)]))
    return {
        "all": _customer_of(judged, judge, everything, sum(judged.planned.values()), settings),
        "agents": {
            name: _customer_of(judged, judge, rows[name], judged.planned[name], settings) for name in rows
        },
    }


def _customer_of(judged: Judged, judge: str, rows: IntArray, planned: int, settings: Settings) -> Json:
    criteria, minimum = judged.criteria, settings.min_coverage
    columns, table = criteria.columns(Side.CUSTOMER), judged.table(judge, Side.CUSTOMER, rows, planned)
    lacks = partial(table.missing(columns, criteria, minimum), len(columns))
    return {
        "overall": level_json(withheld(table.combined(columns, criteria), lacks)),
        "metrics": _metrics(judged, judge, Side.CUSTOMER, rows, table, minimum),
    }


def _difference(judged: Judged, judge: str, first: str, second: str, settings: Settings) -> Json:
    """Second minus first over matched conversations; p-values are adjusted within the pair."""
    criteria, units, minimum = judged.criteria, judged.units, settings.min_coverage
    one, other = units.matched(units.agents.index(first), units.agents.index(second))
    scores = judged.scores(judge, Side.AGENT)
    table = ScoreTable(
        scores.values[other] - scores.values[one],
        scores.not_applicable[one] | scores.not_applicable[other],
        units.task[one],
        max(judged.planned[first], judged.planned[second]),
        _BOTH_AGENTS,
    )
    return {
        "agents": [first, second],
        "matched": len(one),
        "metrics": metric_differences(table, criteria.columns(Side.AGENT), criteria, minimum),
        "dimensions": dimension_differences(table, criteria.by_dimension(Side.AGENT), criteria, minimum),
    }
