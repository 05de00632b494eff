"""The judges against people: what human labels say of each judge's scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from policysweep.report.html.markup import Child, el
from policysweep.report.html.numbers import difference, estimate, share
from policysweep.report.html.parts import table
from policysweep.report.sentences import count

Json = Mapping[str, Any]


def calibration(judging: Json) -> Child:
    """Tables by metric, for the outcome, and of the people among themselves."""
    found = judging["calibration"]
    if found is None:
        return el("p", "No human labels were imported, so the scores are not calibrated.", class_="dim")
    titles = {entry["key"]: entry["title"] for entry in judging["rubric"]["metrics"]}
    rows = [
        [titles.get(metric, metric), judge, *_scores(entry)]
        for judge, entries in found["judges"].items()
        for metric, entry in entries["metrics"].items()
    ]
    columns = ["Metric", "Judge", "Bias", "Mean absolute error", "Weighted kappa", "Alpha", "n"]
    caption = "The judges against human labels, with 95% interval; bias is judge minus human"
    return [
        table(caption, columns, rows, words=2) if rows else None,
        _outcomes(found["judges"]),
        _people(found["people"], titles),
    ]


def _scores(entry: Json) -> Sequence[Child]:
    return [
        difference(entry["bias"]),
        difference(entry["mean_absolute_error"]),
        estimate(entry["weighted_kappa"]),
        estimate(entry["alpha"]),
        count(entry["n"]),
    ]


def _outcomes(judges: Json) -> Child:
    rows = [
        [
            judge,
            share(entries["outcome"]["rate"], entries["outcome"]["interval"]),
            estimate(entries["outcome"]["cohen_kappa"]),
            count(entries["outcome"]["n"]),
        ]
        for judge, entries in judges.items()
        if entries["outcome"]
    ]
    caption = "The outcome that the judge reads, against human labels"
    return table(caption, ["Judge", "Same outcome in %", "Cohen's kappa", "n"], rows) if rows else None


def _people(people: Json, titles: Mapping[str, str]) -> Child:
    rows = [
        [
            titles.get(metric, metric),
            count(entry["labels"]),
            count(entry["items"]),
            count(entry["annotators"]),
            estimate(entry["alpha"]),
        ]
        for metric, entry in people.items()
    ]
    columns = ["Metric", "Labels", "Items", "People", "Alpha between people"]
    return table("The human labels", columns, rows) if rows else None
