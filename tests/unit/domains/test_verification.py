from __future__ import annotations

import json

import pytest

from policysweep.domains.returns.environment import ReturnsEnvironment
from policysweep.domains.returns.verification import REASONS, reason_class
from policysweep.errors import InputError
from policysweep.v1 import world_pb2

from .support import (
    ERROR,
    OK,
    TASKS,
    VERIFY,
    Conversation,
    builtin_world,
    mixed_world,
    return_of,
    truthful_lines,
)

CONDITIONS = ("unopened", "opened_unused", "opened_used", "defective", "damaged_in_shipping", "wrong_item")
MISMATCHES = {
    "unopened": {"defective", "damaged_in_shipping", "wrong_item"},
    "opened_unused": {"unopened", "defective", "damaged_in_shipping", "wrong_item"},
    "opened_used": {"unopened", "opened_unused", "defective", "damaged_in_shipping", "wrong_item"},
    "defective": {"unopened", "opened_unused", "wrong_item"},
    "damaged_in_shipping": {"unopened", "opened_unused", "wrong_item"},
    "wrong_item": {"unopened", "opened_unused", "defective", "damaged_in_shipping"},
}
"""True condition to the declared ones that must not pass, written out independently of the code."""


def world_in(condition: str, parts_missing: bool = False) -> world_pb2.OrderWorld:
    """task_000 with both items in one condition."""
    world = world_pb2.OrderWorld()
    world.CopyFrom(builtin_world("task_000"))
    for truth in world.inspection_truth:
        truth.condition = condition
        truth.accessories_missing[:] = ["hex key"] if parts_missing else []
    return world


@pytest.mark.parametrize("truth", CONDITIONS)
@pytest.mark.parametrize("declared", CONDITIONS)
@pytest.mark.parametrize("tool", ["process_return", "process_exchange"])
def test_the_table_of_mismatches(truth: str, declared: str, tool: str) -> None:
    talk = Conversation(world_in(truth))
    status = attempt(talk, tool, declared)
    assert status == (VERIFY if declared in MISMATCHES[truth] else OK)
    assert bool(talk.environment.writes()) == (status == OK)


def attempt(talk: Conversation, tool: str, declared: str, reason: str = "changed_mind") -> int:
    owned = {"order_id": "current", "customer_id": "current"}
    if tool == "process_return":
        request = return_of(("I-000-2", 1, declared), return_reason=reason)
        return talk.outcome(tool, **owned, **request).status
    line = {
        "original_item_id": "I-000-2",
        "original_quantity": 1,
        "condition": declared,
        "new_product_id": "P-000-2",
        "new_quantity": 1,
    }
    return talk.outcome(tool, **owned, items_to_exchange=[line], exchange_reason=reason).status


@pytest.mark.parametrize(
    ("reason", "truth", "parts_missing", "passes"),
    [
        ("defective", "defective", False, True),
        ("defective", "damaged_in_shipping", False, True),
        ("defective", "opened_used", False, False),
        ("Damaged", "damaged_in_shipping", False, True),
        ("damaged-in-shipping", "opened_used", False, False),
        ("wrong item", "wrong_item", False, True),
        ("wrong_item", "defective", False, False),
        ("missing_parts", "opened_used", True, True),
        ("missing_parts", "opened_used", False, False),
        ("not_as_described", "opened_used", False, True),
        ("no_longer_needed", "opened_used", False, True),
        ("the words of the customer", "opened_used", False, True),
    ],
)
def test_reasons_that_blame_the_shop_are_checked(
    reason: str, truth: str, parts_missing: bool, passes: bool
) -> None:
    declared = "opened_used" if truth in ("opened_used", "wrong_item") else truth
    status = attempt(Conversation(world_in(truth, parts_missing)), "process_return", declared, reason)
    assert status == (OK if passes else VERIFY)


@pytest.mark.parametrize(("delivered", "passes"), [("2026-01-15", True), ("2026-01-05", False)])
def test_lateness_is_measured_against_the_first_promise(delivered: str, passes: bool) -> None:
    world = world_in("unopened")
    world.order.shipments[1].delivered_at = delivered
    status = attempt(Conversation(world), "process_return", "unopened", "arrived_late")
    assert status == (OK if passes else VERIFY)


