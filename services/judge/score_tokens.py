"""Probability-weighted scores after G-Eval (Liu et al. 2023, arXiv 2303.16634); pure.

A judge that writes `4` may have held 3 for nearly as likely. Where the server tells the alternatives at the
token that holds the score, the score is their expectation over the scale,

    value = sum(s * p(s)) / sum(p(s)),    s in 1..5,

and sum(p(s)) is reported as the mass on the scale. Two exact steps lead there: from a value's path in the
JSON text to its characters, and from characters to the token that covers them.
"""

from __future__ import annotations

import bisect
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from policysweep.models.chat import TokenLogprob
from services.judge.rubric import SCALE

Path = tuple[str | int, ...]

_LEXEME = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|-?[0-9][0-9.eE+-]*|[{}\[\],:]|true|false|null|-?Infinity|NaN')
_SCORE = re.compile(r"([1-5])(?:\.0*)?(?![0-9.eE])")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")


@dataclass(frozen=True, slots=True)
class WeightedScore:
    """The expectation over the scale, and the probability mass that lies on it, 0 to 1."""

    value: float
    mass: float


class ScoreTokens:
    """The alternatives behind the numbers of one answer. `text` must be valid JSON."""

    def __init__(self, text: str, logprobs: Sequence[TokenLogprob]) -> None:
        self._logprobs = logprobs
        # Servers break characters beyond ASCII into tokens that read as U+FFFD or as nothing. JSON's own
        # characters and digits are ASCII, so both sides are compared without the others.
        tokens = [_ascii(entry.token) for entry in logprobs]
        plain = _ascii(text)
        # What the tokens say may be longer: reasoning before the answer, an end-of-turn token after it.
        offset = "".join(tokens).rfind(plain) if logprobs else -1
        self._starts = list(itertools.accumulate((len(token) for token in tokens), initial=-offset))
        self._spans = number_positions(plain) if offset >= 0 else {}

    def weighted(self, path: Path) -> WeightedScore | None:
        """The weighted score at `path`; None when its token cannot be told or has no mass on the scale."""
        position = self._spans.get(path)
        if position is None:
            return None
        at = bisect.bisect_right(self._starts, position) - 1
        token = _ascii(self._logprobs[at].token)
        return weighted_score(self._logprobs[at], token[: position - self._starts[at]])


def weighted_score(place: TokenLogprob, before: str = "") -> WeightedScore | None:
    """The weighted score at one token, of which `before` precedes the digit, for example `": `.

    An alternative counts for a score when it puts that digit in the same place: after the same characters, be
    it with other blanks, and followed by nothing that would make it another number.
    """
    masses = dict.fromkeys(SCALE, 0.0)
    for token, logprob in place.alternatives.items():
        if (score := _score_of(token, before)) is not None:
            masses[score] += math.exp(logprob)
    mass = sum(masses.values())
    if not mass > 0:
        return None
    value = sum(score * share for score, share in masses.items()) / mass
    return WeightedScore(value, min(mass, 1.0))


def _score_of(token: str, before: str) -> int | None:
    before = before.rstrip()
    found = _SCORE.match(token[len(before) :].lstrip()) if token.startswith(before) else None
    return None if found is None else int(found.group(1))


def number_positions(text: str) -> Mapping[Path, int]:
    """Where each number of a valid JSON text begins, by its path; keys that are used twice: the last one."""
    positions: dict[Path, int] = {}
    path: list[str | int] = []
    key: str | None = None
    for lexeme in _LEXEME.finditer(text):
        first = text[lexeme.start()]
        if first in "{[":
            path.append("" if first == "{" else 0)
        elif first in "}]":
            path.pop()
        elif first == '"':
            key = lexeme.group()
        elif first == ":" and key is not None:
            path[-1] = orjson.loads(key)
        elif first == "," and isinstance(path[-1], int):
            path[-1] += 1
        elif first in "-0123456789":
            positions[tuple(path)] = lexeme.start()
    return positions


def _ascii(text: str) -> str:
    return text if text.isascii() else _NOT_ASCII.sub("", text)
