"""The rules for one task file: its design, its texts, and what the customer may and may not give away.

Each rule needs some members of the file to have the right form, and is skipped while one of them has not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from policysweep.datasets.problems import Finding, under
from policysweep.datasets.rules.authored.clauses import check_clauses_bite, check_shop
from policysweep.datasets.rules.authored.foundation import Foundation
from policysweep.datasets.rules.authored.openings import check_openings
from policysweep.datasets.rules.authored.shapes import TIERS
from policysweep.datasets.rules.authored.vocabulary import ORDER_ID
from policysweep.datasets.rules.dataset import design
from policysweep.datasets.rules.scenario import json_list
from policysweep.datasets.rules.text import normal, words
from policysweep.datasets.rules.world import check_world, ids

Json = Mapping[str, Any]

CLAUSES_PER_LEVEL = {4: (4, 5), 3: (3, 5), 2: (2, 3)}
"""Complexity ordinal to the fewest and most clauses."""
ISSUE_WORDS = (5, 45)
MARKER_LENGTH = (4, 40)
ALWAYS_PLAUSIBLE = ("USER_ABORT", "ESCALATE_HUMAN_AGENT")

_SENTENCE_END = re.compile(r"[.!?](?:\s|$)")
_GENDERED = re.compile(r"\b(he|she|his|hers|himself|herself)\b", re.IGNORECASE)

TaskRule = Callable[[Json, Foundation], Iterator[Finding]]


def check_task(file: Json, base: Foundation, malformed: set[str]) -> Iterator[Finding]:
    """All rules whose members are there and well formed."""
    sound = file.keys() - malformed
    for rule, members in _RULES:
        if sound.issuperset(members):
            yield from rule(file, base)


def _clauses(file: Json, base: Foundation) -> Iterator[Finding]:
    for at, clause in enumerate(file["clauses"]):
        if clause not in base.clauses:
            yield Finding(("clauses", at), f"{clause!r} is not in clauses.json")
        elif clause in file["clauses"][:at]:
            yield Finding(("clauses", at), f"{clause!r} occurs twice")


def kinds(file: Json, base: Foundation) -> list[str]:
    """The kinds of ambiguity of the task's clauses, in their order."""
    return [base.clauses[clause]["kind"] for clause in file["clauses"] if clause in base.clauses]


def _design(file: Json, base: Foundation) -> Iterator[Finding]:
    task, of_clauses = file["task"], kinds(file, base)
    fewest, most = CLAUSES_PER_LEVEL[task["complexity_ordinal"]]
    if not fewest <= len(file["clauses"]) <= most:
        told = (
            f"has {len(file['clauses'])} clauses, wanted {fewest} to {most} for {task['complexity_level']!r}"
        )
        yield Finding(("clauses",), told)
    listed = json_list(task["all_ambiguity_types"])
    if sorted(listed) != sorted(set(of_clauses)):
        yield Finding(
            ("task", "all_ambiguity_types"), f"is {listed}, the clauses' are {sorted(set(of_clauses))}"
        )
    if of_clauses[:1] != [task["primary_ambiguity_type"]]:
        told = (
            f"is {task['primary_ambiguity_type']!r}, must be the kind of the first clause, {of_clauses[:1]}"
        )
        yield Finding(("task", "primary_ambiguity_type"), told)
    yield from under(("task",), _issues(json_list(task["related_policy_issues"]), len(file["clauses"])))


def _issues(issues: list[str], clauses: int) -> Iterator[Finding]:
    path = ("related_policy_issues",)
    if len(issues) != clauses:
        yield Finding(path, f"has {len(issues)} sentences for {clauses} clauses")
    fewest, most = ISSUE_WORDS
    for issue in issues:
        if not fewest <= len(issue.split()) <= most:
            yield Finding(
                path, f"has {len(issue.split())} words in {issue[:40]!r}, wanted {fewest} to {most}"
            )


def _labels(file: Json, base: Foundation) -> Iterator[Finding]:
    yield from under(("task",), design(file["task"]))
    tier = file["task"]["stratum_label"].rpartition("__")[2]
    if tier not in TIERS:
        yield Finding(("task", "stratum_label"), f"ends in {tier!r}, must end in one of {', '.join(TIERS)}")


def _allocated_design(file: Json, base: Foundation) -> Iterator[Finding]:
    allocated = base.allocation.get(file["task"]["task_id"])
    if allocated is None:
        return
    wanted = {
        "complexity_level": allocated["level"],
        "primary_ambiguity_type": allocated["primary"],
        "stratum_label": f"{allocated['primary']}__{allocated['tier']}",
    }
    for key, value in wanted.items():
        if file["task"][key] != value:
            yield Finding(("task", key), f"is {file['task'][key]!r}, allocated is {value!r}")
    if file["clauses"] != allocated["clauses"]:
        yield Finding(("clauses",), f"are {file['clauses']}, allocated are {allocated['clauses']}")


