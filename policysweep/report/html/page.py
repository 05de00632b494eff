"""The complete page: the report's sections, the frame of the viewer, styles, scripts and data in one file.

Nothing is loaded but the transcripts, which lie beside the page, and no script runs but those that the page
was made with: the policy names each inline script and style sheet by its hash, and allows scripts from
files beside it. A text that should slip through the escaping would be shown, not run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from policysweep.report.html import assets
from policysweep.report.html.embed import script_json
from policysweep.report.html.markup import Child, Markup, el, join
from policysweep.report.html.sections import report_sections
from policysweep.report.html.viewer_frame import viewer_frame
from policysweep.report.outcomes import DISPLAY

Json = Mapping[str, Any]

REHEARSAL = "Rehearsal: a model without weights took part. No figure here is a finding."


def page(summary: Json, index: Json) -> str:
    """report.html, complete. `summary` is the content of report.json, `index` see `index`."""
    name = summary["run"]["run"] or "(no name)"
    rehearsal = bool(summary["rehearsal"])
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=_policy()),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", f"{'Rehearsal: ' if rehearsal else ''}{name} · policysweep"),
        _raw("style", assets.styles()),
    )
    body = el(
        "body",
        el("a", "Skip to the content", href="#report", class_="skip"),
        _top(name, rehearsal=rehearsal),
        el("main", report_sections(summary, index), id="report", tabindex=-1),
        viewer_frame(),
        _raw(
            "script",
            script_json({"summary": summary, "index": index, "outcomes": DISPLAY}),
            id="data",
            type="application/json",
        ),
        _raw("script", assets.charts()),
        _raw("script", assets.app(), type="module"),
        class_="rehearsal" if rehearsal else None,
    )
    return f"<!doctype html>\n{el('html', head, body, lang='en')}\n"


def _policy() -> str:
    """Nothing by default. `file:` is for a page that was opened from disk, where 'self' means nothing."""
    scripts = " ".join(assets.source_hash(source) for source in (assets.charts(), assets.app()))
    styles = assets.source_hash(assets.styles())
    return (
        f"default-src 'none'; script-src 'self' file: {scripts}; style-src {styles}; "
        "base-uri 'none'; form-action 'none'"
    )


def _raw(tag: str, content: str, **attributes: str) -> Markup:
    """An element with text that HTML does not parse: our own files, or data from `script_json`."""
    return el(tag, Markup(content), **attributes)


def _top(name: str, *, rehearsal: bool) -> Markup:
    links: list[Child] = [
        el("a", "Report", href="#report", data_view="report", aria_current="page"),
        el("a", "Conversations", href="#list", data_view="viewer"),
    ]
    banner = el("p", REHEARSAL, class_="banner", role="note") if rehearsal else None
    bar = el(
        "div", el("p", name, class_="run-name"), el("nav", join(links), aria_label="Views"), class_="bar"
    )
    return el("header", banner, bar, class_="top")
