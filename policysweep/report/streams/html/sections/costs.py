"""What the figures rest on and what they took: coverage, faults, failures, tokens and time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from policysweep.report.html.markup import Child, Markup, el
from policysweep.report.html.parts import folded, listed, section, table
from policysweep.report.sentences import count, percent, unreported_of
from policysweep.report.streams.costs import ROLES
from policysweep.report.streams.sentences import went_wrong

Json = Mapping[str, Any]


def costs_section(summary: Json) -> Markup:
    """Coverage, faults and cost of each method."""
    wrong = list(went_wrong(summary))
    return section(
        "coverage",
        "Coverage, faults and cost",
        table(
            "What became of the planned tasks",
            [
                "Domain",
                "Method",
                "Complete streams",
                "Planned",
                "Scored",
                "Coverage in %",
                "Not scored",
                "Failed",
                "Pending",
            ],
            [_covered(arm) for arm in summary["arms"]],
            words=2,
        ),
        [el("h3", "What went wrong"), listed(wrong)] if wrong else None,
        _stopped(summary),
        table(
            "Tokens, as the model servers reported them",
            ["Domain", "Method", "Role", "Model calls", "Prompt tokens", "Cached in %", "Written tokens"],
            [row for arm in summary["arms"] for row in _tokens(arm)],
            words=3,
        ),
        _initial(summary),
        listed(_unreported(summary)),
        table(
            "Wall time of a conversation in seconds",
            ["Domain", "Method", "Median", "95th percentile", "All conversations"],
            [_pace(arm) for arm in summary["arms"]],
            words=2,
        ),
    )


def _covered(arm: Json) -> list[Child]:
    found, streams = arm["coverage"], arm["streams"]
    return [
        arm["domain"],
        arm["title"],
        f"{count(streams['complete'])} of {count(streams['planned'])}",
        count(found["planned"]),
        count(found["scored"]),
        percent(found["coverage"]),
        count(found["recorded"] - found["scored"]),
        count(found["failed"]),
        count(found["pending"]),
    ]


def _stopped(summary: Json) -> Child:
    """Streams that a failure stopped; what comes after it waits for the next invocation."""
    rows = [
        [
            el("a", stream["stream_id"][:8], href=f"#stream={stream['stream_id']}"),
            stream["domain"],
            f"{stream['method'].replace('_', ' ')}, {stream['regime']}",
            f"task {failure['task']}",
            f"{failure['party'].lower()}: {failure['reason'].lower().replace('_', ' ')}",
            failure["message"],
            f"{count(stream['recorded'])} of {count(stream['planned'])}",
        ]
        for stream in summary["streams"]
        for failure in stream["failures"]
    ]
    if not rows:
        return None
    names = ["Stream", "Domain", "Method", "Stopped at", "Who and why", "Message", "Recorded"]
    return table("Streams that stopped", names, rows, words=6)


def _tokens(arm: Json) -> Iterator[list[Child]]:
    for role in ROLES:
        found = arm["costs"]["tokens"][role]
        if found["answers"]:
            yield [arm["domain"], arm["title"], role, *_spent(found)]


def _spent(found: Json) -> list[Child]:
    cached = found["cached_share"]
    return [
        count(found["model_calls"]),
        count(found["prompt_tokens"]),
        "not reported" if cached is None else percent(cached),
        count(found["completion_tokens"]),
    ]


def _initial(summary: Json) -> Child:
    if not summary["initial_banks"]:
        return None
    rows = [
        [bank["name"], count(bank["entries"]), *_spent(bank["tokens"])] for bank in summary["initial_banks"]
    ]
    names = ["Bank", "Entries", "Model calls", "Prompt tokens", "Cached in %", "Written tokens"]
    return folded("Banks before any feedback", table("Made once for all streams of a method", names, rows))


def _unreported(summary: Json) -> Iterator[str]:
    for arm in summary["arms"]:
        for role in ROLES:
            found = arm["costs"]["tokens"][role]
            if found["answers"]:
                yield from unreported_of(f"{arm['domain']}, {arm['title']}, {role}", found)


def _pace(arm: Json) -> list[Child]:
    seconds = arm["costs"]["seconds"]
    return [
        arm["domain"],
        arm["title"],
        *("none" if seconds[key] is None else f"{seconds[key]:,.1f}" for key in ("median", "p95", "total")),
    ]
