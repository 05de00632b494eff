"""The form of DRIP-R records: scenario, task and persona, quirks included.

Two fields hold a list as JSON inside a string (`related_policy_issues`, `all_ambiguity_types`), and a
persona's `Personality Style` holds a Python dict literal inside a string. Fields that are not known are
ignored with a warning, as a data set may carry more than is needed; a misspelt one is an error.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import orjson

from policysweep.datasets.problems import Finding
from policysweep.datasets.rules.shape import (
    boolean,
    filled,
    integer,
    listing,
    nullable,
    record,
    string,
)

BIG_FIVE = ("Openness", "Conscientiousness", "Extraversion", "Agreeableness", "Neuroticism")
_LONGEST_TRAITS = 1000
"""Characters; anything longer is no dict of five traits, and a parser should not be asked."""


def json_list(text: str) -> list[str]:
    """The strings in a JSON-encoded list. Raises ValueError for anything else."""
    value = orjson.loads(text)
    if not isinstance(value, list) or not all(isinstance(part, str) for part in value):
        raise ValueError("not a list of strings")
    return value


@lru_cache(maxsize=1024)
def _literal(text: str) -> Any:
    if len(text) > _LONGEST_TRAITS:
        raise ValueError("too long")
    return ast.literal_eval(text)


def traits(text: str) -> dict[str, int]:
    """Trait to score from a dict literal. Raises ValueError for anything else."""
    try:
        value = _literal(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as fault:
        raise ValueError("not a dict literal") from fault
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise ValueError("not a dict of traits")
    for trait, score in value.items():
        if not isinstance(score, int) or isinstance(score, bool) or not 1 <= score <= 5:
            raise ValueError(f"{trait} is {score!r}, must be a whole number from 1 to 5")
    return value


def json_list_field(value: Any) -> Iterator[Finding]:
    """A string that holds a JSON list of strings that are not empty."""
    if not isinstance(value, str):
        yield Finding((), "must be a string that holds a JSON list of strings, for example '[\"Vagueness\"]'")
        return
    try:
        if not all(part.strip() for part in json_list(value)):
            yield Finding((), "holds an empty string in its JSON list")
    except ValueError as fault:
        yield Finding((), f"must hold a JSON list of strings: {fault}")


def _traits_field(value: Any) -> Iterator[Finding]:
    if not isinstance(value, str):
        yield Finding((), "must be a string that holds a dict, for example \"{'Openness': 4, ...}\"")
        return
    try:
        missing = set(BIG_FIVE) - traits(value).keys()
    except ValueError as fault:
        yield Finding((), f"must hold a dict of Big Five traits: {fault}")
        return
    if missing:
        yield Finding((), f"lacks the Big Five traits {sorted(missing)}")


_DESIGN = {
    "detail": filled,
    "reason": filled,
    "task": filled,
    "related_policy_issues": json_list_field,
    "complexity_level": filled,
    "complexity_ordinal": integer(0),
    "primary_ambiguity_type": filled,
    "all_ambiguity_types": json_list_field,
    "stratum_label": filled,
}
TASK_FIELDS = tuple(_DESIGN)
"""The fields of a task that are embedded in its scenarios."""

PERSONA_FIELDS = {
    "Name": filled,
    "Age-range": string,
    "Location": string,
    "Gender": string,
    "Job Sector": string,
    "Income range": string,
    "Person description": string,
    "Language Style": filled,
    "Personality Style": _traits_field,
    "Communication style": string,
    "Persona_id": filled,
}
_DOCUMENT = record({"url": nullable(string), "text": filled}, optional=["url"], unknown="warning")

PERSONA = record(PERSONA_FIELDS, unknown="warning")
"""A persona."""

TASK = record(
    {
        "task_id": filled,
        "is_stratified": boolean,
        "stratified_task_idx_aliases": listing(string),
        **_DESIGN,
    },
    unknown="warning",
)
"""A line of a tasks file."""

SCENARIO = record(
    {
        "scenario_id": filled,
        "Policy": record(
            {"Primary Policy": _DOCUMENT, "Related policies": listing(_DOCUMENT)}, unknown="warning"
        ),
        "persona": PERSONA,
        "task": record(_DESIGN, unknown="warning"),
        "first_customer_message": filled,
        "detail_agent": filled,
        "customer_task_detail": record(
            {"basic_info": filled, "private_info": filled, "behavior": filled}, unknown="warning"
        ),
        "task_id": filled,
        "source": nullable(string),
    },
    optional=["source"],
    unknown="warning",
)
"""A line of a scenarios file."""
