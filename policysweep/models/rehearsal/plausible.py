"""Plausible values by property name, cited from the prompt where that is possible."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from functools import cached_property

from policysweep.models.rehearsal import draws

_QUOTED = re.compile(r"[\"“']([A-Z][^\"“”\n]{2,58}[^\"“”\s,.])[\"”'](?![a-z])")
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]{3,}")
_CITED_CHARACTERS = 6000
_PLAIN_WORDS = ("the", "order", "item", "policy", "customer", "window", "refund", "condition")
_CATEGORIES = (
    "Home, kitchen, and garden",
    "Electronics and electronic accessories",
    "Clothing, shoes, and bags",
)
_SENTENCES = (
    "The text speaks of {0} and {1}, and the weight lies on {2}.",
    "It turns on {0}: {1} counts for it, {2} against it.",
    "What is said about {0} supports this; {1} and {2} leave some doubt.",
    "{0}, {1} and {2} are mentioned, and none of them settles the matter alone.",
)


class Prompt:
    """The prompt as a quarry of words. The end is cited, since it holds what is particular to a request."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _words(self) -> list[str]:
        return _WORD.findall(self._text[-_CITED_CHARACTERS:]) or list(_PLAIN_WORDS)

    @cached_property
    def _titles(self) -> list[str]:
        return list(dict.fromkeys(_QUOTED.findall(self._text)))

    def titles(self) -> list[str]:
        """The names that the prompt quotes, each once, in order."""
        return self._titles

    def word(self, *key: object) -> str:
        """One word."""
        return draws.choose(self._words, "word", *key)

    def phrase(self, *key: object) -> str:
        """Two to four words in a row."""
        start = draws.number("phrase", *key)
        words = self._words
        return " ".join(words[(start + offset) % len(words)] for offset in range(2 + start % 3))

    def sentence(self, *key: object) -> str:
        """A sentence that cites three words."""
        start, words = draws.number("sentence", *key), self._words
        cited = [words[(start + position * (1 + len(words) // 3)) % len(words)] for position in range(3)]
        return draws.choose(_SENTENCES, *key).format(*cited)

    def title(self, *key: object) -> str:
        """A name: one that the prompt quotes, else made of its words."""
        return draws.choose(self._titles, *key) if self._titles else self.phrase(*key).title()

    def text(self, name: str, form: str | None, *key: object) -> str:
        """A string for the property `name` with the JSON-schema format `form`."""
        if form in _FORMATS:
            return _FORMATS[form](draws.number("format", *key))
        lowered = name.lower()
        for names, make in _BY_NAME.items():
            if any(hint in lowered for hint in names):
                return make(self, key)
        return self.phrase(*key)

    def usual_range(self, name: str, *, whole: bool) -> tuple[int, int]:
        """The usual range of a number for the property `name`."""
        lowered = name.lower()
        for names, usual in _RANGES.items():
            if any(hint in lowered for hint in names):
                return usual
        return (1, 9) if whole else (0, 100)


def _date(draw: int) -> str:
    return f"2025-{1 + draw % 12:02d}-{1 + draw // 16 % 28:02d}"


_FORMATS: Mapping[str | None, Callable[[int], str]] = {
    "date": _date,
    "date-time": lambda draw: f"{_date(draw)}T{draw % 24:02d}:{draw // 32 % 60:02d}:00Z",
    "time": lambda draw: f"{draw % 24:02d}:{draw // 32 % 60:02d}:00Z",
    "email": lambda draw: f"customer{draw % 1000}@mail.example",
    "uri": lambda draw: f"https://shop.example/{draw % 100000}",
    "uuid": lambda draw: str(uuid.UUID(int=draw | draw << 64, version=4)),
}

_BY_NAME: Mapping[tuple[str, ...], Callable[[Prompt, tuple[object, ...]], str]] = {
    ("rationale", "reason", "justification", "note", "description", "explanation", "evidence", "comment",
     "summary", "detail", "message"): lambda prompt, key: prompt.sentence(*key),
    ("currency",): lambda prompt, key: "USD",
    ("category",): lambda prompt, key: draws.choose(_CATEGORIES, *key),
    ("date", "_at", "since"): lambda prompt, key: _date(draws.number(*key)),
    ("email",): lambda prompt, key: _FORMATS["email"](draws.number(*key)),
    ("name", "product", "title", "label", "item"): lambda prompt, key: prompt.title(*key),
    ("_id", "identifier"): lambda prompt, key: f"ID-{draws.number(*key) % 1_000_000:06d}",
}  # fmt: skip

_RANGES: Mapping[tuple[str, ...], tuple[int, int]] = {
    ("price", "amount", "total", "cost", "refund", "paid"): (12, 240),
    ("quantity", "count", "units", "number"): (1, 3),
    ("days", "window", "months"): (7, 45),
    ("score", "rating", "grade"): (1, 5),
    ("percent", "percentage"): (0, 20),
    ("rate", "probability", "confidence", "share"): (0, 1),
}
