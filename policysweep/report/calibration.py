"""The judges against people: how far a judge's scores are from human labels of the same items.

Every label is paired with the judge's score of the same item: unit, metric and, for metrics that look at
turns, message. Several people may label one item; each label is a pair of its own. A label without a score
to hold it against is counted, by why.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from policysweep.errors import InputError
from policysweep.report import agreement
from policysweep.report.between_judges import alpha_json
from policysweep.report.criteria import HIGHEST, LOWEST
from policysweep.report.figures import Json, estimate_json, interval_json, mean_json
from policysweep.report.judged import Judged
from policysweep.report.means import ColumnMeans
from policysweep.report.outcomes import KEYS
from policysweep.report.per_agent import Settings
from policysweep.report.reliability import POINTS, Alpha, Level, alpha, points, rating_counts, weighted_kappa
from policysweep.report.statistics import FloatArray, IntArray, per_task, proportion
from policysweep.report.verdicts import NO_TURN
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import run_pb2

OUTCOME = "outcome"
"""What stands for the metric in a label of the outcome."""


class Item(NamedTuple):
    """What is rated once by each rater: the place of the unit, and the turn."""

    unit: int
    turn: int


@dataclass(slots=True)
class Labels:
    """Human labels by metric: pairs of item and value. An outcome's value is its category."""

    by_metric: dict[str, list[tuple[Item, float]]] = field(default_factory=lambda: defaultdict(list))
    annotators: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    left_out: Counter[str] = field(default_factory=Counter)


def calibration_section(
    judged: Judged, labels: Iterable[run_pb2.HumanLabel], settings: Settings
) -> Json | None:
    """None without labels. InputError for a label that is no score of the scale, or that comes twice."""
    sorted_labels = _read(labels, judged)
    if sorted_labels is None:
        return None
    return {
        "left_out": dict(sorted(sorted_labels.left_out.items())),
        "people": {
            metric: {
                "labels": len(pairs),
                "items": len({item for item, _ in pairs}),
                "annotators": len(sorted_labels.annotators[metric]),
                "alpha": alpha_json(_alpha(judged, metric, pairs, [], settings)),
            }
            for metric, pairs in sorted_labels.by_metric.items()
        },
        "judges": {judge: _judge(judged, judge, sorted_labels, settings) for judge in judged.judges},
    }


def _read(labels: Iterable[run_pb2.HumanLabel], judged: Judged) -> Labels | None:
    found, seen = Labels(), set()
    for label in labels:
        turn = label.message_index if label.HasField("message_index") else NO_TURN
        key = (label.annotator, label.unit_id, label.metric, turn)
        if key in seen:
            raise InputError(f"{_where(label)}: annotator {label.annotator!r} gave two; keep one")
        seen.add(key)
        value = _value(label)
        if label.metric != OUTCOME and label.metric not in judged.criteria.column:
            found.left_out["OTHER_METRIC"] += 1
        elif label.unit_id not in judged.units.position:
            found.left_out["NO_RECORD"] += 1
        else:
            item = Item(judged.units.position[label.unit_id], turn)
            found.by_metric[label.metric].append((item, value))
            found.annotators[label.metric].add(label.annotator)
    if not seen:
        return None
    order = {metric: place for place, metric in enumerate((*judged.criteria.metrics, OUTCOME))}
    found.by_metric = {
        metric: sorted(found.by_metric[metric]) for metric in sorted(found.by_metric, key=order.__getitem__)
    }
    return found


def _value(label: run_pb2.HumanLabel) -> float:
    if label.metric == OUTCOME:
        if label.outcome not in ep.Outcome.values():
            raise InputError(f"{_where(label)}: outcome {label.outcome} is not known")
        return float(label.outcome)
    if not (label.HasField("value") and LOWEST <= label.value <= HIGHEST):
        stated = label.value if label.HasField("value") else "none"
        raise InputError(f"{_where(label)}: the value must be from {LOWEST} to {HIGHEST}, not {stated}")
    return label.value


def _where(label: run_pb2.HumanLabel) -> str:
    message = f", message {label.message_index}" if label.HasField("message_index") else ""
    return f"Label of unit {label.unit_id}{message}, metric {label.metric!r}"


