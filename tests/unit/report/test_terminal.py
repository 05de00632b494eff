from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from policysweep.report import sentences
from policysweep.report.outcomes import DISPLAY
from policysweep.report.rows import row
from policysweep.report.summary import summarise
from policysweep.report.terminal import render
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import run_pb2

from .records import agent_fault, failure, manifest, record, rows_of, sweep

AGENTS = ("strict", "fair", "lenient", "cautious")


def _print(summary: dict[str, Any], width: int = 100) -> str:
    out = StringIO()
    render(summary, Console(file=out, width=width, color_system=None))
    return out.getvalue()


def _flat(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(scope="module", name="drawn")
def _drawn() -> dict[str, Any]:
    rows = [row(made) for made in sweep(AGENTS, tasks=40, per_task=2)]
    return summarise(rows, dict.fromkeys(AGENTS, 80), [], manifest(*AGENTS, rehearsal=True))


@pytest.mark.parametrize("width", [80, 100, 200])
def test_nothing_is_cut_at_any_width(drawn: dict[str, Any], width: int) -> None:
    text = _print(drawn, width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    for section in drawn["agents"].values():
        for share in section["outcomes"]["shares"].values():
            assert sentences.interval(share["interval"]) in text
    for label in DISPLAY.values():
        assert label in _flat(text) or width == 80
    for section in drawn["agents"].values():
        assert f"{section['tokens']['agent']['prompt_tokens']:,}" in text


def test_all_four_agents_stand_side_by_side_at_80_columns(drawn: dict[str, Any]) -> None:
    heads = [line for line in _print(drawn, 80).splitlines() if "strict" in line and "fair" in line]
    assert all(name in heads[0] for name in AGENTS)


def test_more_agents_than_fit_are_continued_below() -> None:
    agents = [f"agent-{number}" for number in range(12)]
    summary = summarise(
        rows_of({name: [1, 4] for name in agents}), dict.fromkeys(agents, 2), [], manifest(*agents)
    )
    text = _print(summary, 80)
    assert text.count("Full Refund") == 3
    assert max(map(len, text.splitlines())) <= 80


def test_rehearsal_is_said_first(drawn: dict[str, Any]) -> None:
    assert _print(drawn).splitlines()[0].strip().startswith("REHEARSAL")
    assert "REHEARSAL" not in _print(summarise([], {"a": 1}, [], manifest("a")))


def test_agreement_is_a_plain_sentence() -> None:
    outcomes = {"a": [1, 1, 4, 4] * 10, "b": [1, 4, 4, 1] * 10}
    rows = rows_of(outcomes, per_task=4)
    text = _flat(_print(summarise(rows, {"a": 40, "b": 40}, [], manifest("a", "b"))))
    assert (
        "2 agents gave the same outcome in 20 of 40 scenarios (100% of those planned): 50.0% [35.2, 64.8]; "
        "chance alone would give 50.0%."
    ) in text
    assert "Fleiss' kappa is 0.00 (no interval)" in text


def test_trials_are_called_conversations() -> None:
    rows = [row(made) for made in sweep(AGENTS, tasks=12, per_task=1, trials=2)]
    made = manifest(*AGENTS, trials=2)
    text = _flat(_print(summarise(rows, dict.fromkeys(AGENTS, 24), [], made, min_coverage=0.5)))
    assert "matched conversations" in text
    assert "Noise ceiling" in text


def test_a_withheld_headline_shows_counts_and_the_reason() -> None:
    failed = [failure("fair", str(n), ep.FAULT_PARTY_INFRASTRUCTURE, "AGENT_TIMEOUT") for n in range(3)]
    text = _print(summarise([row(record())], {"fair": 4}, failed, manifest("fair")))
    assert "(1 unit)" in text
    assert "100%" not in text
    assert "100.0" not in text
    flat = _flat(text)
    assert "outcome shares of fair: 1 of 4 planned units are scored: a coverage of 25.0% is below" in flat
    assert "fair infrastructure failure, no record 3 agent timeout 3" in flat


def test_faults_and_contradictions_are_listed() -> None:
    contradiction = record("a", task=3)
    contradiction.episode.reconciliation.mismatch = True
    contradiction.episode.reconciliation.declared = ep.OUTCOME_DENY_REFUND
    rows = [
        row(contradiction),
        row(agent_fault(agent="a", task=1)),
        row(record("a", task=2, fault=ep.FAULT_PARTY_CUSTOMER, reason=ep.END_REASON_ERROR_LIMIT)),
        row(record("a", task=4, outcome=ep.OUTCOME_UNSPECIFIED)),
    ]
    flat = _flat(_print(summarise(rows, {"a": 4}, [], manifest("a"))))
    assert "agent fault, no outcome 1 turn limit 1" in flat
    assert "customer fault, not scored 1 error limit 1" in flat
    assert "unstated fault, not scored 1" in flat
    assert "declared / executed contradict 1 Deny Refund / none 1" in flat


def test_unreported_tokens_are_told_from_none() -> None:
    made = record("a")
    made.episode.model_calls.add(role=ep.ROLE_AGENT, usage=ep.Usage(prompt_tokens=10, model_calls=1))
    flat = _flat(_print(summarise([row(made)], {"a": 1}, [], manifest("a"))))
    assert "a agent 1 10 not reported not reported" in flat
    assert "a, agent: completion tokens of 1 of 1 answers; the total is of the others." in flat


def test_text_from_outside_is_shown_and_never_obeyed() -> None:
    name = "[red]x[/red]\x1b[31m\n"
    made = record(name)
    made.unit.task_id = "[bold]task[/bold]"
    other = record("b", outcome=ep.OUTCOME_DENY_REFUND)
    other.unit.task_id = made.unit.task_id
    described = manifest(name, "b")
    described.run, described.dataset.name = "[link=file:///etc]run[/link]", "[/]"
    failed = [failure("b", "x", ep.FAULT_PARTY_INFRASTRUCTURE, "[blink]WHY[/blink]")]
    summary = summarise([row(made), row(other)], {name: 1, "b": 2}, failed, described, min_coverage=0.0)
    text = _print(summary, 160)
    assert "\x1b" not in text
    assert "[red]x[/red]\ufffd[31m\ufffd" in text
    assert "[bold]task[/bold]" in text
    assert "[link=file:///etc]run[/link]" in text
    assert "[blink]why[/blink]" in text


def test_an_empty_run_is_printed() -> None:
    assert "0 planned" in _print(summarise([], {}, [], run_pb2.RunManifest()))


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0.0575, "5.8"), (0.0, "0.0"), (1.0, "100"), (0.99996, "99.9"), (0.9994, "99.9"), (None, "none")],
)
def test_percent(share: float | None, expected: str) -> None:
    assert sentences.percent(share) == expected


def test_decimal_has_no_negative_zero() -> None:
    assert sentences.decimal(-0.001) == "0.00"
    assert sentences.decimal(-0.016) == "-0.02"
