"""What the figures rest on and what they took: coverage, faults, tokens and time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from policysweep.report import judging_sentences, sentences
from policysweep.report.html.markup import Child, Markup
from policysweep.report.html.parts import listed, section, table
from policysweep.report.sentences import count, percent

Json = Mapping[str, Any]


def ends_section(summary: Json) -> Markup:
    """Coverage, faults and cost by agent."""
    return section(
        "coverage",
        "Coverage, faults and cost",
        table(
            "What became of the planned units",
            [
                "Agent",
                "Planned",
                "Scored",
                "Coverage in %",
                "Agent faults",
                "Other faults",
                "Failed",
                "Pending",
            ],
            [_covered(name, found) for name, found in summary["agents"].items()],
        ),
        _faults(summary),
        table(
            "Tokens of the conversations, as the model servers reported them",
            ["Agent", "Side", "Model calls", "Prompt tokens", "Cached in %", "Written tokens"],
            [row for name, found in summary["agents"].items() for row in _tokens(name, found)],
            words=2,
        ),
        _judge_tokens(summary),
        listed([*sentences.unreported(summary), *judging_sentences.unreported(summary)]),
        table(
            "Length and wall time of a conversation",
            ["Agent", "Mean customer turns", "Median seconds", "95th percentile", "n"],
            [_pace(name, found) for name, found in summary["agents"].items()],
        ),
    )


def _covered(name: str, found: Json) -> list[Child]:
    units = found["coverage"]
    return [
        name,
        count(units["planned"]),
        count(units["scored"]),
        percent(units["coverage"]),
        count(found["faults"].get("AGENT", {"units": 0})["units"]),
        count(units["recorded"] - units["scored"]),
        count(units["failed"]),
        count(units["pending"]),
    ]


def _faults(summary: Json) -> Child:
    rows = [
        [name, what, details, units]
        for name, found in summary["agents"].items()
        for what, units, details in sentences.ends(found)
    ]
    if not rows:
        return None
    return table("Faults, failures and contradictions", ["Agent", "What", "Details", "Units"], rows, words=3)


def _tokens(name: str, found: Json) -> Iterator[list[Child]]:
    for side in ("agent", "customer"):
        yield [name, side, *_spent(found["tokens"][side])]


def _spent(tokens: Json) -> list[Child]:
    cached = tokens["cached_share"]
    return [
        count(tokens["model_calls"]),
        count(tokens["prompt_tokens"]),
        percent(cached) if cached is not None else "not reported" if tokens["answers"] else "",
        count(tokens["completion_tokens"]),
    ]


def _judge_tokens(summary: Json) -> Child:
    if summary["judging"] is None:
        return None
    panels = {each["key"]: each["title"] for each in summary["judging"]["rubric"]["panels"]}
    rows = [
        [name, panels.get(panel, panel), *_spent(tokens)]
        for name, found in summary["judging"]["judges"].items()
        for panel, tokens in found["tokens"]["panels"].items()
    ]
    columns = ["Judge", "Panel", "Model calls", "Prompt tokens", "Cached in %", "Written tokens"]
    return table("Tokens of the judges", columns, rows, words=2)


def _pace(name: str, found: Json) -> list[Child]:
    seconds = found["duration_seconds"]
    return [
        name,
        _decimals(found["turns_mean"]),
        _decimals(seconds["median"]),
        _decimals(seconds["p95"]),
        count(found["coverage"]["recorded"]),
    ]


def _decimals(number: float | None) -> str:
    return "none" if number is None else f"{number:,.1f}"
