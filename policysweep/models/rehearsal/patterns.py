"""A text that matches a regular expression of the kind that JSON schemas carry.

Understood: literals, ., classes, \\d \\w \\s, groups, alternatives, the quantifiers ? * + {m} {m,n}, and
anchors at the ends. Anything that looks around or back is refused.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable

from policysweep.models.rehearsal import draws

_CLASSES = {"d": string.digits, "w": string.ascii_letters + string.digits + "_", "s": " "}
_PRINTABLE = string.ascii_letters + string.digits + " .,-_/:"
_ESCAPED = {"n": "\n", "t": "\t"}
_EXTRA = 3

_Node = Callable[[tuple[object, ...]], str]


class UnsupportedPattern(ValueError):
    """A pattern that uses more than is understood."""


def matching(pattern: str, *key: object) -> str:
    """A text that matches `pattern`, drawn by `key`. Raises UnsupportedPattern."""
    text = _Parser(pattern).parse()(key)
    try:
        fits = re.search(pattern, text) is not None
    except re.error as error:
        raise UnsupportedPattern(f"it is no valid pattern ({error})") from error
    if not fits:
        raise UnsupportedPattern("it uses more than the rehearsal model understands")
    return text


class _Parser:
    def __init__(self, pattern: str) -> None:
        self._rest = pattern

    def parse(self) -> _Node:
        node = self._alternatives()
        if self._rest:
            raise UnsupportedPattern(f"it cannot be read from {self._rest!r} on")
        return node

    def _alternatives(self) -> _Node:
        branches = [self._sequence()]
        while self._take("|"):
            branches.append(self._sequence())
        return lambda key: draws.choose(branches, "branch", *key)((*key, "b"))

    def _sequence(self) -> _Node:
        parts: list[_Node] = []
        while self._rest and self._rest[0] not in "|)":
            if self._rest[0] in "^$":
                self._next()
                continue
            parts.append(self._repeated(self._atom()))
        return lambda key: "".join(part((*key, place)) for place, part in enumerate(parts))

    def _atom(self) -> _Node:
        first = self._next()
        if first == "(":
            return self._group()
        if first == "[":
            return self._any_of(self._class())
        if first == "\\":
            return self._any_of(self._escape())
        if first in "*+?{":
            raise UnsupportedPattern(f"{first!r} repeats nothing")
        return self._any_of(_PRINTABLE if first == "." else first)

    def _group(self) -> _Node:
        if self._take("?") and not self._take(":"):
            raise UnsupportedPattern("look-around and named groups are not understood")
        node = self._alternatives()
        if not self._take(")"):
            raise UnsupportedPattern("a group is not closed")
        return node

    def _escape(self) -> str:
        letter = self._next()
        if letter.isdigit() or letter in "bBAZDWSpPuxk":
            raise UnsupportedPattern(f"\\{letter} is not understood")
        return _CLASSES.get(letter) or _ESCAPED.get(letter, letter)

    def _class(self) -> str:
        negated = self._take("^")
        members = ""
        while not self._take("]"):
            letter = self._next()
            options = self._escape() if letter == "\\" else letter
            if len(options) == 1 and self._rest[:1] == "-" and self._rest[1:2] not in ("]", ""):
                self._next()
                options = "".join(map(chr, range(ord(options), ord(self._next()) + 1)))
            members += options
        allowed = "".join(letter for letter in _PRINTABLE if letter not in members) if negated else members
        if not allowed:
            raise UnsupportedPattern("a class of characters allows none")
        return allowed

    def _any_of(self, letters: str) -> _Node:
        return lambda key: draws.choose(letters, *key)

    def _repeated(self, node: _Node) -> _Node:
        low, high = self._quantifier()
        self._take("?")  # a lazy quantifier matches the same texts
        return lambda key: "".join(
            node((*key, turn)) for turn in range(low + draws.number("many", *key) % (high - low + 1))
        )

    def _quantifier(self) -> tuple[int, int]:
        for sign, bounds in (("?", (0, 1)), ("*", (0, _EXTRA)), ("+", (1, 1 + _EXTRA))):
            if self._take(sign):
                return bounds
        found = re.match(r"\{(\d+)(,?)(\d*)\}", self._rest)
        if found is None:
            return 1, 1
        self._rest = self._rest[found.end() :]
        low = int(found[1])
        high = int(found[3]) if found[3] else low + _EXTRA if found[2] else low
        if high < low:
            raise UnsupportedPattern(f"{found[0]} is no range")
        return low, high

    def _take(self, sign: str) -> bool:
        taken = self._rest.startswith(sign)
        if taken:
            self._rest = self._rest[len(sign) :]
        return taken

    def _next(self) -> str:
        if not self._rest:
            raise UnsupportedPattern("it ends too early")
        letter, self._rest = self._rest[0], self._rest[1:]
        return letter
