"""From answers to a panel's verdict; pure. One answer as a rule, several when samples are repeated.

A value is the mean over the answers that have one, and says how many they were; without any it is absent for
the first answer's reason. What follows from other values is computed here and never asked of the judge.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2
from services.judge.answer import Absent, Answer, GoalReading, Reading
from services.judge.rubric import SCALE, Metric
from services.judge.score_sheet import ScoreSheet, Slot

_Found = TypeVar("_Found", bool, "ep.Outcome.ValueType")


def fill_verdict(verdict: judge_pb2.PanelVerdict, sheet: ScoreSheet, answers: Sequence[Answer]) -> None:
    """Put the scores, the outcome and the goals of `answers` to `sheet` into `verdict`."""
    for position, slot in enumerate(sheet.slots):
        verdict.scores.append(_score(slot, [answer.scores[position] for answer in answers]))
    for metric in sheet.derived:
        verdict.scores.append(_DERIVATIONS[str(metric.derived)](metric, sheet, answers))
    for slot in sheet.not_applicable:
        verdict.scores.append(
            _named(slot, judge_pb2.Score(absent_reason=judge_pb2.ABSENT_REASON_NOT_APPLICABLE))
        )
    if sheet.panel.outcome:
        verdict.outcome.CopyFrom(_outcome(answers))
    verdict.goals.extend(_goals(sheet, answers))


def _named(slot: Slot, score: judge_pb2.Score) -> judge_pb2.Score:
    score.metric, score.subject = slot.metric, slot.subject
    if slot.message_index is not None:
        score.message_index = slot.message_index
    return score


def _score(slot: Slot, readings: Sequence[Reading]) -> judge_pb2.Score:
    found = [reading for reading in readings if reading.value is not None]
    if not found:
        return _named(slot, _absent_score(readings[0].absent, readings[0].justification))
    score = _mean([reading.value for reading in found if reading.value is not None])
    score.justification = found[0].justification
    masses = [reading.mass for reading in found if reading.mass is not None]
    if masses:
        score.scale_mass = statistics.fmean(masses)
    if len(found) == 1 and found[0].written is not None:
        score.written = found[0].written
    return _named(slot, score)


def _mean(values: Sequence[float]) -> judge_pb2.Score:
    score = judge_pb2.Score(value=statistics.fmean(values), samples=len(values))
    if len(values) > 1:
        score.spread = statistics.stdev(values)
    return score


def _absent_score(absent: Absent | None, justification: str = "") -> judge_pb2.Score:
    assert absent is not None  # a reading has a value or a reason
    return judge_pb2.Score(
        absent_reason=absent.reason, absent_detail=absent.detail, justification=justification
    )


# ------------------------------------------------------------------ derived scores


def _goals_met(metric: Metric, sheet: ScoreSheet, answers: Sequence[Answer]) -> judge_pb2.Score:
    """1 for none of the goals, 5 for all of them, in between by proportion.

    An answer that leaves a goal open counts for nothing: the proportion would be one of fewer goals.
    """
    slot = Slot(metric.key, metric.roles[0])
    complete = [answer.goals for answer in answers if all(goal.met is not None for goal in answer.goals)]
    if not complete:
        absent = next(goal.absent for goal in answers[0].goals if goal.absent is not None)
        return _named(slot, _absent_score(absent))
    low, high = SCALE[0], SCALE[-1]
    shares = [sum(bool(goal.met) for goal in goals) / len(goals) for goals in complete]
    score = _mean([low + (high - low) * share for share in shares])
    met = sum(bool(goal.met) for goal in complete[0])
    score.justification = f"{met} of {len(sheet.goals)} goals met"
    return _named(slot, score)


_DERIVATIONS: dict[str, Callable[[Metric, ScoreSheet, Sequence[Answer]], judge_pb2.Score]] = {
    "goals_met": _goals_met
}


# ------------------------------------------------------------------ outcome and goals


def _outcome(answers: Sequence[Answer]) -> judge_pb2.OutcomeVerdict:
    readings = [answer.outcome for answer in answers if answer.outcome is not None]
    found = [reading for reading in readings if reading.absent is None]
    if not found:
        absent = readings[0].absent
        assert absent is not None  # a reading has a value or a reason
        return judge_pb2.OutcomeVerdict(
            absent_reason=absent.reason,
            absent_detail=absent.detail,
            justification=readings[0].justification,
        )
    outcome = _majority([reading.outcome for reading in found])
    grounds = next(reading.justification for reading in found if reading.outcome == outcome)
    return judge_pb2.OutcomeVerdict(outcome=outcome, justification=grounds)


def _goals(sheet: ScoreSheet, answers: Sequence[Answer]) -> Iterator[judge_pb2.GoalVerdict]:
    for index in range(len(sheet.goals)):
        yield _goal(index, [answer.goals[index] for answer in answers])


def _goal(index: int, readings: Sequence[GoalReading]) -> judge_pb2.GoalVerdict:
    verdict = judge_pb2.GoalVerdict(goal_index=index, justification=readings[0].justification)
    answered = [reading.met for reading in readings if reading.met is not None]
    if not answered:
        absent = readings[0].absent
        assert absent is not None  # a reading has a value or a reason
        verdict.absent_reason, verdict.absent_detail = absent.reason, absent.detail
        return verdict
    verdict.met = _majority(answered)
    verdict.justification = next(r.justification for r in readings if r.met == verdict.met)
    return verdict


def _majority(found: Sequence[_Found]) -> _Found:
    """The commonest; of equals, the one that came first."""
    return Counter(found).most_common(1)[0][0]
