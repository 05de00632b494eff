"""Counts in the process's metrics what judging led to."""

from __future__ import annotations

from policysweep import telemetry
from policysweep.v1 import judge_pb2
from services.judge.asking import Tally

GOALS = "goals"
ASSERTIONS = "assertions"
"""What stands in place of a panel where none is asked."""


def count_answers(panel: str, tally: Tally) -> None:
    """The answers to a question. Both results get a series, so that a share can be told of them."""
    telemetry.JUDGE_ANSWERS.labels(panel, "usable").inc(tally.answers - tally.unusable)
    telemetry.JUDGE_ANSWERS.labels(panel, "unusable").inc(tally.unusable)


def count_scores(verdict: judge_pb2.PanelVerdict) -> None:
    """The scores of a verdict: given, or absent for a reason."""
    telemetry.JUDGE_SCORES.labels(verdict.panel, "given")  # even if none is: a share needs it
    for score in verdict.scores:
        absent = telemetry.enum_label(judge_pb2.AbsentReason, score.absent_reason)
        telemetry.JUDGE_SCORES.labels(verdict.panel, "given" if score.HasField("value") else absent).inc()
