"""The page of a stream run: the report's sections, and the viewer of its streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from policysweep.report.html.markup import Markup, el
from policysweep.report.html.shell import document
from policysweep.report.streams.html.sections import stream_sections

Json = Mapping[str, Any]

VIEWS = (("Report", "#report", "report"), ("Streams", "#streams", "viewer"))


def stream_page(summary: Json, index: Json) -> str:
    """report.html, complete. `summary` is the content of stream-report.json, `index` see `index`."""
    return document(
        summary["run"]["run"] or "(no name)",
        [el("main", stream_sections(summary), id="report", class_="streams", tabindex=-1), _viewer()],
        {"summary": _charted(summary), "index": index},
        views=VIEWS,
        start="stream_main",
        rehearsal=bool(summary["rehearsal"]),
    )


def _charted(summary: Json) -> Json:
    """What the scripts draw and list; the rest stands in tables already, and in stream-report.json."""
    arms = [{key: arm[key] for key in ("domain", "title", "groups", "curve")} for arm in summary["arms"]]
    failures = {each["stream_id"]: each["failures"] for each in summary["streams"] if each["failures"]}
    return {"rehearsal": summary["rehearsal"], "arms": arms, "failures": failures}


def _viewer() -> Markup:
    """The empty frame of the viewer; app/ fills it."""
    choose = el(
        "div",
        el("h1", "Streams"),
        el("form", id="choice", aria_label="Stream"),
        el("nav", id="tasks-of-stream", aria_label="Tasks of the stream"),
        class_="choose",
    )
    read = el("article", id="case", tabindex=-1, aria_label="What is read")
    return el("main", choose, read, id="viewer", tabindex=-1, hidden=True)
