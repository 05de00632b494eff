"""A number inside a schema's bounds, from the usual range where the bounds leave room for it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

_FINEST = 12


def within(schema: dict[str, Any], usual: tuple[int, int], draw: int, *, whole: bool) -> float:
    """The `draw`-th fitting multiple of the schema's step, an int if `whole`.

    `usual` is a plausible range. Raises ValueError, in words that follow on "the schema", when nothing fits.
    """
    step = _step(schema, whole=whole)
    low, high = _bounds(schema)
    for start, end in _ranges(low, high, usual, step):
        for size in _sizes(step, schema, whole=whole):
            first, last = -(-start // size), end // size
            first += _is_excluded(first * size, schema, "exclusiveMinimum")
            last -= _is_excluded(last * size, schema, "exclusiveMaximum")
            if first <= last:
                value = (first + draw % (last - first + 1)) * size
                return int(value) if whole else float(value)
    raise ValueError(f"allows no multiple of {float(step):g} within its bounds")


def _step(schema: dict[str, Any], *, whole: bool) -> Fraction:
    asked = schema.get("multipleOf")
    if asked is None:
        return Fraction(1) if whole else Fraction(1, 100)
    step = Fraction(str(asked))
    if step <= 0:
        raise ValueError(f"has multipleOf {asked}, which must be positive")
    return step * step.denominator if whole else step


def _sizes(step: Fraction, schema: dict[str, Any], *, whole: bool) -> list[Fraction]:
    """The step, and finer ones where the schema prescribes none: bounds may be closer than a cent."""
    if whole or "multipleOf" in schema:
        return [step]
    return [step / 10**digits for digits in range(_FINEST)]


def _bounds(schema: dict[str, Any]) -> tuple[Fraction | None, Fraction | None]:
    def strictest(keywords: tuple[str, str], pick: Any) -> Fraction | None:
        given = [Fraction(str(schema[keyword])) for keyword in keywords if schema.get(keyword) is not None]
        return pick(given) if given else None

    return strictest(("minimum", "exclusiveMinimum"), max), strictest(("maximum", "exclusiveMaximum"), min)


def _ranges(
    low: Fraction | None, high: Fraction | None, usual: tuple[int, int], step: Fraction
) -> list[tuple[Fraction, Fraction]]:
    """Where to look: the usual range cut to the bounds, the bounds, then open sides wide enough to step."""
    open_below, open_above = low is None, high is None
    span = Fraction(usual[1] - usual[0] + 1)
    if low is None:
        low = Fraction(usual[0]) if high is None or high >= usual[0] else high - span * 100
    if high is None:
        high = max(Fraction(usual[1]), low + span * 100)
    reach = max(span * 100, 2 * step)
    wide = (min(low, high - reach) if open_below else low, max(high, low + reach) if open_above else high)
    cut = (max(low, Fraction(usual[0])), min(high, Fraction(usual[1])))
    return [cut, (low, high), wide] if cut[0] <= cut[1] else [(low, high), wide]


def _is_excluded(value: Fraction, schema: dict[str, Any], keyword: str) -> bool:
    return schema.get(keyword) is not None and value == Fraction(str(schema[keyword]))
