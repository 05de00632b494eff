"""Checking data sets in the public layout: contradictions between records, leaks, gaps, tables and worlds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from policysweep.datasets.build import build
from policysweep.datasets.check import check
from policysweep.datasets.problems import Problem, errors_of

Write = Callable[..., Path]


def told(problems: list[Problem], severity: str = "error") -> list[tuple[int, str]]:
    return [(each.line, each.field) for each in problems if each.severity == severity]


@pytest.fixture
def folder(scenarios: list[Any], worlds: list[Any], write: Write, tmp_path: Path) -> Path:
    """A sound folder with all four tables: two tasks, three personas."""
    write(scenarios, "start/scenarios.jsonl")
    write(worlds, "start/worlds.jsonl")
    build(str(tmp_path / "start"), tmp_path / "set")
    return tmp_path / "set"


def test_the_public_sample_has_no_error(public_sample: Path) -> None:
    problems = check(str(public_sample))
    assert errors_of(problems) == []
    assert [problem.message for problem in problems] == [
        "1 of 1 tasks lack an order world; make them with `dataset worlds`"
    ]


def test_the_whole_layout_is_sound(folder: Path) -> None:
    assert check(str(folder)) == []


def first_task(**fields: Any) -> Callable[[list[Any]], object]:
    """Change the first task in all of its scenarios alike."""
    return lambda scenarios: [scenario["task"].update(fields) for scenario in scenarios[:3]]


def show_private(key: str) -> Callable[[list[Any]], object]:
    return lambda scenarios: scenarios[0].update({key: scenarios[0]["customer_task_detail"]["private_info"]})


PRIMARY = "Coordination Ambiguity"

BROKEN: list[tuple[Callable[[list[Any]], object], tuple[int, str]]] = [
    (first_task(complexity_ordinal=2), (1, "task.complexity_ordinal")),
    (first_task(all_ambiguity_types=f'["Vagueness", "{PRIMARY}"]'), (1, "task.all_ambiguity_types")),
    (
        first_task(all_ambiguity_types=f'["{PRIMARY}", "Vagueness", "Vagueness"]'),
        (1, "task.all_ambiguity_types"),
    ),
    (first_task(stratum_label="Vagueness__High"), (1, "task.stratum_label")),
    (lambda s: s[1]["task"].update(detail="Another story."), (2, "task.detail")),
    (lambda s: s[4]["persona"].update({"Age-range": "20-25"}), (5, "persona.Age-range")),
    (show_private("detail_agent"), (1, "detail_agent")),
]


@pytest.mark.parametrize(("broken", "expected"), BROKEN)
def test_contradictions_are_errors(
    scenarios: list[Any],
    write: Write,
    broken: Callable[[list[Any]], object],
    expected: tuple[int, str],
) -> None:
    broken(scenarios)
    assert told(check(str(write(scenarios)))) == [expected]


DOUBTFUL: list[tuple[Callable[[list[Any]], object], tuple[int, str]]] = [
    (lambda s: s[0].update(remark="x"), (1, "remark")),
    (lambda s: s[0]["persona"].update(Shoe="41"), (1, "persona.Shoe")),
    (lambda s: s[0].update(scenario_id="Dr._t017_5c17"), (1, "scenario_id")),
    (lambda s: s[0].update(scenario_id="Ann_t000_5c17"), (1, "scenario_id")),
    (lambda s: s.pop(), (0, "task_id")),
    (lambda s: s.append({**s[0], "scenario_id": "again"}), (7, "scenario_id")),
    (first_task(complexity_level="Huge"), (1, "task.complexity_level")),
    (show_private("first_customer_message"), (1, "first_customer_message")),
]


@pytest.mark.parametrize(("doubtful", "expected"), DOUBTFUL)
def test_what_may_be_meant_is_a_warning(
    scenarios: list[Any], write: Write, doubtful: Callable[[list[Any]], object], expected: tuple[int, str]
) -> None:
    doubtful(scenarios)
    problems = check(str(write(scenarios)))
    assert errors_of(problems) == []
    assert expected in told(problems, "warning")


def test_a_fact_that_is_told_freely_is_no_leak(scenarios: list[Any], write: Write) -> None:
    brief = scenarios[0]["customer_task_detail"]
    brief["basic_info"] += " " + brief["private_info"]
    scenarios[0]["detail_agent"] = brief["private_info"]
    assert errors_of(check(str(write(scenarios)))) == []


def change(folder: Path, name: str, edit: Callable[[list[Any]], object], write: Write) -> None:
    lines = [orjson.loads(line) for line in (folder / name).read_bytes().split(b"\n") if line]
    edit(lines)
    write(lines, str(folder / name))


TABLES: list[tuple[str, Callable[[list[Any]], object], str, tuple[int, str]]] = [
    ("tasks.jsonl", lambda t: t.pop(), "scenarios.jsonl", (4, "task_id")),
    ("tasks.jsonl", lambda t: t.append(t[0]), "tasks.jsonl", (3, "task_id")),
    ("tasks.jsonl", lambda t: t[0].update(reason="Another."), "scenarios.jsonl", (1, "task.reason")),
    ("tasks.jsonl", lambda t: t[0].update(is_stratified=False), "tasks.jsonl", (1, "is_stratified")),
    ("tasks.jsonl", lambda t: t[0].update(is_stratified="yes"), "tasks.jsonl", (1, "is_stratified")),
    ("tasks.jsonl", lambda t: t[0].update(complexity_ordinal=2), "tasks.jsonl", (1, "complexity_ordinal")),
    ("personas.jsonl", lambda p: p.pop(), "scenarios.jsonl", (3, "persona.Persona_id")),
    ("personas.jsonl", lambda p: p.append(p[0]), "personas.jsonl", (4, "Persona_id")),
    ("personas.jsonl", lambda p: p[0].update(Gender="?"), "scenarios.jsonl", (1, "persona.Gender")),
    ("personas.jsonl", lambda p: p[0].pop("Gender"), "personas.jsonl", (1, "Gender")),
    ("worlds.jsonl", lambda w: w.append(w[0]), "worlds.jsonl", (3, "task_id")),
    ("worlds.jsonl", lambda w: w[0]["world"]["order"].pop("items"), "worlds.jsonl", (1, "world.order.items")),
    (
        "worlds.jsonl",
        lambda w: w[0]["world"]["order"]["payment"].update(amount=1.0),
        "worlds.jsonl",
        (1, "world.order.payment.amount"),
    ),
    (
        "worlds.jsonl",
        lambda w: w[0]["world"]["customer"].update(since="2026-01-20"),
        "worlds.jsonl",
        (1, "world.customer.since"),
    ),
    (
        "worlds.jsonl",
        lambda w: w[0]["world"]["order"]["items"][0].update(item_id="I-000-2"),
        "worlds.jsonl",
        (1, "world.order.items[1].item_id"),
    ),
]


@pytest.mark.parametrize(("table", "edit", "file", "expected"), TABLES)
def test_tables_that_disagree_are_errors(
    folder: Path,
    write: Write,
    table: str,
    edit: Callable[[list[Any]], object],
    file: str,
    expected: tuple[int, str],
) -> None:
    change(folder, table, edit, write)
    found = errors_of(check(str(folder)))
    assert (str(folder / file), *expected) in [(each.file, each.line, each.field) for each in found]


def test_ids_and_words_of_other_shops_are_free(folder: Path, write: Write) -> None:
    def rename(lines: list[Any]) -> None:
        order, product = lines[0]["world"]["order"], lines[0]["world"]["products"][0]
        order["order_id"] = "112-9044"
        order["items"][0]["category"] = product["category"] = "Desks"
        order["items"][0]["tags"] = ["heavy"]
        order["items"][0]["seller"] = {"name": "Desks & Co", "type": "first_party", "fulfilled_by": "shop"}

    change(folder, "worlds.jsonl", rename, write)
    assert check(str(folder)) == []


def test_a_world_that_nobody_plays_is_a_warning(folder: Path, write: Write) -> None:
    change(folder, "worlds.jsonl", lambda w: w[1].update(task_id="task_099"), write)
    warnings = [problem.message for problem in check(str(folder)) if problem.severity == "warning"]
    assert len(warnings) == 2
    assert "no scenario plays this task" in warnings[1]
    assert "1 of 2 tasks lack an order world" in warnings[0]
