"""The page of a sweep: the report's sections and the viewer of its conversations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from policysweep.report.html.markup import el
from policysweep.report.html.sections import report_sections
from policysweep.report.html.shell import document
from policysweep.report.html.viewer_frame import viewer_frame
from policysweep.report.outcomes import DISPLAY

Json = Mapping[str, Any]

VIEWS = (("Report", "#report", "report"), ("Conversations", "#list", "viewer"))


def page(summary: Json, index: Json) -> str:
    """report.html, complete. `summary` is the content of report.json, `index` see `index`."""
    return document(
        summary["run"]["run"] or "(no name)",
        [el("main", report_sections(summary, index), id="report", tabindex=-1), viewer_frame()],
        {"summary": summary, "index": index, "outcomes": DISPLAY},
        views=VIEWS,
        start="main",
        rehearsal=bool(summary["rehearsal"]),
    )
