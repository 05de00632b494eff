"""Two runs of one data set against each other, over the conversations that both have.

A conversation of the first run is matched with that of the same scenario, agent persona and trial in the
second; customer, order and seed follow from these, so a match is the same case. Only matches with a scored
unit on both sides count. Which agents are matched is a list of pairs: as a rule each with its namesake.

Per pair of agents: outcomes (see `outcome_changes.py`), scores by every judge that judged both runs, and
tokens. A judge's verdict on a dimension is

    better, worse         the difference is larger than chance explains: p < 5% after Holm over the dimensions
    no difference shown   it is not, which does not show that there is none
    withheld              too few conversations have the scores
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np

from policysweep.errors import InputError
from policysweep.report.bootstrap import REPLICATES
from policysweep.report.coverage import Coverage
from policysweep.report.criteria import Criteria, Side
from policysweep.report.figures import Json, dimension_differences, metric_differences
from policysweep.report.judged import Judged
from policysweep.report.means import ColumnMeans
from policysweep.report.outcome_changes import FLIPS, outcomes_section
from policysweep.report.per_agent import Settings, tokens_json
from policysweep.report.rows import Row, Tokens
from policysweep.report.scores import Scores, ScoreTable
from policysweep.report.statistics import CONFIDENCE, FloatArray, IntArray
from policysweep.report.units import Units
from policysweep.report.verdicts import Verdicts
from policysweep.v1 import judge_pb2, run_pb2

SCHEMA_VERSION = 1

SIGNIFICANT = 1.0 - CONFIDENCE

_BOTH_RUNS = "planned conversations have this score in both runs"


@dataclass(frozen=True, slots=True)
class Run:
    """One run. `planned` is the number of planned units of each agent; `verdicts` is None when not judged."""

    manifest: run_pb2.RunManifest
    rows: Sequence[Row]
    planned: Mapping[str, int]
    verdicts: Verdicts | None


class Matched(NamedTuple):
    """Positions of matched units in the `Units` of either run."""

    first: IntArray
    second: IntArray


class _Side:
    """One run, prepared."""

    def __init__(self, run: Run) -> None:
        self.manifest, self.planned = run.manifest, run.planned
        names = [entry.name for entry in run.manifest.agents]
        self.units = Units(run.rows, names)
        self.row = {row.unit_id: row for row in run.rows}
        self.judged = Judged(run.verdicts, self.units, run.planned) if run.verdicts else None


def compare_runs(
    first: Run,
    second: Run,
    pairs: Sequence[tuple[str, str]] = (),
    *,
    changes: Iterable[str] = (),
    min_coverage: float = 0.95,
    seed: int = 0,
) -> Json:
    """Second minus first.

    `pairs` names an agent of the first run and one of the second each; without, every agent is compared with
    its namesake. `changes` are phrases that say what else differs between the runs, and are passed through.

    Raises InputError for runs of different data sets, and for agents that a run does not have.
    """
    _refuse_other_data(first.manifest, second.manifest)
    sides = _Side(first), _Side(second)
    settings = Settings(min_coverage, seed)
    return {
        "schema_version": SCHEMA_VERSION,
        "rehearsal": any(_rehearsal(run) for run in (first, second)),
        "runs": [_run(run.manifest) for run in (first, second)],
        "methods": {
            "confidence": CONFIDENCE,
            "bootstrap_replicates": REPLICATES,
            "sign_flips": FLIPS,
            "seed": seed,
            "min_coverage": min_coverage,
            "difference": "second minus first over matched conversations",
            "verdict": f"p below {SIGNIFICANT:.0%} after Holm over the dimensions",
        },
        "changes": list(changes),
        "judges": _judges(*sides),
        "pairs": [_pair(*sides, one, other, settings) for one, other in pairs or _namesakes(*sides)],
    }


def _refuse_other_data(first: run_pb2.RunManifest, second: run_pb2.RunManifest) -> None:
    if first.dataset.digest != second.dataset.digest:
        raise InputError(
            f"Run {first.run!r} played data set {_data(first)}, run {second.run!r} played {_data(second)}: "
            "only runs of the same scenarios and order worlds can be compared."
        )


def _data(manifest: run_pb2.RunManifest) -> str:
    return f"{manifest.dataset.name!r} with digest {manifest.dataset.digest[:12] or '(none)'}"


def _rehearsal(run: Run) -> bool:
    judged = run.verdicts is not None and any(info.rehearsal for info in run.verdicts.infos.values())
    return run.manifest.rehearsal or judged or any(row.rehearsal for row in run.rows)


def _run(manifest: run_pb2.RunManifest) -> Json:
    return {
        "run": manifest.run,
        "version": manifest.version,
        "dataset": manifest.dataset.name,
        "dataset_digest": manifest.dataset.digest,
        "trials": manifest.trials,
        "agents": {entry.name: entry.info.model for entry in manifest.agents},
    }


def _namesakes(first: _Side, second: _Side) -> list[tuple[str, str]]:
    common = [name for name in first.units.agents if name in second.units.agents]
    if not common:
        raise InputError(
            f"No agent is in both runs: {first.manifest.run!r} has {_names(first)}, "
            f"{second.manifest.run!r} has {_names(second)}; name the two to compare (--agent-a, --agent-b)."
        )
    return [(name, name) for name in common]


def _names(side: _Side) -> str:
    return ", ".join(side.units.agents) or "none"


def _agent(side: _Side, name: str) -> int:
    if name not in side.units.agents:
        raise InputError(f"Run {side.manifest.run!r} has no agent {name!r}; it has {_names(side)}.")
    return side.units.agents.index(name)


def _pair(first: _Side, second: _Side, one: str, other: str, settings: Settings) -> Json:
    matched = _match(first, second, one, other)
    planned = max(first.planned[one], second.planned[other])
    kind = "planned conversations have a scored unit in both runs"
    coverage = Coverage(len(matched.first), planned, kind)
    withheld = coverage.withheld(settings.min_coverage)
    units = first.units
    return {
        "agents": [one, other],
        "matched": {
            "conversations": len(matched.first),
            "planned": planned,
            "coverage": coverage.share,
            "scenarios": len({units.scenario[unit] for unit in matched.first}),
            "tasks": len(np.unique(units.task[matched.first])),
        },
        "withheld": withheld or None,
        "outcomes": outcomes_section(
            first.units, second.units, matched.first, matched.second, withheld, settings
        ),
        "scores": {
            judge: _scores(first, second, matched, judge, planned, settings)
            for judge, why in _judges(first, second).items()
            if why is None
        },
        "tokens": [_tokens(side, rows) for side, rows in zip((first, second), matched, strict=True)],
    }


def _match(first: _Side, second: _Side, one: str, other: str) -> Matched:
    ours, theirs = (
        side.units.conversations(_agent(side, name)) for side, name in ((first, one), (second, other))
    )
    both = [key for key in ours if key in theirs]
    return Matched(
        np.array([ours[key] for key in both], dtype=np.int64),
        np.array([theirs[key] for key in both], dtype=np.int64),
    )


def _tokens(side: _Side, rows: IntArray) -> Json:
    """Tokens of the matched units."""
    ids = list(side.units.position)
    found = [side.row[ids[unit]] for unit in rows]
    return {
        "agent": tokens_json(reduce(Tokens.plus, (row.agent_tokens for row in found), Tokens())),
        "customer": tokens_json(reduce(Tokens.plus, (row.customer_tokens for row in found), Tokens())),
    }


# ------------------------------------------------------------------ judges


def _judges(first: _Side, second: _Side) -> dict[str, str | None]:
    """Every judge of either run, and why its scores are not compared; None when they are."""
    infos = [side.judged.verdicts.infos if side.judged else {} for side in (first, second)]
    runs = [side.manifest.run for side in (first, second)]
    found: dict[str, str | None] = {}
    for name in {**infos[0], **infos[1]}:
        lacking = [run for run, of in zip(runs, infos, strict=True) if name not in of]
        if lacking:
            found[name] = f"it did not judge run {lacking[0]!r}"
        elif _behaviour(infos[0][name]) != _behaviour(infos[1][name]):
            found[name] = "its model or its sampling is not the same in both runs"
        else:
            found[name] = None
    return found


def _behaviour(info: judge_pb2.JudgeInfo) -> judge_pb2.JudgeInfo:
    """What must be equal for scores to be of one judge; the digest of each panel covers the prompts."""
    kept = judge_pb2.JudgeInfo()
    kept.CopyFrom(info)
    kept.ClearField("version")
    kept.ClearField("prompt_digest")
    return kept


def _scores(
    first: _Side, second: _Side, matched: Matched, judge: str, planned: int, settings: Settings
) -> Json:
    """Differences by metric and dimension of the first run's rubric, with a verdict on each dimension."""
    assert first.judged is not None  # `_judges` lets only judges of both runs through
    assert second.judged is not None
    criteria, minimum = first.judged.criteria, settings.min_coverage
    columns = _same_question(criteria, second.judged.criteria)
    before = _rows(first.judged.scores(judge, Side.AGENT), list(range(len(columns))), matched.first)
    after = _rows(second.judged.scores(judge, Side.AGENT), columns, matched.second)
    tasks = first.units.task[matched.first]
    beside = before[1] | after[1]
    table = ScoreTable(after[0] - before[0], beside, tasks, planned, _BOTH_RUNS)
    dimensions = dimension_differences(table, criteria.by_dimension(Side.AGENT), criteria, minimum)
    both = ~np.isnan(table.values)
    levels = [ColumnMeans(np.where(both, values, np.nan), tasks) for values, _ in (before, after)]
    titles = {each.key: each.title for each in criteria.rubric.dimensions}
    for name, difference in dimensions.items():
        weights = criteria.weights(criteria.members(name, Side.AGENT))
        given = difference["mean"] is not None
        difference["runs"] = [level.combine(weights).value if given else None for level in levels]
        difference["title"] = titles[name]
        difference["verdict"] = _verdict(difference)
    asked = [key for key, column in zip(criteria.metrics, columns, strict=True) if column is None]
    return {
        "asked_differently": asked,
        "dimensions": dimensions,
        "metrics": metric_differences(table, criteria.columns(Side.AGENT), criteria, minimum),
    }