def _judge(judged: Judged, judge: str, labels: Labels, settings: Settings) -> Json:
    """Per metric, the judge against the labels that have a score of it; `no_score` counts the others."""
    found: Json = {"metrics": {}, "outcome": None}
    for metric, pairs in labels.by_metric.items():
        scores = _scores(judged, judge, metric, {item for item, _ in pairs})
        matched = [(item, value) for item, value in pairs if item in scores]
        units = np.array([item.unit for item, _ in matched], dtype=np.int64)
        human = np.array([value for _, value in matched], dtype=np.float64)
        own = np.array([scores[item] for item, _ in matched], dtype=np.float64)
        counts = {
            "n": len(matched),
            "items": len({item for item, _ in matched}),
            "no_score": len(pairs) - len(matched),
        }
        shared = _alpha(judged, metric, matched, sorted(scores.items()), settings)
        compare = _outcomes if metric == OUTCOME else _distances
        figures = compare(human, own, judged.units.task[units], settings)
        entry = {**counts, **figures, "alpha": alpha_json(shared)}
        if metric == OUTCOME:
            found["outcome"] = entry
        else:
            found["metrics"][metric] = entry
    return found


def _scores(judged: Judged, judge: str, metric: str, items: set[Item]) -> dict[Item, float]:
    """The judge's scores of some items, absent ones left out."""
    if metric == OUTCOME:
        seen = judged.outcomes(judge)
        return {
            item: float(seen[item.unit][0]) for item in items if item.unit in seen and not seen[item.unit][1]
        }
    lines = judged.lines(judge)
    column = judged.criteria.column[metric]
    lines = lines.where((lines.metric == column) & np.isin(lines.unit, [item.unit for item in items]))
    lines = lines.where(~np.isnan(lines.value))
    found = zip(map(Item, lines.unit.tolist(), lines.turn.tolist()), lines.value.tolist(), strict=True)
    return {item: value for item, value in found if item in items}


def _distances(human: FloatArray, own: FloatArray, tasks: IntArray, settings: Settings) -> Json:
    """Judge minus human: bias, mean absolute error, and the quadratic-weighted kappa."""
    differences = own - human
    means = ColumnMeans(np.stack([differences, abs(differences)], axis=1), tasks)
    return {
        "bias": mean_json(means.column(0)),
        "mean_absolute_error": mean_json(means.column(1)),
        "weighted_kappa": estimate_json(weighted_kappa(points(human), points(own), tasks, settings.seed)),
    }


def _outcomes(human: FloatArray, own: FloatArray, tasks: IntArray, settings: Settings) -> Json:
    """Share of labels with the judge's outcome, and Cohen's kappa."""
    grid = np.stack([human, own], axis=1).astype(np.int8)
    tasks = np.unique(tasks, return_inverse=True)[1]
    same = per_task(grid[:, 0] == grid[:, 1], tasks)
    rate = proportion(same, per_task(np.ones(len(grid)), tasks))
    return {
        "rate": rate.value,
        "interval": interval_json(rate.interval),
        "cohen_kappa": estimate_json(agreement.cohen(grid, tasks, len(KEYS), settings.seed)),
    }


def _alpha(
    judged: Judged,
    metric: str,
    pairs: Iterable[tuple[Item, float]],
    scores: Iterable[tuple[Item, float]],
    settings: Settings,
) -> Alpha:
    """Alpha over the people and, with `scores`, the judge as one more rater."""
    ratings = [*pairs, *scores]
    units = np.array([item.unit for item, _ in ratings], dtype=np.int64)
    turns = np.array([item.turn for item, _ in ratings], dtype=np.int64)
    values = np.array([value for _, value in ratings], dtype=np.float64)
    level: Level = "nominal" if metric == OUTCOME else "ordinal"
    categories = values.astype(np.int64) if metric == OUTCOME else points(values)
    number = len(KEYS) if metric == OUTCOME else POINTS
    items = units * (turns.max(initial=0) + 2) + turns + 1
    counts, tasks = rating_counts(items, categories, judged.units.task[units], number)
    return alpha(counts, tasks, level, settings.seed)
