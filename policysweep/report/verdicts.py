"""What the judges wrote, taken in one verdict at a time and kept as flat columns of numbers.

    VerdictRecord --add--> Verdicts --judge name--> JudgeNotes: one line per score, and counts per panel

A line takes some 30 bytes where a verdict with its justifications takes tens of kilobytes, so a run's
verdicts are never held. A score is a number of the scale or it is absent with a reason: a value that is not
on the scale, NaN included, is absent as OUT_OF_SCALE, whatever wrote it.

A verdict counts only when it answers the question that the report is about: the edition of the panel that
the rubric holds, by its digest. A version of the rubric that leaves a panel as it is asks the same. Others
are left out and counted, since their mean with these would be of two questions.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from policysweep.errors import InputError
from policysweep.report.criteria import HIGHEST, LOWEST, Criteria
from policysweep.report.rows import Tokens, tokens_of
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2, run_pb2

NO_TURN = -1
"""The turn of a score that does not look at a single turn."""

_NAN = float("nan")
_ROUNDING = 1e-9


class OutcomeNote(NamedTuple):
    """The outcome that a judge saw: its category (0 for none), or why it is not known."""

    category: int
    reason: int


@dataclass(slots=True)
class PanelTally:
    """Counts of one panel. `unusable` are answers that could not be used in full, of all model `answers`."""

    verdicts: int = 0
    unusable: int = 0
    tokens: Tokens = field(default_factory=Tokens)


@dataclass(slots=True)
class JudgeNotes:
    """What one judge wrote. The columns have one entry per score; units are numbers of `Verdicts.units`."""

    unit: array[int] = field(default_factory=lambda: array("i"))
    metric: array[int] = field(default_factory=lambda: array("h"))
    turn: array[int] = field(default_factory=lambda: array("i"))
    subject: array[int] = field(default_factory=lambda: array("b"))
    value: array[float] = field(default_factory=lambda: array("d"))
    """NaN when absent."""
    reason: array[int] = field(default_factory=lambda: array("b"))
    """`AbsentReason`; 0 when present, or absent without a reason."""
    mass: array[float] = field(default_factory=lambda: array("d"))
    """Probability mass on the scale; NaN without token probabilities."""
    spread: array[float] = field(default_factory=lambda: array("d"))
    """Standard deviation of repeated samples; NaN without them."""
    outcomes: dict[int, OutcomeNote] = field(default_factory=dict)
    """By unit, from the panel that classifies."""
    panels: dict[str, PanelTally] = field(default_factory=dict)
    goals: Tokens = field(default_factory=Tokens)
    """What it took to extract goals."""
    read: set[tuple[int, str]] = field(default_factory=set)
    """Unit and panel of each verdict."""
    rehearsal: int = 0
    """Verdicts by the rehearsal model."""


class Verdicts:
    """The verdicts of a run on one rubric, by judge."""

    def __init__(self, rubric: judge_pb2.Rubric, judges: Mapping[str, judge_pb2.JudgeInfo]) -> None:
        """`judges` describes every judge of the run by its name; their order is kept."""
        self.criteria = Criteria(rubric)
        self.infos = dict(judges)
        self.notes = {name: JudgeNotes() for name in judges}
        self.units: dict[str, int] = {}
        """Number of each unit id, in the order of their first verdict."""
        self.left_out: Counter[str] = Counter()
        """Verdicts that answer another question, by why."""

    def extend(self, records: Iterable[run_pb2.VerdictRecord]) -> Verdicts:
        """Take in several records; returns itself."""
        for record in records:
            self.add(record)
        return self

    def add(self, record: run_pb2.VerdictRecord) -> None:
        """Take in a record.

        Raises InputError for a judge that the run does not describe, for a second verdict of one judge on
        one panel of a unit, and for a score on a metric that the panel does not ask for.
        """
        if self.criteria.panels.get(record.verdict.panel) != record.verdict.panel_digest:
            self.left_out["OTHER_EDITION_OF_PANEL"] += 1
            return
        if record.judge not in self.notes:
            known = ", ".join(self.notes) or "none"
            raise InputError(f"{_where(record)}: the judge is not one of the run's judges ({known})")
        notes, verdict = self.notes[record.judge], record.verdict
        unit = self.units.setdefault(record.unit_id, len(self.units))
        if (unit, verdict.panel) in notes.read:
            raise InputError(f"{_where(record)}: there are two of them; run `policysweep verify` on the run")
        notes.read.add((unit, verdict.panel))
        notes.rehearsal += verdict.rehearsal
        _count(notes.panels.setdefault(verdict.panel, PanelTally()), verdict)
        if verdict.HasField("outcome"):
            notes.outcomes[unit] = _outcome(record)
        self._add_scores(notes, unit, record)

    def add_goals(self, goals: run_pb2.TaskGoals) -> None:
        """Take in what the goals of a task took. InputError for a judge that the run does not describe."""
        if goals.judge_name not in self.notes:
            raise InputError(
                f"The goals of task {goals.task_id!r}: judge {goals.judge_name!r} is not one of the run's "
                f"judges ({', '.join(self.notes) or 'none'})"
            )
        notes = self.notes[goals.judge_name]
        notes.goals = notes.goals.plus(tokens_of([goals.usage]))

    def _add_scores(self, notes: JudgeNotes, unit: int, record: run_pb2.VerdictRecord) -> None:
        panel, asked, seen = record.verdict.panel, self.criteria.asked, set()
        for score in record.verdict.scores:
            column, subjects = asked.get((panel, score.metric), (0, ()))
            turn = score.message_index if score.HasField("message_index") else NO_TURN
            if score.subject not in subjects:
                raise InputError(
                    f"{_where(record)}: has a score on metric {score.metric!r} for role {score.subject}, "
                    f"which panel {panel!r} of {self.criteria.ref} does not ask for"
                )
            if (place := (column, turn, score.subject)) in seen:
                raise InputError(
                    f"{_where(record)}: has two scores on metric {score.metric!r}, message {turn}"
                )
            seen.add(place)
            value, reason = _read(score)
            notes.unit.append(unit)
            notes.metric.append(column)
            notes.turn.append(turn)
            notes.subject.append(score.subject)
            notes.value.append(value)
            notes.reason.append(reason)
            notes.mass.append(score.scale_mass if score.HasField("scale_mass") else _NAN)
            notes.spread.append(score.spread if score.HasField("spread") else _NAN)


def _read(score: judge_pb2.Score) -> tuple[float, int]:
    """Value and reason: a number of the scale and 0, or NaN and why."""
    if not score.HasField("value") or score.absent_reason:
        return _NAN, score.absent_reason
    if LOWEST - _ROUNDING <= score.value <= HIGHEST + _ROUNDING:
        return score.value, 0
    return _NAN, judge_pb2.ABSENT_REASON_OUT_OF_SCALE


def _outcome(record: run_pb2.VerdictRecord) -> OutcomeNote:
    found = record.verdict.outcome
    if found.outcome not in ep.Outcome.values():
        raise InputError(
            f"{_where(record)}: has outcome {found.outcome}, which this version of policysweep does not know"
        )
    return OutcomeNote(found.outcome, found.absent_reason)


def _count(tally: PanelTally, verdict: judge_pb2.PanelVerdict) -> None:
    tally.verdicts += 1
    tally.unusable += verdict.unusable_answers
    # A panel that has nothing to ask makes no call, which is not a call with unreported tokens.
    if verdict.usage.model_calls:
        tally.tokens = tally.tokens.plus(tokens_of([verdict.usage]))


def _where(record: run_pb2.VerdictRecord) -> str:
    return f"The verdict of judge {record.judge!r} on panel {record.verdict.panel!r} of unit {record.unit_id}"
