from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from policysweep.report import sentences
from policysweep.report.rows import row
from policysweep.report.summary import summarise
from policysweep.report.terminal import render
from policysweep.report.verdicts import Verdicts
from policysweep.v1 import judge_pb2, run_pb2

from .records import FULL, manifest, rows_of, sweep
from .verdict_records import drawn, label, rubric, score, simple, taken, verdict

AGENTS = ("gpt-a", "fair", "lenient", "cautious")


def _print(summary: dict[str, Any], width: int = 100) -> str:
    out = StringIO()
    render(summary, Console(file=out, width=width, color_system=None))
    return out.getvalue()


def _flat(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(scope="module", name="summary")
def _summary() -> dict[str, Any]:
    records = list(sweep(AGENTS, tasks=20, per_task=2))
    infos = {"first": judge_pb2.JudgeInfo(model="gpt-4o"), "second": judge_pb2.JudgeInfo(model="claude-x")}
    verdicts = (
        Verdicts(rubric(), infos).extend(drawn(records, "first")).extend(drawn(records, "second", 1, 0.4))
    )
    made = manifest(*AGENTS)
    made.agents[0].info.model = "gpt-5"
    labels = [label(each.unit.unit_id, "support", 3.0) for each in records]
    labels += [label(each.unit.unit_id, "outcome", each.episode.outcome) for each in records]
    rows = [row(each) for each in records]
    return summarise(
        rows, dict.fromkeys(AGENTS, 40), [], made, verdicts=verdicts, labels=labels, min_coverage=0.8
    )


@pytest.mark.parametrize("width", [80, 100, 200])
def test_nothing_is_cut_at_any_width(summary: dict[str, Any], width: int) -> None:
    text = _print(summary, width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    for judge in summary["judging"]["judges"].values():
        for agent in judge["agents"].values():
            for level in agent["dimensions"].values():
                assert sentences.bounds(level["interval"]) in text


def test_what_is_said_of_judges(summary: dict[str, Any]) -> None:
    flat = _flat(_print(summary))
    assert "Dimension scores by judge first, 1 to 5, with 95% interval" in flat
    assert "first (gpt-4o) judged 160 units" in flat
    assert "Krippendorff's alpha of 6 metrics: median" in flat
    assert "second minus first on the same units: Policy +0." in flat
    assert (
        "first is of the family of gpt-a (openai). What it gives them beyond its leaning, against second"
        in flat
    )
    assert "second sees the outcome that people saw in" in flat
    assert "first 480 2,880,000 not reported 144,000" in flat


def test_a_partial_dimension_shows_what_is_missing() -> None:
    rows = rows_of({"fair": [FULL] * 4})
    records = [made for unit in rows for made in simple(unit.unit_id, {"support": 3.0, "tone": 4.0})]
    flat = _flat(_print(summarise(rows, {"fair": 4}, [], manifest("fair"), verdicts=taken(records))))
    assert "Policy 1 of 2 missing" in flat
    assert "Dialogue not judged" in flat
    assert "Behaviour 4.00" in flat
    assert "Policy of fair by j: reasoning has no mean (0 of 4 planned units have this score)." in flat


def test_absent_scores_are_named_by_their_reasons() -> None:
    (unit,) = rows_of({"fair": [FULL]})
    made = verdict(unit.unit_id, "main")
    made.verdict.usage.model_calls, made.verdict.unusable_answers = 2, 1
    score(made, "support", 7.0)
    score(made, "reasoning", None, reason=judge_pb2.ABSENT_REASON_REFUSED)
    flat = _flat(_print(summarise([unit], {"fair": 1}, [], manifest("fair"), verdicts=taken([made]))))
    assert "50.0% of its 2 answers could not be used in full" in flat
    assert "2 of 2 scores are absent (out of scale 1, refused 1)." in flat


def test_tokens_that_a_judges_server_did_not_state_are_told(summary: dict[str, Any]) -> None:
    (unit,) = rows_of({"fair": [FULL]})
    made = verdict(unit.unit_id, "main")
    made.verdict.usage.model_calls = 1
    flat = _flat(_print(summarise([unit], {"fair": 1}, [], manifest("fair"), verdicts=taken([made]))))
    assert "judge j: prompt tokens of 1 of 1 answers; the total is of the others." in flat
    assert "Tokens that were not reported" not in _print(summary)


def test_a_judge_with_nothing_read_is_printed() -> None:
    flat = _flat(_print(summarise([], {"a": 1}, [], manifest("a"), verdicts=taken([]))))
    assert "j (j-model) has judged nothing yet." in flat
    assert "none%" not in flat


def test_names_of_judges_and_rubrics_are_shown_and_never_obeyed() -> None:
    hostile = rubric()
    hostile.dimensions[0].title = "[red]policy[/red]"
    verdicts = Verdicts(hostile, {"[bold]j\x1b[31m": judge_pb2.JudgeInfo(model="[link]m")})
    made = run_pb2.RunManifest()
    made.CopyFrom(manifest("a"))
    text = _print(summarise(rows_of({"a": [FULL]}), {"a": 1}, [], made, verdicts=verdicts), 160)
    assert "\x1b" not in text
    assert "[red]policy[/red]" in text
    assert "[bold]j\ufffd[31m" in text
    assert "[link]m" in text
