"""Every rule of authored folders, broken once: the checker must say so, at the right file, line and field."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from policysweep.datasets.authored import BUILTIN
from policysweep.datasets.check import check
from policysweep.datasets.problems import Problem, errors_of

TASKS = ("task_000", "task_003", "task_008", "task_E02")
"""A split delivery, promotions, a member, and a third-party seller: something for every rule."""

DELETE = object()
HOLLIS, TOMASZ, WIREMU = (
    "Hollis_LandRecords_USA_01",
    "Tomasz_Rail_Poland_01",
    "Wiremu_Electrical_NewZealand_01",
)
POLICY_SENTENCE = "Assembled furniture and lighting fixtures are treated as used."


@dataclass(frozen=True)
class Break:
    """Sets the field at a path; a function gets the old value. `told` is the field that must be named."""

    path: str
    value: Any
    told: str = ""
    task: str = "task_000"

    @property
    def field(self) -> str:
        return self.told or self.path

    def __call__(self, whole: Any) -> None:
        *steps, last = (
            int(key[1:-1]) if key[0] == "[" else key for key in re.findall(r"\[\d+\]|[^.\[]+", self.path)
        )
        for step in steps:
            whole = whole[step]
        if self.value is DELETE:
            del whole[last]
        else:
            whole[last] = self.value(whole.get(last)) if callable(self.value) else self.value


def plus(more: Any) -> Callable[[Any], Any]:
    return lambda old: old + more


def errors(root: Path, *, full: bool = False) -> list[Problem]:
    return errors_of(check(str(root), full=full))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "authored"
    (root / "tasks").mkdir(parents=True)
    for path in BUILTIN.iterdir():
        if path.is_file():
            shutil.copy(path, root)
    for task in TASKS:
        shutil.copy(BUILTIN / "tasks" / f"{task}.json", root / "tasks")
    return root


def edit_json(path: Path, edit: Callable[[Any], object]) -> None:
    value = json.loads(path.read_text(encoding="utf-8"))
    edit(value)
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1), encoding="utf-8")


def edit_lines(path: Path, edit: Callable[[list[Any]], object]) -> None:
    values = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
    edit(values)
    lines = "\n".join(json.dumps(value, ensure_ascii=False) for value in values)
    path.write_text(lines, encoding="utf-8")


BREAKS = [
    Break("detail_agent", DELETE),
    Break("note", "x"),
    Break("openings", lambda openings: openings.pop(HOLLIS) and openings, f"openings.{HOLLIS}"),
    Break(
        "openings",
        lambda openings: {**openings, "Zoe_Art_Peru_01": "x " * 29 + "x"},
        "openings.Zoe_Art_Peru_01",
    ),
    Break("task.task_id", "task_001"),
    Break("task.is_stratified", True, task="task_E02"),
    Break("task.stratified_task_idx_aliases", []),
    Break("task.detail", "Too short."),
    Break("task.detail", plus(" Marisol is the customer.")),
    Break("task.detail", plus(" See ORD-999-000000.")),
    Break("task.reason", plus(" ")),
    Break("task.related_policy_issues", "['x']"),
    Break("task.related_policy_issues", ["x"]),
    Break("task.related_policy_issues", lambda issues: json.dumps(json.loads(issues)[:-1])),
    Break("task.related_policy_issues", lambda issues: json.dumps(["Too short.", *json.loads(issues)[1:]])),
    Break("task.all_ambiguity_types", '["Coordination Ambiguity"]'),
    Break("task.all_ambiguity_types", lambda kinds: json.dumps(json.loads(kinds)[::-1])),
    Break("task.primary_ambiguity_type", "Vagueness"),
    Break("task.complexity_level", "Huge Complexity"),
    Break("task.complexity_ordinal", 3),
    Break("task.stratum_label", "Coordination Ambiguity__Huge"),
    Break("task.stratum_label", "Coordination Ambiguity__Low"),
    Break("clauses[1]", "C99"),
    Break("clauses[1]", "C43"),
    Break("clauses", ["C43", "C10"]),
    Break("clauses", ["C43", "C10", "C33", "C32", "C02"]),
    Break("plausible_outcomes[0].outcome", "FULL"),
    Break("plausible_outcomes[0].outcome", "REPLACEMENT_EXCHANGE"),
    Break("plausible_outcomes[0].outcome", "DENY_REFUND", "plausible_outcomes"),
    Break("plausible_outcomes[0].reason", "So it is."),
    Break("plausible_outcomes", lambda outcomes: outcomes[:1]),
    Break("detail_agent", plus(" They are angry.")),
    Break("detail_agent", "Customer asks to return a desk with a pantry door on it, to the card."),
    Break("private_markers[0]", "blue whale"),
    Break("private_markers[0]", "old"),
    Break("private_markers", ["stripped"]),
    Break("customer_task_detail.basic_info", plus(" It has a scratch.")),
    Break("customer_task_detail.behavior", plus(" TODO")),
    Break(f"openings.{HOLLIS}", "A desk came late."),
    Break(f"openings.{HOLLIS}", 7),
    Break(f"openings.{TOMASZ}", plus(" The Hex  Key is gone.")),
    Break(f"openings.{TOMASZ}", plus(f" {POLICY_SENTENCE}")),
    Break(f"openings.{TOMASZ}", plus(" My name is Wiremu.")),
    Break(f"openings.{TOMASZ}", plus(" This is I-000-1.")),
    Break("openings", lambda openings: {**openings, WIREMU: openings[TOMASZ]}, f"openings.{WIREMU}"),
    Break("openings", lambda openings: {key: f"So here goes: {text}" for key, text in openings.items()}),
    Break("world.today", "2026-01-28"),
    Break("world.gold_facts", DELETE),
    Break("world.gold_facts.reason_truth", "No reason."),
    Break("world.customer.customer_id", "CUST-1"),
    Break("world.customer.customer_id", "CUST-00000000"),
    Break("world.customer.email_domain", "mail.com"),
    Break("world.customer.member_tier", "Circle"),
    Break(
        "world.customer.membership",
        [{"tier": "Circle", "from": "2025-01-02", "to": "2025-01-01"}],
        "world.customer.membership[0].to",
    ),
    Break(
        "world.customer.membership",
        [{"tier": "Circle", "from": "2025-01-02"}],
        "world.customer.membership[0].to",
    ),
    Break("world.customer.since", "2026-01-01"),
    Break("world.customer.since", "2022-02-30"),
    Break("world.customer.return_history.rate", 0.2),
    Break("world.customer.return_history.returns_12m", 10),
    Break("world.customer.return_history.orders_12m", 1),
    Break("world.customer.return_history.abuse_risk_level", "HIGH"),
    Break("world.customer.return_history.recommended_deduction_percentage", 10),
    Break("world.customer.payment_methods[0].type", "cash"),
    Break("world.customer.addresses[0].kind", "office"),
    Break("world.products[3].product_id", "P-001-4"),
    Break("world.products[3].name", "Desk"),
    Break("world.products[3].category", "Furniture"),
    Break("world.products[3].specs", {"Material": "Ash"}),
    Break("world.products[3].stock.available", -1),
    Break("world.products[2].stock.restock_date", "2026-01-02"),
    Break("world.products[0].variants[0].variant_id", "P-000-2-A"),
    Break("world.products[3].price", 349.999),
    Break("world.products[3].price", "349"),
    Break("world.order.order_id", "ORD-400-000000"),
    Break("world.order.channel", "fax"),
    Break("world.order.placed_at", "2026-01-28"),
    Break("world.order.placed_at", "2025-12-24"),  # the holiday period, without a clause about it
    Break("world.order.ship_to.address_label", "Office"),
    Break("world.order.ship_to.cross_border", True),
    Break("world.order.gift.sent_to_other", True),
    Break("world.order.payment.amount", 602.0),
    Break("world.order.payment.gift_card_part", 700.0),
    Break("world.order.payment.method", "gift_card", "world.order.payment.gift_card_part"),
    Break("world.order.payment.method", "debit_card"),
    Break("world.order.items[0].item_id", "I-1"),
    Break("world.order.items[0].product_id", "P-000-9"),
    Break("world.order.items[0].name", "Another Frame"),
    Break("world.order.items[0].quantity", 0),
    Break("world.order.items[0].quantity", 1.5),
    Break("world.order.items[0].currency", "EUR"),
    Break("world.order.items[0].seller.name", "Tarnholt", "world.order.items[0].seller"),
    Break("world.order.items[0].seller.type", "third_party", "world.order.items"),  # without a T clause
    Break("world.order.items[0].tags", ["heavy"], "world.order.items[0].tags[0]"),
    Break("world.order.items[0].tags", ["accessory_of:I-000-9"], "world.order.items[0].tags[0]"),
    Break("world.order.items[0].window_days_on_listing", 400),
    Break("world.order.items", lambda items: items[:1]),
    Break("world.order.promotions[0].amount", 21.0, task="task_003"),
    Break(
        "world.order.promotions[0].item_ids", ["I-003-9"], "world.order.promotions[0].item_ids[0]", "task_003"
    ),
    Break("world.order.promotions[0].scope", "all", task="task_003"),
    Break("world.order.promotions", [], "world", "task_003"),  # its clauses are about promotions
    Break("world.order.shipments[0].promised_by", "2025-12-01"),
    Break("world.order.shipments[0].shipped_at", "2025-12-01"),
    Break("world.order.shipments[0].delivered_at", "2025-12-28"),
    Break("world.order.shipments[0].delivered_at", "2026-01-28"),
    Break("world.order.shipments[0].carrier_status", "lost", "world.order.shipments[0].delivered_at"),
    Break("world.order.shipments[0].items", [], "world.order.shipments"),
    Break("world.order.shipments[1].shipment_id", "S-000-1"),
    Break("world.other_orders[0].order_id", "ORD-999-123456", task="task_003"),
    Break("world.other_orders[0].amount", 40.0),
    Break("world.other_orders[0].placed_at", "2020-01-01"),
    Break("world.other_orders[0].status", "returned"),
    Break("world.other_orders[1].returns[0].item_id", "I-000-H9"),
    Break("world.other_orders[1].returns[0].returned_at", "2025-01-01"),
    Break("world.other_orders[1].items[0].product_id", "P-000-H1"),
    Break("world.inspection_truth", lambda truth: truth[1:]),
    Break("world.inspection_truth[0].condition", "used"),
    Break("world.inspection_truth[0].notes", "Used."),
    Break("world.inspection_truth[0].accessories_missing", "hex key"),
]


def test_the_folder_is_sound_before_it_is_broken(folder: Path) -> None:
    assert check(str(folder), full=False) == []


@pytest.mark.parametrize("broken", BREAKS, ids=lambda broken: broken.field)
def test_a_broken_task_is_told_with_file_line_and_field(folder: Path, broken: Break) -> None:
    path = folder / "tasks" / f"{broken.task}.json"
    edit_json(path, broken)
    everything = errors(folder)
    found = [problem for problem in everything if problem.field == broken.field]
    assert found, [str(problem) for problem in everything]
    assert {problem.file for problem in found} == {str(path)}
    if not broken.field.endswith("]") and found[0].message != "is missing":
        line = path.read_text(encoding="utf-8").split("\n")[found[0].line - 1]
        assert f'"{broken.field.rpartition(".")[2]}":' in line


def test_a_misspelt_member_is_told_with_its_right_name(folder: Path) -> None:
    edit_json(folder / "tasks" / "task_000.json", lambda task: task.update(opening=task.pop("openings")))
    found = errors(folder)
    assert [(problem.field, problem.message) for problem in found] == [
        ("opening", "unknown field; did you mean 'openings'?")
    ]


def test_a_task_without_a_third_party_item_has_no_third_party_clause(folder: Path) -> None:
    seller = {"name": "Merrowick", "type": "first_party", "fulfilled_by": "merrowick"}
    edit_json(
        folder / "tasks" / "task_E02.json",
        lambda task: [item.update(seller=seller) for item in task["world"]["order"]["items"]],
    )
    assert "world.order.items" in {problem.field for problem in errors(folder)}


def in_json(name: str, path: str, value: Any) -> Callable[[Path], None]:
    return lambda root: edit_json(root / name, Break(path, value))


def in_personas(path: str, value: Any) -> Callable[[Path], None]:
    return lambda root: edit_lines(root / "personas.jsonl", Break(path, value))


def in_text(name: str, old: str, new: str) -> Callable[[Path], None]:
    def apply(root: Path) -> None:
        text = (root / name).read_text(encoding="utf-8")
        assert old in text
        (root / name).write_text(text.replace(old, new), encoding="utf-8")

    return apply


def all_casual(root: Path) -> None:
    edit_lines(
        root / "personas.jsonl", lambda lines: [each.update({"Language Style": "Casual"}) for each in lines]
    )


def rename_task(root: Path) -> None:
    (root / "tasks" / "task_000.json").rename(root / "tasks" / "task_0.json")


def reorder_persona(root: Path) -> None:
    edit_lines(root / "personas.jsonl", lambda lines: lines[0].update(Name=lines[0].pop("Name")))


def drop_persona(root: Path) -> None:
    edit_lines(root / "personas.jsonl", lambda lines: lines.pop())


def drop_clauses(root: Path) -> None:
    edit_json(root / "clauses.json", lambda clauses: clauses.__delitem__(slice(0, 40)))


SIX = "{'Openness': 6, 'Conscientiousness': 5, 'Extraversion': 2, 'Agreeableness': 3, 'Neuroticism': 2}"
SWAPPED = "{'Conscientiousness': 5, 'Openness': 2, 'Extraversion': 2, 'Agreeableness': 3, 'Neuroticism': 2}"
TRESTLE = "Tarnholt Fixed-Height Trestle Desk"

FOUNDATION_BREAKS: list[tuple[Callable[[Path], None], str, str]] = [
    (in_text("policy.md", "## 2.", "word " * 700 + "\n## 2."), "policy.md", ""),
    (in_text("policy.md", POLICY_SENTENCE, "Assembled furniture is used."), "clauses.json", "[9].quote"),
    (in_json("clauses.json", "[0].heading", "Windows"), "clauses.json", "[0].heading"),
    (in_json("clauses.json", "[0].kind", "Vague"), "clauses.json", "[0].kind"),
    (in_json("clauses.json", "[0].issue", DELETE), "clauses.json", "[0].issue"),
    (in_json("clauses.json", "[1].clause_id", "C01"), "clauses.json", "[1].clause_id"),
    (in_json("clauses.json", "[0].readings", ["only"]), "clauses.json", "[0].readings"),
    (in_json("clauses.json", "[0].pulls_towards", ["DENY_REFUND"]), "clauses.json", "[0].pulls_towards"),
    (in_json("clauses.json", "[0].source", "terms"), "clauses.json", "[0].source"),
    (drop_clauses, "clauses.json", ""),
    (in_json("allocation.json", "[0].level", "Huge"), "allocation.json", "[0].level"),
    (drop_persona, "personas.jsonl", ""),
    (reorder_persona, "personas.jsonl", ""),
    (in_personas("[1].Persona_id", HOLLIS), "personas.jsonl", "Persona_id"),
    (in_personas("[0].Persona_id", "Hollis"), "personas.jsonl", "Persona_id"),
    (in_personas("[0].Gender", DELETE), "personas.jsonl", "Gender"),
    (in_personas("[0].Personality Style", SIX), "personas.jsonl", "Personality Style"),
    (in_personas("[0].Personality Style", SWAPPED), "personas.jsonl", "Personality Style"),
    (in_personas("[0].Language Style", "Terse"), "personas.jsonl", "Language Style"),
    (all_casual, "personas.jsonl", "Language Style"),
    (in_personas("[1].Name", "Ingeborg Solheim"), "personas.jsonl", "Name"),
    (in_personas("[0].Name", "Tomasz Brandt"), "personas.jsonl", "Name"),
    (rename_task, "tasks/task_0.json", ""),
    (in_text("tasks/task_000.json", '"clauses": [', '"clauses" ['), "tasks/task_000.json", ""),
    (in_text("tasks/task_000.json", '"clauses": [', '"clauses": 1, "clauses": ['), "tasks/task_000.json", ""),
    (
        in_json("tasks/task_003.json", "world.products[3].name", TRESTLE),
        "tasks/task_003.json",
        "world.products[3].name",
    ),
    (
        in_json("tasks/task_003.json", "world.other_orders[0].order_id", "ORD-112-904417"),
        "tasks/task_003.json",
        "world.other_orders[0].order_id",
    ),
]


@pytest.mark.parametrize(("broken", "file", "field"), FOUNDATION_BREAKS)
def test_a_broken_foundation_is_told(
    folder: Path, broken: Callable[[Path], object], file: str, field: str
) -> None:
    broken(folder)
    assert (str(folder / file), field) in [(problem.file, problem.field) for problem in errors(folder)]


def copy_text(folder: Path, *path: str) -> str:
    """Give task_003 a text of task_000; returns the field."""
    value = json.loads((folder / "tasks" / "task_000.json").read_text(encoding="utf-8"))
    for step in path:
        value = value[step]
    edit_json(folder / "tasks" / "task_003.json", Break(".".join(path), value))
    return ".".join(path)


@pytest.mark.parametrize("path", [("task", "detail"), ("openings", TOMASZ)])
def test_texts_shared_by_two_tasks_are_told(folder: Path, path: tuple[str, ...]) -> None:
    field = copy_text(folder, *path)
    told = [p.message for p in errors(folder) if p.field == field and p.file.endswith("task_003.json")]
    assert any("task_000" in message for message in told)


def test_a_persona_that_starts_every_opening_alike_is_told(folder: Path) -> None:
    for task in TASKS:
        edit_json(
            folder / "tasks" / f"{task}.json",
            lambda d: d["openings"].update({TOMASZ: f"Hello to you all. {d['openings'][TOMASZ]}"}),
        )
    told = [problem.message for problem in errors(folder) if problem.field == f"openings.{TOMASZ}"]
    assert any("starts 4 openings with 'hello to you all'" in message for message in told)


def test_full_demands_the_counts(folder: Path) -> None:
    told = "\n".join(problem.message for problem in errors(folder, full=True))
    for part in (
        "tasks missing ['task_001'",
        "complexity levels are",
        "primary type 'Vagueness'",
        "no task uses",
    ):
        assert part in told


def test_a_gendered_pronoun_is_a_warning(folder: Path) -> None:
    field = "customer_task_detail.behavior"
    edit_json(folder / "tasks" / "task_000.json", Break(field, plus(" Asks what she can do.")))
    found = check(str(folder), full=False)
    assert [(problem.field, problem.severity) for problem in found] == [(field, "warning")]


def test_the_shipped_data_set_has_no_problem() -> None:
    assert check("builtin") == []
