"""The form of the files of an authored folder: clauses, personas, allocation and tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from policysweep.datasets.problems import Finding, Rule
from policysweep.datasets.rules.authored.vocabulary import vocabulary
from policysweep.datasets.rules.dataset import KINDS, LEVELS
from policysweep.datasets.rules.scenario import BIG_FIVE, PERSONA_FIELDS, json_list_field, traits
from policysweep.datasets.rules.shape import (
    both,
    choice,
    filled,
    listing,
    pattern,
    prose,
    record,
    string,
)
from policysweep.datasets.rules.world_shape import OUTCOMES, world_shape

REGISTERS = ("Frozen", "Formal", "Consultative", "Casual", "Intimate")
"""Joos' five registers."""
TIERS = ("High", "Medium", "Low")

CLAUSES = listing(
    record(
        {
            "clause_id": filled,
            "source": choice("policy", "third_party"),
            "heading": filled,
            "quote": filled,
            "kind": choice(*KINDS),
            "issue": filled,
            "readings": listing(filled, 2, 3),
            "pulls_towards": listing(choice(*OUTCOMES), at_least=2),
        }
    )
)
"""clauses.json: the ambiguous sentences of the two policies, their readings and where each pulls."""

ALLOCATION = listing(
    record(
        {
            "task_id": filled,
            "author": string,
            "level": choice(*LEVELS),
            "primary": choice(*KINDS),
            "tier": choice(*TIERS),
            "clauses": listing(filled),
            "products": listing(filled),
            "flags": string,
            "customer_id": filled,
            "order_id": filled,
            "history_order_prefix": filled,
            "seed": string,
        }
    )
)
"""allocation.json: what each task was asked to be."""


def _key_order(value: Any) -> Iterator[Finding]:
    if isinstance(value, dict) and set(value) == set(PERSONA_FIELDS) and list(value) != list(PERSONA_FIELDS):
        yield Finding((), f"the keys must stand in the order {list(PERSONA_FIELDS)}")


def _trait_order(value: Any) -> Iterator[Finding]:
    try:
        names = list(traits(value))
    except ValueError:
        return  # told by the shape of the field
    if names != list(BIG_FIVE):
        yield Finding((), f"must hold exactly {list(BIG_FIVE)}, in this order")


PERSONA = both(
    record(
        {
            **PERSONA_FIELDS,
            "Language Style": choice(*REGISTERS),
            "Personality Style": both(PERSONA_FIELDS["Personality Style"], _trait_order),
            "Persona_id": pattern(r"[A-Z]\w+_[A-Z]\w+_[A-Z]\w+_[0-9]{2}", "Name_JobSector_Country_01"),
        }
    ),
    _key_order,
)
"""A line of personas.jsonl."""


def _task(task_id: str) -> Rule:
    stratified = not task_id.startswith("task_E")
    return record(
        {
            "task_id": choice(task_id),
            "is_stratified": choice(stratified),
            "stratified_task_idx_aliases": choice([task_id] if stratified else []),
            "detail": prose(80, 260),
            "reason": prose(12, 50),
            "task": prose(10, 40),
            "related_policy_issues": json_list_field,
            "complexity_level": choice(*LEVELS),
            "complexity_ordinal": choice(*LEVELS.values()),
            "primary_ambiguity_type": choice(*KINDS),
            "all_ambiguity_types": json_list_field,
            "stratum_label": filled,
        }
    )


def task_file(task_id: str, persona_ids: Iterable[str]) -> Rule:
    """The form of the file of this task, with an opening for each of these personas."""
    customer = {"basic_info": prose(25, 120), "private_info": prose(30, 140), "behavior": prose(20, 100)}
    outcome = record({"outcome": choice(*OUTCOMES), "reason": prose(8, 40)})
    members = {
        "task": _task(task_id),
        "clauses": listing(filled, 2, 5),
        "plausible_outcomes": listing(outcome, 2, 5),
        "detail_agent": prose(8, 40),
        "customer_task_detail": record(customer),
        "private_markers": listing(filled, 2, 4),
        "world": world_shape(vocabulary(task_id.removeprefix("task_"))),
        "openings": record({persona: prose(20, 90) for persona in persona_ids}),
    }
    return record(members)
