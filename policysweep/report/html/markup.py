"""Builds HTML from text that nobody vouches for: what is not made by `el` is escaped.

el("td", agent_name, class_="name") -> '<td class="name">&lt;b&gt;</td>'
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TypeAlias

_VOID = frozenset({"meta", "br"})


class Markup(str):
    """Text that is HTML already. Only this module and `shell`, for its own files, make any."""

    __slots__ = ()


Child: TypeAlias = "str | Iterable[Child] | None"
"""What an element may hold: text, which is escaped, elements, or several of them; None is nothing."""


def el(tag: str, *children: Child, **attributes: str | int | float | bool | None) -> Markup:
    """An element. A trailing "_" of an attribute's name is dropped, other "_" become "-".

    An attribute that is True is written without a value; one that is False or None is left out. There is no
    way to give an event handler or an inline style, which the page's policy would refuse anyway.
    """
    opening = f"<{tag}{''.join(_attribute(name, value) for name, value in attributes.items())}>"
    return Markup(opening if tag in _VOID else f"{opening}{join(children)}</{tag}>")


def join(children: Child) -> Markup:
    """Children one after another."""
    if children is None:
        return Markup("")
    if isinstance(children, Markup):
        return children
    if isinstance(children, str):
        return Markup(escape(children))
    return Markup("".join(map(join, children)))


def _attribute(name: str, value: str | int | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    shown = name.removesuffix("_").replace("_", "-")
    if shown.startswith("on") or shown == "style":
        raise ValueError(f"the attribute {shown!r} is not allowed in the report")
    return f" {shown}" if value is True else f' {shown}="{escape(str(value))}"'
