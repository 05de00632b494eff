from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policysweep.report.html.markup import Markup, el, join


def test_text_and_attributes_are_escaped() -> None:
    made = el("td", '<b a="1">&', title="\"'<>&")
    assert made == '<td title="&quot;&#x27;&lt;&gt;&amp;">&lt;b a=&quot;1&quot;&gt;&amp;</td>'


def test_elements_nest_and_nothing_is_left_out_or_escaped_twice() -> None:
    made = el("p", "a < b, ", el("b", "c & d"), [", ", [el("br"), None]])
    assert made == "<p>a &lt; b, <b>c &amp; d</b>, <br></p>"
    assert join(made) == made


def test_names_of_attributes() -> None:
    assert el("a", class_="x", data_chart="y", hidden=True, title=None, open=False, tabindex=0) == (
        '<a class="x" data-chart="y" hidden tabindex="0"></a>'
    )


@pytest.mark.parametrize("name", ["onclick", "onerror_", "style"])
def test_handlers_and_inline_styles_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="not allowed"):
        el("p", **{name: "x"})


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.title: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.title = dict(attrs).get("title", self.title)

    def handle_data(self, data: str) -> None:
        self.text += data


@given(st.text(), st.text())
def test_any_text_comes_back_as_text(text: str, title: str) -> None:
    reader = _Reader()
    reader.feed(el("p", text, title=title))
    reader.close()
    assert (reader.tags, reader.text, reader.title) == (["p"], text, title)


def test_markup_is_text_for_everybody_else() -> None:
    assert isinstance(Markup("<b>"), str)