def test_nothing_passes_without_a_new_customer_statement() -> None:
    talk = Conversation(builtin_world("task_000"))
    assert attempt(talk, "process_return", "defective") == VERIFY
    # Neither the truth, nor another tool, nor a free guess at another item gets through meanwhile.
    assert attempt(talk, "process_return", "unopened") == VERIFY
    assert attempt(talk, "process_exchange", "unopened") == VERIFY
    other = return_of(("I-000-1", 1, "opened_used"))
    waiting = talk.outcome("process_return", order_id="current", customer_id="current", **other)
    assert waiting.status == VERIFY
    assert "waiting for the customer" in waiting.content
    assert not talk.environment.writes()
    talk.statements += 1
    assert attempt(talk, "process_return", "defective") == VERIFY  # checked again in full
    talk.statements += 1
    assert attempt(talk, "process_return", "unopened") == OK


def test_a_pass_does_not_cover_other_items_or_conditions() -> None:
    talk = Conversation()
    talk.give_back(("I-1", 1, "opened_used"))
    owned = {"order_id": "current", "customer_id": "current"}
    assert talk.outcome("process_return", **owned, **return_of(("I-1", 1, "unopened"))).status == VERIFY
    talk.statements += 1
    assert talk.outcome("process_return", **owned, **return_of(("I-2", 1, "wrong_item"))).status == VERIFY
    talk.statements += 1
    talk.give_back(("I-1", 1, "opened_used"), ("I-2", 1, "defective"))


def test_one_wrong_unit_of_a_line_is_enough() -> None:
    talk = Conversation()
    request = return_of(("I-1", 1, "opened_used"), ("I-1", 1, "unopened"))
    outcome = talk.outcome("process_return", order_id="current", customer_id="current", **request)
    assert outcome.status == VERIFY


def test_the_impossible_is_refused_before_anything_is_asked() -> None:
    talk = Conversation(builtin_world("task_000"))
    request = return_of(("I-000-2", 2, "defective"))
    outcome = talk.outcome("process_return", order_id="current", customer_id="current", **request)
    assert outcome.status == ERROR


@pytest.mark.parametrize("task", TASKS)
def test_the_questions_do_not_tell_which_fact_is_wrong(task: str) -> None:
    world = builtin_world(task)
    lines = truthful_lines(world)
    contents: set[str] = set()
    waits: set[str] = set()
    for wrong in range(len(lines)):
        item, units, condition = lines[wrong]
        for declared in MISMATCHES[condition]:
            talk = Conversation(world)
            request = [*lines[:wrong], (item, units, declared), *lines[wrong + 1 :]]
            for seen in (contents, waits):
                outcome = talk.outcome(
                    "process_return",
                    order_id="current",
                    customer_id="current",
                    **return_of(*request),
                )
                assert outcome.status == VERIFY
                seen.add(outcome.content)
    assert (len(contents), len(waits)) == (1, 1)
    questions = json.loads(contents.pop())["questions"]
    assert all(any(item.item_id in question for question in questions) for item in world.order.items)


def test_reason_classes() -> None:
    assert all(reason_class(reason) == reason for reason in REASONS)
    assert reason_class(" Does not-FIT ") == "does_not_fit"
    assert reason_class("it is defective I think") == "other"


@pytest.mark.parametrize("fault", ["absent", "unknown"])
def test_a_world_that_cannot_be_verified_is_refused(fault: str) -> None:
    world = world_pb2.OrderWorld()
    world.CopyFrom(mixed_world())
    if fault == "absent":
        del world.inspection_truth[1]
    else:
        world.inspection_truth[1].condition = "so-so"
    with pytest.raises(InputError, match="inspection_truth: item I-2"):
        ReturnsEnvironment(world, Conversation().environment._desk.policy, "Ada")


def test_a_world_with_an_item_in_no_parcel_is_refused() -> None:
    world = world_pb2.OrderWorld()
    world.CopyFrom(mixed_world())
    world.order.shipments[2].items[:] = []
    with pytest.raises(InputError, match="no parcel holds item I-3"):
        Conversation(world)
