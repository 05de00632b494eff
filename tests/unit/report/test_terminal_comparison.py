from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from policysweep.report.comparison import Run, compare_runs
from policysweep.report.rows import row
from policysweep.report.sentences import bounds
from policysweep.report.terminal_comparison import render_comparison
from policysweep.v1 import episode_pb2 as ep

from .records import DENY, FULL, PARTIAL, manifest, record, rows_of, sweep
from .verdict_records import drawn, taken


def _print(comparison: dict[str, Any], width: int = 100) -> str:
    out = StringIO()
    render_comparison(comparison, Console(file=out, width=width, color_system=None))
    return out.getvalue()


def _flat(text: str) -> str:
    return " ".join(text.split())


def _drawn(seed: int, lean: float) -> Run:
    records = list(sweep(("strict", "fair"), tasks=20, per_task=2, seed=seed))
    verdicts = taken(drawn(records, seed=seed, lean=lean))
    return Run(
        manifest("strict", "fair"), [row(made) for made in records], {"strict": 40, "fair": 40}, verdicts
    )


def _plain(outcomes: Sequence[int], planned: int = 0) -> Run:
    return Run(manifest("a"), rows_of({"a": outcomes}), {"a": planned or len(outcomes)}, None)


@pytest.mark.parametrize("width", [80, 100, 200])
def test_nothing_is_cut_at_any_width(width: int) -> None:
    comparison = compare_runs(_drawn(0, 0.0), _drawn(1, 0.5), changes=["a change"], min_coverage=0.8)
    text = _print(comparison, width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    for pair in comparison["pairs"]:
        for level in pair["scores"]["j"]["dimensions"].values():
            assert level["verdict"] in _flat(text)
            assert bounds(level["interval"]) in text


def test_what_is_said() -> None:
    comparison = compare_runs(
        _plain([FULL] * 8 + [DENY] * 2), _plain([FULL] * 5 + [PARTIAL] * 3 + [DENY, FULL])
    )
    flat = _flat(_print(comparison))
    assert "10 matched conversations (100% of those planned) of 10 scenarios and 10 tasks." in flat
    assert "4 of 10 (40.0% [" in flat
    assert "1 of 10 (10.0% [" in flat
    assert "Full Refund 80.0 60.0 -20.0 [" in flat
    assert "Full Refund Partial Refund 3 Deny Refund Full Refund 1" in flat
    assert "is not shown to have moved (p = " in flat


def test_the_commonest_changes_are_listed_and_the_rest_is_counted() -> None:
    pairs = [(one, other) for one in range(1, 5) for other in range(1, 5) if one != other]
    first = [one for one, _ in pairs for _ in range(2)]
    second = [other for _, other in pairs for _ in range(2)]
    assert "2 other changes 4" in _flat(_print(compare_runs(_plain(first), _plain(second))))


def test_a_withheld_comparison_shows_counts_and_the_reason() -> None:
    text = _flat(_print(compare_runs(_plain([FULL] * 4, planned=8), _plain([DENY] * 4, planned=8))))
    assert "Withheld: 4 of 8 planned conversations have a scored unit in both runs" in text
    assert "4 of 4 ended with another outcome, in 4 scenarios." in text
    assert "p = " not in text
    assert "100.0" not in text


def test_noise_of_trials_is_told() -> None:
    rows = [
        row(record("a", task, trial=trial, outcome=ep.Outcome.ValueType(outcome)))
        for task in range(2)
        for trial, outcome in enumerate((FULL, DENY if task else FULL))
    ]
    run = Run(manifest("a", trials=2), rows, {"a": 4}, None)
    flat = _flat(_print(compare_runs(run, run)))
    assert (
        "Two trials of one run end differently as well: 50.0% in the first and 50.0% in the second run."
        in flat
    )
    assert "The distribution over outcomes is the same in every task." in flat


def test_judges_that_are_not_compared_are_named() -> None:
    judged, plain = _drawn(0, 0.0), _drawn(0, 0.0)
    without = Run(plain.manifest, plain.rows, plain.planned, None)
    assert "j: it did not judge run 'demo'." in _flat(_print(compare_runs(judged, without)))


def test_names_from_outside_are_shown_and_never_obeyed() -> None:
    run = Run(manifest("[red]a\x1b[31m"), rows_of({"[red]a\x1b[31m": [FULL]}), {"[red]a\x1b[31m": 1}, None)
    text = _print(compare_runs(run, run, changes=["[bold]x\x07"]), 120)
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "[red]a\ufffd[31m" in text
    assert "[bold]x\ufffd" in text


def test_rehearsal_is_said_first() -> None:
    run = Run(manifest("a", rehearsal=True), rows_of({"a": [FULL]}), {"a": 1}, None)
    assert _print(compare_runs(run, run)).strip().startswith("REHEARSAL")


def test_a_missing_agent_is_told_by_its_other_name() -> None:
    run = _plain([FULL])
    other = Run(manifest("b"), rows_of({"b": [FULL]}), {"b": 1}, None)
    assert "a (first) and b (second)" in _print(compare_runs(run, other, [("a", "b")]))
