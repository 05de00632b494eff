"""Chance without chance: every "random" choice of the rehearsal model is a hash of what it depends on.

Equal parts give equal draws in every process and on every machine, so the order of requests, the number of
replicas and a restart change nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

_RANGE = float(1 << 64)


def _digest(parts: tuple[object, ...]) -> bytes:
    return hashlib.blake2b("\x1f".join(map(str, parts)).encode(), digest_size=8).digest()


def number(*parts: object) -> int:
    """A 64-bit integer."""
    return int.from_bytes(_digest(parts), "big")


def fraction(*parts: object) -> float:
    """A number in [0, 1)."""
    return number(*parts) / _RANGE


def fractions(count: int, *parts: object) -> list[float]:
    """`count` numbers in [0, 1), at most 8, from one hash."""
    digest = hashlib.blake2b("\x1f".join(map(str, parts)).encode(), digest_size=8 * count).digest()
    return [int.from_bytes(digest[at : at + 8], "big") / _RANGE for at in range(0, 8 * count, 8)]


def choose(options: Sequence[T], *parts: object) -> T:
    """One of the options, which must not be empty."""
    return options[number(*parts) % len(options)]