def _allocated_world(file: Json, base: Foundation) -> Iterator[Finding]:
    allocated = base.allocation.get(file["task"]["task_id"])
    if allocated is None:
        return
    for path in (("customer", "customer_id"), ("order", "order_id")):
        found, wanted = file["world"][path[0]][path[1]], allocated[path[1]]
        if found != wanted:
            yield Finding(("world", *path), f"is {found!r}, allocated is {wanted!r}")
    named = {item["name"] for item in file["world"]["order"]["items"]}
    if not named >= set(allocated["products"][:2]):
        yield Finding(("world", "order", "items"), "the names differ from the allocation", "warning")
    prefixes = allocated["history_order_prefix"].split("/")
    for at, past in enumerate(file["world"]["other_orders"]):
        if prefixes != ["-"] and past["order_id"][: len("ORD-###-")] not in prefixes:
            told = f"is {past['order_id']!r}, must start with one of {prefixes}"
            yield Finding(("world", "other_orders", at, "order_id"), told)


def _outcomes(file: Json, base: Foundation) -> Iterator[Finding]:
    named = [each["outcome"] for each in file["plausible_outcomes"]]
    path = ("plausible_outcomes",)
    if len(set(named)) != len(named):
        yield Finding(path, "names an outcome twice")
    if len(set(named) - {"USER_ABORT"}) < 2:
        yield Finding(path, "at least two besides USER_ABORT are needed")
    pulled = {
        outcome
        for clause in file["clauses"]
        for outcome in base.clauses.get(clause, {}).get("pulls_towards", ())
    }
    for at, outcome in enumerate(named):
        if outcome not in pulled.union(ALWAYS_PLAUSIBLE):
            yield Finding((*path, at, "outcome"), f"none of the clauses pulls towards {outcome}")


def _one_sentence(file: Json, base: Foundation) -> Iterator[Finding]:
    if len(_SENTENCE_END.findall(file["detail_agent"])) != 1:
        yield Finding(("detail_agent",), "must be one sentence")


def _markers(file: Json, base: Foundation) -> Iterator[Finding]:
    customer = file["customer_task_detail"]
    shown = {
        ("detail_agent",): file["detail_agent"],
        ("customer_task_detail", "basic_info"): customer["basic_info"],
    }
    shown |= {("openings", persona): text for persona, text in file["openings"].items()}
    shortest, longest = MARKER_LENGTH
    for at, marker in enumerate(file["private_markers"]):
        path = ("private_markers", at)
        if not shortest <= len(marker) <= longest:
            yield Finding(path, f"{marker!r} has {len(marker)} characters, wanted {shortest} to {longest}")
        if normal(marker) not in normal(customer["private_info"]):
            yield Finding(path, f"{marker!r} is not in private_info")
        for where, text in shown.items():
            if normal(marker) in normal(text):
                yield Finding(where, f"gives away the private marker {marker!r}")


def _shared_texts(file: Json, base: Foundation) -> Iterator[Finding]:
    shared = {("task", "detail"): file["task"]["detail"], ("detail_agent",): file["detail_agent"]}
    shared |= {("customer_task_detail", key): text for key, text in file["customer_task_detail"].items()}
    for path, text in shared.items():
        named = base.persona_names & set(words(text))
        if named:
            yield Finding(path, f"names a persona, {sorted(named)}, although all ten share this text")
        if _GENDERED.search(text):
            yield Finding(path, "has a gendered pronoun; make sure that it is not the customer's", "warning")


def _order_ids(file: Json, base: Foundation) -> Iterator[Finding]:
    known = {name for _, name in ids(file["world"])}
    texts = {("task", "detail"): file["task"]["detail"]}
    texts[("customer_task_detail", "basic_info")] = file["customer_task_detail"]["basic_info"]
    for path, text in texts.items():
        for order_id in ORDER_ID.findall(text):
            if order_id not in known:
                yield Finding(path, f"names the order {order_id}, which is not in the world")


def _openings(file: Json, base: Foundation) -> Iterator[Finding]:
    names = [product["name"] for product in file["world"]["products"]]
    return under(("openings",), check_openings(file["openings"], base, names))


def _world(file: Json, base: Foundation) -> Iterator[Finding]:
    yield from under(("world",), check_world(file["world"]))
    yield from under(("world",), check_shop(file["world"]))


def _clauses_bite(file: Json, base: Foundation) -> Iterator[Finding]:
    return under(("world",), check_clauses_bite(file["world"], file["clauses"]))


_RULES: tuple[tuple[TaskRule, tuple[str, ...]], ...] = (
    (_clauses, ("clauses",)),
    (_design, ("task", "clauses")),
    (_labels, ("task",)),
    (_allocated_design, ("task", "clauses")),
    (_allocated_world, ("task", "world")),
    (_outcomes, ("plausible_outcomes", "clauses")),
    (_one_sentence, ("detail_agent",)),
    (_markers, ("private_markers", "detail_agent", "customer_task_detail", "openings")),
    (_shared_texts, ("task", "detail_agent", "customer_task_detail")),
    (_order_ids, ("task", "customer_task_detail", "world")),
    (_openings, ("openings", "world")),
    (_world, ("world",)),
    (_clauses_bite, ("world", "clauses")),
)
"""Each rule with the members of the file that it looks at."""
