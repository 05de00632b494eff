"""Log-probabilities that look like a model's: confident on words, spread over neighbours on scores.

A token here is a digit, a run of up to six letters, a run of blanks or one other character; joined, they give
the text back. A digit from 1 to 5 is taken for a score: its neighbours get geometrically less mass.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Any

from policysweep.models.rehearsal import draws

_TOKEN = re.compile(r"\d|[^\W\d_]{1,6}|\s+|.", re.DOTALL)
_SCALE = "12345"
_OFF_SCALE = 0.002
_GRADES = 8
"""Degrees of confidence on words: few, so that an entry is made once and not for each token."""
_FILLERS = (
    " the", " a", ",", ".", " and", " of", " to", " in", "\n", " is", '"', " that", " for", " it", "}", " on",
    " with", ":", " as", " or",
)  # fmt: skip


def split(text: str) -> list[str]:
    """The tokens of a text."""
    return _TOKEN.findall(text)


def content(text: str, top: int, digest: str) -> list[dict[str, Any]]:
    """`choices[0].logprobs.content`: one entry per token, each with `top` alternatives, likeliest first."""
    start = draws.number("words", digest)
    return [
        _entry(token, _score_masses(token, position, digest), top)
        if token in _SCALE
        else _word_entry(token, (start >> position % 60) % _GRADES, top)
        for position, token in enumerate(split(text))
    ]


@lru_cache(maxsize=8192)
def _word_entry(token: str, grade: int, top: int) -> dict[str, Any]:
    sure = 0.7 + 0.299 * grade / (_GRADES - 1)
    return _entry(token, {token: sure} | _fillers(token, 1.0 - sure, len(_FILLERS)), top)


def _entry(token: str, masses: dict[str, float], top: int) -> dict[str, Any]:
    ranked = sorted(masses.items(), key=lambda pair: (-pair[1], pair[0]))
    return _named(token, masses[token]) | {"top_logprobs": [_named(*pair) for pair in ranked[:top]]}


def _named(token: str, mass: float) -> dict[str, Any]:
    return {"token": token, "logprob": round(math.log(mass), 6), "bytes": list(token.encode())}


def _score_masses(token: str, position: int, digest: str) -> dict[str, float]:
    sharpness = 0.12 + 0.3 * draws.fraction("score", digest, position)
    tilt = 0.7 + 0.6 * draws.fraction("tilt", digest, position)
    weights = {
        digit: sharpness ** abs(int(digit) - int(token)) * (tilt if digit > token else 1.0)
        for digit in _SCALE
    }
    total = sum(weights.values())
    on_scale = {digit: weight / total * (1 - _OFF_SCALE) for digit, weight in weights.items()}
    return on_scale | _fillers(token, _OFF_SCALE, 15)


def _fillers(token: str, mass: float, many: int) -> dict[str, float]:
    """Other tokens that share `mass`, each half as likely as the one before."""
    others = [filler for filler in _FILLERS if filler != token][:many]
    return {filler: mass * 0.5 ** (rank + 1) for rank, filler in enumerate(others)}
