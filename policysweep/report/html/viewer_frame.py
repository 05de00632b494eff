"""The empty frame of the transcript viewer; app/ fills it."""

from __future__ import annotations

from policysweep.report.html.markup import Markup, el


def viewer_frame() -> Markup:
    """Filters and list on one side, the conversations of a scenario on the other."""
    choose = el(
        "div",
        el("h1", "Conversations"),
        el("form", id="filters", aria_label="Filters"),
        el("div", id="found", role="status", aria_live="polite"),
        el("nav", id="hits", aria_label="Conversations found"),
        class_="choose",
    )
    read = el("article", id="case", tabindex=-1, aria_label="Conversations of a scenario")
    return el("main", choose, read, id="viewer", tabindex=-1, hidden=True)
