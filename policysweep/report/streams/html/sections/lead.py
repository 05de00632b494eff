"""The head of the report: what was run, and what came out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from policysweep.report.html.markup import Child, Markup, el
from policysweep.report.html.parts import facts
from policysweep.report.streams import sentences

Json = Mapping[str, Any]


def lead_section(summary: Json) -> Markup:
    """Name, facts and sentences."""
    return el(
        "section",
        el("h1", summary["run"]["run"] or "(no name)"),
        facts(list(sentences.header(summary))[1:]),
        el("ol", [el("li", _shown(each)) for each in sentences.lead(summary)], class_="lead"),
        id="summary",
        aria_label="Summary",
    )


def _shown(sentence: sentences.Sentence) -> Child:
    return [el("strong", part) if place % 2 else part for place, part in enumerate(sentence)]
