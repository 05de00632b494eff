"""The frame of every page: one file with styles, scripts and data inside, and the mark of a rehearsal.

Nothing is loaded but the transcripts, which lie beside the page, and no script runs but those that the page
was made with: the policy names each inline script and style sheet by its hash, and allows scripts from
files beside it. A text that should slip through the escaping would be shown, not run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from policysweep.report.html import assets
from policysweep.report.html.embed import script_json
from policysweep.report.html.markup import Child, Markup, el, join

REHEARSAL = "Rehearsal: a model without weights took part. No figure here is a finding."


def document(
    name: str,
    content: Child,
    data: Mapping[str, Any],
    *,
    views: Sequence[tuple[str, str, str]],
    start: str,
    rehearsal: bool,
) -> str:
    """A complete page.

    `name` is that of the run, `content` the main elements, `data` what the scripts read, `views` the name,
    address and key of each view, the first of which is shown at first, `start` the script that starts the
    page, see `assets.app`.
    """
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=_policy(start)),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", f"{'Rehearsal: ' if rehearsal else ''}{name} · policysweep"),
        _raw("style", assets.styles()),
    )
    body = el(
        "body",
        el("a", "Skip to the content", href="#report", class_="skip"),
        _top(name, views, rehearsal=rehearsal),
        content,
        _raw("script", script_json(data), id="data", type="application/json"),
        _raw("script", assets.charts()),
        _raw("script", assets.app(start), type="module"),
        class_="rehearsal" if rehearsal else None,
    )
    return f"<!doctype html>\n{el('html', head, body, lang='en')}\n"


def _policy(start: str) -> str:
    """Nothing by default. `file:` is for a page that was opened from disk, where 'self' means nothing."""
    scripts = " ".join(assets.source_hash(source) for source in (assets.charts(), assets.app(start)))
    styles = assets.source_hash(assets.styles())
    return (
        f"default-src 'none'; script-src 'self' file: {scripts}; style-src {styles}; "
        "base-uri 'none'; form-action 'none'"
    )


def _raw(tag: str, content: str, **attributes: str) -> Markup:
    """An element with text that HTML does not parse: our own files, or data from `script_json`."""
    return el(tag, Markup(content), **attributes)


def _top(name: str, views: Sequence[tuple[str, str, str]], *, rehearsal: bool) -> Markup:
    links = [
        el("a", title, href=address, data_view=view, aria_current="page" if position == 0 else None)
        for position, (title, address, view) in enumerate(views)
    ]
    banner = el("p", REHEARSAL, class_="banner", role="note") if rehearsal else None
    bar = el(
        "div", el("p", name, class_="run-name"), el("nav", join(links), aria_label="Views"), class_="bar"
    )
    return el("header", banner, bar, class_="top")