def _same_question(first: Criteria, second: Criteria) -> list[int | None]:
    """For each metric of the first rubric its column in the second, None when its panel has been edited."""
    panels = {metric.key: metric.panel for metric in second.rubric.metrics}
    same = {
        metric.key
        for metric in first.rubric.metrics
        if panels.get(metric.key) == metric.panel
        and first.panels[metric.panel] == second.panels[metric.panel]
    }
    return [second.column[key] if key in same else None for key in first.metrics]


def _rows(
    scores: Scores, columns: Sequence[int | None], rows: IntArray
) -> tuple[FloatArray, np.typing.NDArray[np.bool_]]:
    """Values and what does not apply: [rows, columns], nothing in a column that is None."""
    values = np.full((len(rows), len(columns)), np.nan)
    beside = np.zeros(values.shape, dtype=bool)
    for place, column in enumerate(columns):
        if column is not None:
            values[:, place] = scores.values[rows, column]
            beside[:, place] = scores.not_applicable[rows, column]
    return values, beside


def _verdict(difference: Json) -> str:
    if difference["mean"] is None:
        return "withheld"
    if difference["p_holm"] is None or difference["p_holm"] >= SIGNIFICANT:
        return "no difference shown"
    return "better" if difference["mean"] > 0 else "worse"
