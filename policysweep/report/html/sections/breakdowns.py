"""Outcomes and scores in groups of cases: by kind of ambiguity, complexity, customer and agent persona."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from policysweep.report.html.markup import Child, Markup, el
from policysweep.report.html.numbers import grade, share
from policysweep.report.html.parts import dim, folded, section, table
from policysweep.report.html.strips import strips
from policysweep.report.sentences import count, counted

Json = Mapping[str, Any]

_FACETS = {
    "ambiguity_type": "By kind of ambiguity",
    "complexity": "By complexity",
    "customer_persona": "By customer persona",
    "agent_persona": "By agent persona",
}


def breakdowns_section(summary: Json) -> Markup | None:
    """None when the summary was made without the scenarios."""
    found = summary["breakdowns"]
    if found is None:
        return None
    return section(
        "breakdowns",
        "In groups of cases",
        el("p", "A task has several kinds of ambiguity and counts in each of them."),
        el(
            "div",
            [_facet(title, found[key], summary) for key, title in _FACETS.items() if len(found[key]) > 1],
            class_="facets",
        ),
    )


def _facet(title: str, groups: Sequence[Json], summary: Json) -> Markup:
    judging = summary["judging"]
    outcomes = table(
        f"{title}: outcomes, and denied in % of scored units with 95% interval",
        ["Group", "Outcomes by agent", "Denied", "n"],
        [_outcomes(group) for group in groups],
        words=2,
    )
    scores = [
        folded(f"Dimension scores by {judge}", _scores(title, groups, judging["rubric"]["dimensions"], judge))
        for judge in (judging["judges"] if judging else ())
    ]
    return el("div", el("h3", title), outcomes, scores)


def _outcomes(group: Json) -> Sequence[Child]:
    agents = group["agents"].values()
    return [
        [group["title"], el("br"), dim(counted(group["tasks"], "task"))],
        strips({name: Counter(found["counts"]) for name, found in group["agents"].items()}),
        [el("div", _denied(found)) for found in agents],
        [el("div", count(found["units"])) for found in agents],
    ]


def _denied(found: Json) -> Child:
    if found["shares"] is None:
        return dim("withheld")
    denied = found["shares"]["DENY_REFUND"]
    return share(denied["share"], denied["interval"])


def _scores(title: str, groups: Sequence[Json], dimensions: Sequence[Json], judge: str) -> Child:
    titles = {entry["key"]: entry["title"] for entry in dimensions}
    rows = _score_rows(groups, list(titles), judge)
    return table(
        f"{title}: mean score by {judge} with 95% interval", ["Group and agent", *titles.values(), "n"], rows
    )


def _score_rows(groups: Sequence[Json], dimensions: Sequence[str], judge: str) -> Iterator[Sequence[Child]]:
    for group in groups:
        for name, found in group["agents"].items():
            scores = found["dimensions"].get(judge, {})
            cells = [grade(scores[key]) if key in scores else dim("none") for key in dimensions]
            yield [f"{group['title']}, {name}", *cells, count(found["units"])]
