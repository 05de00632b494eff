"""The sections of the report in reading order, made of the summary and, where a text is needed, the index."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from policysweep.report.html.markup import Child
from policysweep.report.html.sections.agreement import agreement_section
from policysweep.report.html.sections.breakdowns import breakdowns_section
from policysweep.report.html.sections.ends import ends_section
from policysweep.report.html.sections.judges import judges_section
from policysweep.report.html.sections.lead import lead_section
from policysweep.report.html.sections.outcomes import outcomes_section
from policysweep.report.html.sections.scores import scores_section
from policysweep.report.html.sections.setup import setup_section
from policysweep.report.html.sections.tasks import tasks_section

Json = Mapping[str, Any]


def report_sections(summary: Json, index: Json) -> Child:
    """Everything between the top and the viewer."""
    return [
        lead_section(summary),
        outcomes_section(summary),
        agreement_section(summary),
        scores_section(summary),
        tasks_section(summary, index),
        breakdowns_section(summary),
        judges_section(summary),
        ends_section(summary),
        setup_section(summary),
    ]
