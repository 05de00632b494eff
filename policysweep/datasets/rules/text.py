"""Comparing texts: words, runs of words, and private facts that show through."""

from __future__ import annotations

import re

LEAK_WORDS = 6
"""A run of so many words of the private information, found elsewhere, is taken for a leak."""

_SPACE = re.compile(r"\s+")
_WORD = re.compile(r"[\w']+")

Run = tuple[str, ...]


def normal(text: str) -> str:
    """Lower case, plain apostrophes, single spaces."""
    return _SPACE.sub(" ", text.lower().replace("\u2019", "'").replace("\u2014", " ")).strip()


def words(text: str) -> list[str]:
    """The words of a text, without punctuation."""
    return _WORD.findall(normal(text))


def runs(of: list[str], length: int) -> set[Run]:
    """All runs of `length` words."""
    return {tuple(of[start : start + length]) for start in range(len(of) - length + 1)}


def overlap(one: set[Run], other: set[Run]) -> float:
    """The share of the smaller set that both have, 0 to 1."""
    return len(one & other) / max(1, min(len(one), len(other)))


def leak(private: str, shared: str, shown: str) -> str | None:
    """A run of words of `private` that `shown` gives away and `shared` does not have, if any."""
    telling = runs(words(private), LEAK_WORDS) - runs(words(shared), LEAK_WORDS)
    told = telling & runs(words(shown), LEAK_WORDS)
    return " ".join(min(told)) if told else None
