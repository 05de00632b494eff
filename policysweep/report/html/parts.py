"""What the sections of the report are made of: headings, figures, tables, lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from urllib.parse import quote, urlencode

from policysweep.report.html.markup import Child, Markup, el


def section(key: str, title: str, *content: Child) -> Markup:
    """A section of the report; `key` is its place in the page's address."""
    heading = el("h2", title, id=f"{key}-title")
    return el("section", heading, content, id=key, aria_labelledby=f"{key}-title")


def figure(chart: str, caption: Child, label: str, about: str | None = None) -> Markup:
    """A place that the script draws a chart into.

    `chart` names the drawing in app/charts.js, `about` what it is drawn of where there are several; `label`
    says to a screen reader what it shows. The same figures stand in a table beside it.
    """
    box = el("div", class_="chart-box", data_chart=chart, data_about=about, role="img", aria_label=label)
    return el("figure", box, el("figcaption", caption), class_="drawn")


def table(
    caption: Child, columns: Sequence[str], rows: Iterable[Sequence[Child]], *, words: int = 1
) -> Markup:
    """A table. The first cell of a row names it; columns after the first `words` hold numbers."""
    kinds = ["word" if position < words else "number" for position in range(len(columns))]
    head = [el("th", name, scope="col", class_=kind) for name, kind in zip(columns, kinds, strict=True)]
    body = [el("tr", _cells(row, kinds)) for row in rows]
    made = el("table", el("caption", caption), el("thead", el("tr", head)), el("tbody", body))
    return el("div", made, class_="scroll", tabindex=0, role="region", aria_label=_text(caption))


def _cells(row: Sequence[Child], kinds: Sequence[str]) -> Iterable[Markup]:
    for position, (cell, kind) in enumerate(zip(row, kinds, strict=True)):
        if position == 0:
            yield el("th", cell, scope="row", class_=kind)
        else:
            yield el("td", cell, class_=kind)


def _text(caption: Child) -> str:
    return caption if isinstance(caption, str) and not isinstance(caption, Markup) else "Table"


def folded(summary: Child, *content: Child) -> Markup:
    """Content that a reader opens; open on paper."""
    return el("details", el("summary", summary), content)


def listed(items: Iterable[Child], class_: str | None = None) -> Markup:
    """A bulleted list."""
    return el("ul", [el("li", item) for item in items], class_=class_)


def facts(pairs: Iterable[tuple[str, Child]]) -> Markup:
    """Labels with their values."""
    return el("dl", [el("div", el("dt", label), el("dd", value)) for label, value in pairs], class_="facts")


def dim(text: Child) -> Markup:
    """Secondary text."""
    return el("span", text, class_="dim")


def withheld(reason: str) -> Markup:
    """Says that a figure is not given, and why."""
    return el("p", el("strong", "Withheld: "), reason, class_="withheld")


def list_address(**filters: str) -> str:
    """The address, within the page, of the conversations that fit some filters; see app/state.js."""
    return f"#list&{urlencode(filters, quote_via=quote)}"
