"""How far several judges agree, how they lean, and whether one of them favours models of its own family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from policysweep.report.criteria import Side
from policysweep.report.families import model_families
from policysweep.report.figures import (
    Json,
    dimension_differences,
    estimate_json,
    mean_json,
    metric_differences,
)
from policysweep.report.judged import Judged
from policysweep.report.means import ColumnMeans
from policysweep.report.outcomes import KEYS
from policysweep.report.per_agent import Settings
from policysweep.report.reliability import POINTS, Alpha, alpha, points, rating_counts
from policysweep.report.scores import ScoreTable
from policysweep.report.statistics import FloatArray, IntArray

_BOTH_JUDGES = "scored units have this score of both judges"


def between_judges_section(judged: Judged, models: Mapping[str, str], settings: Settings) -> Json:
    """`models` is the model of each agent. Without a second judge there is nothing but the families."""
    several = len(judged.judges) > 1
    return {
        "judges": list(judged.judges),
        "reason": None if several else "agreement of judges needs at least two of them",
        "alpha": _alphas(judged, settings) if several else {},
        "outcome_alpha": alpha_json(_outcome_alpha(judged, settings)) if several else None,
        "bias": [_bias(judged, first, second) for first, second in combinations(judged.judges, 2)],
        "self_preference": [
            found for judge in judged.judges if (found := _self_preference(judged, judge, models))
        ],
    }


def alpha_json(found: Alpha) -> Json:
    """Value, interval, reason, and the items that at least two rated."""
    return {**estimate_json(found.estimate), "items": found.items}


def _alphas(judged: Judged, settings: Settings) -> dict[str, Json]:
    """Alpha of each metric over all recorded units; a turn is an item of its own."""
    found = {}
    for column, metric in enumerate(judged.criteria.metrics):
        units, turns, values = (
            np.concatenate(parts) for parts in zip(*_ratings(judged, column), strict=True)
        )
        items = units * (turns.max(initial=0) + 2) + turns + 1
        counts, tasks = rating_counts(items, points(values), judged.units.task[units], POINTS)
        found[metric] = alpha_json(alpha(counts, tasks, "ordinal", settings.seed))
    return found


def _ratings(judged: Judged, column: int) -> list[tuple[IntArray, IntArray, FloatArray]]:
    """Units, turns and values of each judge's scores on a metric."""
    kept = []
    for judge in judged.judges:
        lines = judged.lines(judge)
        lines = lines.where((lines.metric == column) & ~np.isnan(lines.value))
        kept.append((lines.unit, lines.turn, lines.value))
    return kept


def _outcome_alpha(judged: Judged, settings: Settings) -> Alpha:
    seen = [
        (unit, category)
        for judge in judged.judges
        for unit, (category, reason) in judged.outcomes(judge).items()
        if not reason
    ]
    units = np.array([unit for unit, _ in seen], dtype=np.int64)
    categories = np.array([category for _, category in seen], dtype=np.int64)
    counts, tasks = rating_counts(units, categories, judged.units.task[units], len(KEYS))
    return alpha(counts, tasks, "nominal", settings.seed)


def _bias(judged: Judged, first: str, second: str) -> Json:
    """Mean of second minus first over the units that both scored, on the agents' side."""
    rows = judged.all_scored()
    one, other = (judged.scores(judge, Side.AGENT) for judge in (first, second))
    table = ScoreTable(
        other.values[rows] - one.values[rows],
        one.not_applicable[rows] | other.not_applicable[rows],
        judged.units.task[rows],
        len(rows),
        _BOTH_JUDGES,
    )
    criteria = judged.criteria
    # A second judge often reads a sample on purpose: any number of units will do, and n stands beside it.
    return {
        "judges": [first, second],
        "metrics": metric_differences(table, criteria.columns(Side.AGENT), criteria, 0.0),
        "dimensions": dimension_differences(table, criteria.by_dimension(Side.AGENT), criteria, 0.0),
    }


def _self_preference(judged: Judged, judge: str, models: Mapping[str, str]) -> Json | None:
    """None for a judge that shares no family with an agent.

    `own` and `others` are this judge's scores minus the mean of the judges of other families, over the units
    of agents of its family and over those of the rest; a lenient judge is above 0 in both. `excess` is
    own minus others: what the judge gives its family beyond its leaning.
    """
    families = {name: model_families(judged.verdicts.infos[name].model) for name in judged.judges}
    own = [agent for agent in judged.units.agents if families[judge] & model_families(models[agent])]
    if not own:
        return None
    against = [name for name in judged.judges if not families[judge] & families[name]]
    return {
        "judge": judge,
        "families": sorted(families[judge]),
        "agents": own,
        "against": against,
        "reason": None if against else "no judge of another family to compare with",
        "dimensions": _excess(judged, judge, against, own) if against else {},
    }


def _excess(judged: Judged, judge: str, against: Sequence[str], own: Sequence[str]) -> dict[str, Json]:
    rows = judged.all_scored()
    difference = judged.scores(judge, Side.AGENT).values[rows] - _mean_of(judged, against, rows)
    related = np.isin(judged.units.agent[rows], [judged.units.agents.index(agent) for agent in own])
    none = np.full_like(difference, np.nan)
    related_only = np.where(related[:, None], difference, none)
    rest_only = np.where(related[:, None], none, difference)
    means = ColumnMeans(np.concatenate([related_only, rest_only], axis=1), judged.units.task[rows])
    found = {}
    for dimension, columns in judged.criteria.by_dimension(Side.AGENT).items():
        weights = judged.criteria.weights(columns)
        zero = np.zeros_like(weights)
        found[dimension] = {
            "own": mean_json(means.combine(np.concatenate([weights, zero]))),
            "others": mean_json(means.combine(np.concatenate([zero, weights]))),
            "excess": mean_json(means.combine(np.concatenate([weights, -weights]))),
        }
    return found


def _mean_of(judged: Judged, judges: Sequence[str], rows: IntArray) -> FloatArray:
    """Mean over the judges that scored a cell; NaN where none did."""
    values = np.stack([judged.scores(judge, Side.AGENT).values[rows] for judge in judges])
    n = (~np.isnan(values)).sum(axis=0)
    mean: FloatArray = np.divide(np.nansum(values, axis=0), n, out=np.full(n.shape, np.nan), where=n > 0)
    return mean
