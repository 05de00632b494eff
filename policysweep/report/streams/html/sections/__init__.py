"""The sections of the report of a stream run, in reading order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from policysweep.report.html.markup import Child
from policysweep.report.streams.html.sections.comparisons import harm_section, regimes_section
from policysweep.report.streams.html.sections.costs import costs_section
from policysweep.report.streams.html.sections.lead import lead_section
from policysweep.report.streams.html.sections.lessons import lessons_section
from policysweep.report.streams.html.sections.passes import curve_section, passes_section, sisters_section
from policysweep.report.streams.html.sections.setup import setup_section

Json = Mapping[str, Any]


def stream_sections(summary: Json) -> Child:
    """Everything between the top and the viewer."""
    return [
        lead_section(summary),
        sisters_section(summary),
        curve_section(summary),
        regimes_section(summary),
        harm_section(summary),
        lessons_section(summary),
        passes_section(summary),
        costs_section(summary),
        setup_section(summary),
    ]
