"""Shapes: small rules that are put together into the form of a whole record.

A shape says which fields a value has and what each may hold. Rules that relate fields to each other stand
elsewhere and run only on values whose shape is right, so they may index without fear.
"""

from __future__ import annotations

import datetime as dt
import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeGuard

from policysweep.datasets.problems import Finding, Rule, Severity, under

_PLACEHOLDER = re.compile(r"\bTODO\b|\bXXX\b|\{\{|\}\}|lorem ipsum", re.IGNORECASE)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_INT32_MAX = 2**31 - 1


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def is_number(value: Any) -> TypeGuard[float]:
    """Whether a JSON value is a number; true and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def record(fields: Mapping[str, Rule], *, optional: Iterable[str] = (), unknown: Severity = "error") -> Rule:
    """An object with exactly these fields. `unknown` is how any further field counts that is not misspelt."""
    required = [key for key in fields if key not in set(optional)]

    def rule(value: Any) -> Iterator[Finding]:
        if not isinstance(value, dict):
            yield Finding((), f"must be an object, is {_kind(value)}")
            return
        missing = [key for key in required if key not in value]
        for key in [key for key in value if key not in fields]:
            yield _unknown(key, missing, fields, unknown)
        for key in missing:
            yield Finding((key,), "is missing")
        for key, field in fields.items():
            if key in value:
                yield from under((key,), field(value[key]))

    return rule


def _unknown(key: str, missing: list[str], fields: Mapping[str, Rule], severity: Severity) -> Finding:
    """Tell of a field that is not known; when it is a missing one misspelt, take that off the list."""
    fold = {name.casefold(): name for name in missing}
    meant = difflib.get_close_matches(key.casefold(), fold, n=1)
    if meant:
        missing.remove(fold[meant[0]])
        return Finding((key,), f"unknown field; did you mean {fold[meant[0]]!r}?")
    near = difflib.get_close_matches(key, fields, n=1)
    hint = f"; there is a field {near[0]!r}" if near else ""
    note = " and is ignored" if severity == "warning" else ""
    return Finding((key,), f"unknown field{note}{hint}", severity)


def listing(element: Rule, at_least: int = 0, at_most: int | None = None) -> Rule:
    """A list of `at_least` to `at_most` such elements."""

    def rule(value: Any) -> Iterator[Finding]:
        if not isinstance(value, list):
            yield Finding((), f"must be a list, is {_kind(value)}")
            return
        if len(value) < at_least or (at_most is not None and len(value) > at_most):
            bound = f"at least {at_least}" if at_most is None else f"{at_least} to {at_most}"
            yield Finding((), f"must have {bound} elements, has {len(value)}")
        for position, part in enumerate(value):
            yield from under((position,), element(part))

    return rule


def nullable(inner: Rule) -> Rule:
    """Null, or what `inner` allows."""

    def rule(value: Any) -> Iterable[Finding]:
        return () if value is None else inner(value)

    return rule


def string(value: Any) -> Iterator[Finding]:
    """Any string."""
    if not isinstance(value, str):
        yield Finding((), f"must be a string, is {_kind(value)}")


def filled(value: Any) -> Iterator[Finding]:
    """A string that is not empty."""
    if not isinstance(value, str):
        yield Finding((), f"must be a string, is {_kind(value)}")
    elif not value or value.isspace():
        yield Finding((), "must not be empty")


def prose(at_least: int, at_most: int) -> Rule:
    """A text of so many words, ready for readers."""

    def rule(value: Any) -> Iterator[Finding]:
        if not isinstance(value, str) or not value.strip():
            yield from filled(value)
            return
        count = len(value.split())
        if not at_least <= count <= at_most:
            yield Finding((), f"has {count} words, wanted {at_least} to {at_most}")
        if value != value.strip():
            yield Finding((), "has leading or trailing space")
        if _PLACEHOLDER.search(value):
            yield Finding((), "holds placeholder text")

    return rule


def choice(*options: Any) -> Rule:
    """One of these values."""

    def rule(value: Any) -> Iterator[Finding]:
        if not any(value == option and type(value) is type(option) for option in options):
            known = "one of " * (len(options) > 1) + ", ".join(map(repr, options))
            yield Finding((), f"is {value!r}, must be {known}{_near(value, options)}")

    return rule


def _near(value: Any, options: tuple[Any, ...]) -> str:
    if not isinstance(value, str):
        return ""
    meant = difflib.get_close_matches(value, [option for option in options if isinstance(option, str)], n=1)
    return f"; did you mean {meant[0]!r}?" if meant else ""


def pattern(expression: str, example: str) -> Rule:
    """A string of this form; `example` shows it to a person."""
    compiled = re.compile(expression)

    def rule(value: Any) -> Iterator[Finding]:
        if not isinstance(value, str) or not compiled.fullmatch(value):
            yield Finding((), f"is {value!r}, must have the form {example}")

    return rule


def boolean(value: Any) -> Iterator[Finding]:
    """True or false."""
    if not isinstance(value, bool):
        yield Finding((), f"must be true or false, is {_kind(value)}")


def integer(at_least: int, at_most: int = _INT32_MAX) -> Rule:
    """A whole number in a range that a 32-bit field can hold."""

    def rule(value: Any) -> Iterator[Finding]:
        if not isinstance(value, int) or isinstance(value, bool):
            yield Finding((), f"must be a whole number, is {value if is_number(value) else _kind(value)}")
        elif value < at_least:
            yield Finding((), f"is {value}, must be at least {at_least}")
        elif value > at_most:
            yield Finding((), f"is {value}, must be at most {at_most}")

    return rule


def amount(value: Any) -> Iterator[Finding]:
    """Money: at most two decimals, in US dollars, not negative."""
    yield from _cents(value)
    if is_number(value) and value < 0:
        yield Finding((), f"is {value}, must not be negative")


def reduction(value: Any) -> Iterator[Finding]:
    """Money that is taken off: like an amount, but not positive."""
    yield from _cents(value)
    if is_number(value) and value > 0:
        yield Finding((), f"is {value}, must be 0 or negative")


def _cents(value: Any) -> Iterator[Finding]:
    if not is_number(value):
        yield Finding((), f"must be a number, is {_kind(value)}")
    elif round(value, 2) != value:
        yield Finding((), f"is {value}, has more than two decimals")


def number(value: Any) -> Iterator[Finding]:
    """Any number."""
    if not is_number(value):
        yield Finding((), f"must be a number, is {_kind(value)}")


def date(value: Any) -> Iterator[Finding]:
    """A day of the calendar, YYYY-MM-DD."""
    if not isinstance(value, str) or not _DATE.fullmatch(value) or not _is_day(value):
        yield Finding((), f"is {value!r}, must be a date YYYY-MM-DD")


def _is_day(text: str) -> bool:
    try:
        dt.date.fromisoformat(text)
    except ValueError:
        return False
    return True


def mapping(of: Rule, at_least: int = 0) -> Rule:
    """An object with free keys, all of whose values are alike."""

    def rule(value: Any) -> Iterator[Finding]:
        if not isinstance(value, dict):
            yield Finding((), f"must be an object, is {_kind(value)}")
            return
        if len(value) < at_least:
            yield Finding((), f"must have at least {at_least} entries, has {len(value)}")
        for key, part in value.items():
            yield from under((key,), of(part))

    return rule


def both(*rules: Rule) -> Rule:
    """What all of these rules allow."""

    def rule(value: Any) -> Iterator[Finding]:
        for each in rules:
            yield from each(value)

    return rule
