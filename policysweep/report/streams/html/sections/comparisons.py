"""Methods held against no memory, and regimes against one another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from policysweep.report.html.markup import Child, Markup, el
from policysweep.report.html.numbers import share, why
from policysweep.report.html.parts import dim, section, table
from policysweep.report.sentences import count, percent
from policysweep.report.streams.sentences import domains, of_domain, points, points_interval

Json = Mapping[str, Any]


def regimes_section(summary: Json) -> Markup | None:
    """The feedback ablation; nothing for a run with one regime."""
    if not summary["regimes"]:
        return None
    trials = summary["run"]["trials"]
    return section(
        "regimes",
        "How much the feedback has to tell",
        el(
            "p",
            "The same tasks, seeds and trials under another feedback regime: differences on sister tasks.",
        ),
        table(
            "Difference in percentage points, with 95% interval, and the pairs of trials behind it",
            [
                "Domain",
                "Method",
                "Regime",
                "against",
                *(f"pass^{k}" for k in range(1, trials + 1)),
                "Pairs",
                "Won",
                "Lost",
            ],
            [_regime(found, trials) for found in summary["regimes"]],
            words=4,
        ),
    )


def _regime(found: Json, trials: int) -> list[Child]:
    pairs = found["pairs"]
    return [
        found["domain"],
        found["title"],
        found["regime"],
        found["baseline"],
        *differences(found, trials),
        *(count(pairs[key]) for key in ("n", "won", "lost")),
    ]


def differences(found: Json, trials: int) -> list[Child]:
    """Differences for each k, or why there are none."""
    if found["withheld"]:
        return [why(f"withheld: {found['withheld']}"), *[None] * (trials - 1)]
    return [
        why(each["reason"])
        if each["value"] is None
        else [points(each["value"]), " ", dim(points_interval(each["interval"]))]
        for each in found["pass"]
    ]


def harm_section(summary: Json) -> Markup | None:
    """Over-generalisation on controls, and retention on the other originals."""
    content = [
        _harm(domain, of_domain(summary, domain), summary["run"]["trials"]) for domain in domains(summary)
    ]
    if not any(content):
        return None
    return section(
        "harm",
        "What it costs: controls and other originals",
        el(
            "p",
            "A control is solved by keeping to the written policy where a lesson does not hold. A trial is "
            "lost when the method fails and no memory passes on the same task, seed and trial, and won the "
            "other way round.",
        ),
        content,
    )


def _harm(domain: str, arms: Sequence[Json], trials: int) -> Child:
    controls = [arm for arm in arms if arm["controls"]]
    kept = [arm for arm in arms if arm["retention"]]
    return [
        table(
            f"{domain.capitalize()}: over-generalisation on controls",
            ["Method", "Lost", "Rate in %", "Of those no memory passes, in %", "Won", "Failed by overreach"],
            [_control(arm["title"], arm["controls"]) for arm in controls],
        )
        if controls
        else None,
        table(
            f"{domain.capitalize()}: retention on originals that no gap concerns, difference to no memory in "
            "percentage points with 95% interval",
            ["Method", *(f"pass^{k}" for k in range(1, trials + 1)), "Pairs", "Won", "Lost"],
            [_kept(arm["title"], arm["retention"], trials) for arm in kept],
        )
        if kept
        else None,
    ]


def _control(title: str, found: Json) -> list[Child]:
    pairs, rate, overreach = found["pairs"], found["rate"], found["overreach"]
    share_of_passed = found["of_passed_by_none"]
    return [
        title,
        f"{count(pairs['lost'])} of {count(pairs['n'])}",
        share(rate["value"], rate["interval"], rate["reason"]),
        percent(share_of_passed),
        count(pairs["won"]),
        why("not known without the tau2-bench package")
        if overreach is None
        else f"{count(overreach['overreached'])} of {count(overreach['failed'])} failures",
    ]


def _kept(title: str, found: Json, trials: int) -> list[Child]:
    pairs = found["pairs"]
    return [title, *differences(found, trials), *(count(pairs[key]) for key in ("n", "won", "lost"))]
