"""Money is counted in whole cents; it meets JSON and protobuf as dollars with at most two decimals."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal


def cents(dollars: float | Decimal) -> int:
    """The amount in cents, rounded to the nearest one."""
    return round(dollars * 100)


def dollars(amount: int) -> float:
    """An amount in cents as a JSON number of dollars."""
    return amount / 100


def text(amount: int) -> str:
    """An amount in cents for a reader, for example "$1,204.50"."""
    return f"${amount / 100:,.2f}"


def split(amount: int, weights: Sequence[int]) -> list[int]:
    """Divide `amount` cents in proportion to non-negative `weights`, to the cent.

    The parts add up to `amount` (largest remainder, the earlier part first); no part exceeds its weight
    when `amount` does not exceed their sum. Without any weight all parts are 0.
    """
    total = sum(weights)
    if not total:
        return [0] * len(weights)
    parts = [amount * weight // total for weight in weights]
    by_remainder = sorted(range(len(weights)), key=lambda i: -(amount * weights[i] % total))
    for i in by_remainder[: amount - sum(parts)]:
        parts[i] += 1
    return parts
