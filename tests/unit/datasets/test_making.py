"""Making worlds through a model: derived values, retries, failures, resuming."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from policysweep.datasets.load import Dataset, load
from policysweep.datasets.making.ask import ATTEMPTS, describe_case
from policysweep.datasets.making.derive import derive_world
from policysweep.datasets.making.facts import Facts, facts_schema
from policysweep.datasets.making.run import make_worlds
from policysweep.datasets.making.store import WorldsFile
from policysweep.datasets.rules.world import check_world
from policysweep.datasets.rules.world_shape import ANY_WORDS, world_shape
from policysweep.errors import ContextOverflow, InputError, ModelServerUnavailable, PolicysweepError
from policysweep.models.chat import ChatReply, ChatRequest
from policysweep.v1 import episode_pb2 as ep

Write = Callable[..., Path]

ITEM = {
    "name": "Tarnholt Dual-Motor Desk Frame",
    "category": "Furniture",
    "quantity": 1,
    "unit_price": 389.0,
    "details": [{"label": "Material", "value": "Steel"}],
    "tags": ["large_item"],
    "seller": "shop",
    "seller_name": "",
    "return_days_on_page": 0,
    "delivery": "delivered",
    "delivered_days_ago": 24,
    "days_late": 0,
    "condition": "opened_used",
    "inspection_notes": "Assembled; two inserts stripped.",
    "accessories_missing": ["hex key"],
    "units_in_stock": 4,
    "variants": [{"label": "Black", "available": 3}, {"label": "White", "available": 0}],
}
SECOND = {**ITEM, "name": "Ash Desktop", "unit_price": 214.0, "delivered_days_ago": 12, "days_late": 10}
FACTS: dict[str, Any] = {
    "items": [ITEM, SECOND],
    "order_number_in_case": "",
    "channel": "web",
    "marked_as_gift": False,
    "sent_to_somebody_else": False,
    "delivered_abroad": False,
    "shipping_charge": 5.5,
    "promotions": [{"description": "Coupon", "amount": 20.0, "scope": "order", "conditions": "One use."}],
    "payment_method": "credit_card",
    "payment_method_status": "active",
    "paid_with_gift_card": 10.0,
    "membership": "current",
    "account_age_years": 3,
    "other_orders_kept_12_months": 6,
    "other_orders_returned_12_months": 3,
    "earlier_purchases": [
        {
            "name": "Desk Lamp",
            "category": "Home",
            "price": 46.5,
            "days_ago": 160,
            "returned": True,
            "return_reason": "Too bright",
        }
    ],
    "exchange_candidates": [
        {
            "name": "Trestle Desk",
            "category": "Furniture",
            "price": 349.0,
            "details": [{"label": "Width", "value": "62 in"}],
            "units_in_stock": 0,
            "restock_in_days": 14,
        }
    ],
    "true_reason": "The desktop came late.",
    "customer_may_misstate": "",
}


def world_of(**changes: Any) -> dict[str, Any]:
    return derive_world(Facts.model_validate({**FACTS, **changes}), "task_007", "no number")


def test_what_follows_from_the_facts_is_derived() -> None:
    world = world_of()
    order, history = world["order"], world["customer"]["return_history"]
    assert [item["item_id"] for item in order["items"]] == ["I-007-1", "I-007-2"]
    assert order["payment"] == {"method": "credit_card", "amount": 588.5, "gift_card_part": 10.0}
    assert [parcel["delivered_at"] for parcel in order["shipments"]] == ["2026-01-03", "2026-01-15"]
    assert [parcel["promised_by"] for parcel in order["shipments"]] == ["2026-01-03", "2026-01-05"]
    assert order["placed_at"] == "2025-12-29"
    assert (history["orders_12m"], history["returns_12m"], history["rate"]) == (10, 3, 0.3)
    assert (history["abuse_risk_level"], history["recommended_deduction_percentage"]) == ("MEDIUM", 5)
    assert world["products"][2]["stock"] == {"available": 0, "restock_date": "2026-02-10"}
    assert [method["type"] for method in world["customer"]["payment_methods"]] == ["credit_card", "gift_card"]
    assert world["gold_facts"]["what_customer_may_misstate"] is None


def test_items_that_came_together_are_one_parcel() -> None:
    same = {**SECOND, "delivered_days_ago": 24, "days_late": 0}
    assert [parcel["items"] for parcel in world_of(items=[ITEM, same])["order"]["shipments"]] == [
        ["I-007-1", "I-007-2"]
    ]


def test_items_of_one_name_are_one_product() -> None:
    world = world_of(items=[ITEM, {**ITEM, "condition": "unopened"}])
    assert [item["product_id"] for item in world["order"]["items"]] == ["P-007-1", "P-007-1"]
    assert [truth["condition"] for truth in world["inspection_truth"]] == ["opened_used", "unopened"]


def test_an_order_number_counts_only_if_the_case_has_it() -> None:
    facts = Facts.model_validate({**FACTS, "order_number_in_case": "112-9044"})
    assert derive_world(facts, "task_007", "My order 112-9044 came.")["order"]["order_id"] == "112-9044"
    assert derive_world(facts, "task_007", "It came.")["order"]["order_id"].startswith("ORD-")


def test_the_same_task_gets_the_same_ids() -> None:
    one, other = world_of(), world_of(channel="app")
    assert one["customer"]["customer_id"] == other["customer"]["customer_id"]


def draw(schema: dict[str, Any], dice: random.Random) -> Any:
    """Any value that fits a schema of the kind that `facts_schema` makes."""
    if "enum" in schema:
        return dice.choice(schema["enum"])
    kind = schema["type"]
    if kind == "object":
        return {name: draw(part, dice) for name, part in schema["properties"].items()}
    if kind == "array":
        count = dice.randint(schema.get("minItems", 0), schema["maxItems"])
        return [draw(schema["items"], dice) for _ in range(count)]
    if kind == "string":
        return dice.choice("abcde") * dice.randint(schema.get("minLength", 0), schema["maxLength"])
    if kind == "boolean":
        return dice.random() < 0.5
    low, high = schema["minimum"], schema["maximum"]
    return dice.randint(low, high) if kind == "integer" else dice.uniform(low, high)


@pytest.mark.parametrize("seed", range(60))
def test_any_facts_make_a_sound_world(seed: int) -> None:
    facts = Facts.model_validate(draw(facts_schema(), random.Random(seed)))
    world = derive_world(facts, f"task {seed}", "")
    assert list(world_shape(ANY_WORDS)(world)) == []
    assert list(check_world(world)) == []


def keys_of(part: Any) -> set[str]:
    if isinstance(part, list):
        return set().union(*map(keys_of, part))
    if not isinstance(part, dict):
        return set()
    return set(part).union(*map(keys_of, part.values()))


def test_the_schema_is_plain() -> None:
    schema = facts_schema()
    assert not keys_of(schema) & {"$ref", "$defs", "title", "anyOf", "pattern", "format"}
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) == set(schema["properties"]) == set(FACTS)
    assert schema["properties"]["items"]["items"]["properties"]["name"]["maxLength"] == 80


class FakeModel:
    """Answers from a script: for each task in turn, and the last entry for ever."""

    def __init__(self, *script: str | PolicysweepError, rehearsal: bool = False) -> None:
        self.script = script
        self.rehearsal = rehearsal
        self.requests: list[ChatRequest] = []
        self.at_once = self.most_at_once = 0

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.requests.append(request)
        asked = sum(each.session_id == request.session_id for each in self.requests)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        answer = self.script[min(asked, len(self.script)) - 1]
        if isinstance(answer, PolicysweepError):
            raise answer
        finish = ep.FINISH_REASON_LENGTH if answer == "cut" else ep.FINISH_REASON_STOP
        return ChatReply(answer, (), finish, ep.Usage(), self.rehearsal)


def good(**changes: Any) -> str:
    return json.dumps({**FACTS, **changes})


@pytest.fixture
def dataset(scenarios: list[Any], write: Write) -> Dataset:
    for scenario in scenarios:  # both tasks are about the same desk, as the answers are
        scenario["task"] = scenarios[0]["task"]
    return load(str(write(scenarios)))


async def make(dataset: Dataset, model: FakeModel, tasks: Sequence[str] = (), concurrency: int = 8) -> None:
    store = WorldsFile(dataset.made_worlds, "the-model")
    await make_worlds(dataset, list(tasks or dataset.missing_worlds), model, store, concurrency=concurrency)


async def test_worlds_are_made_once_for_each_task_and_found_again(dataset: Dataset) -> None:
    model = FakeModel(good())
    await make(dataset, model)
    assert [request.session_id for request in model.requests] == ["world-task_000", "world-task_001"]
    again = load(dataset.source)
    assert not again.missing_worlds
    assert again.worlds["task_001"].order.items[0].item_id == "I-001-1"
    assert again.scenarios_digest == dataset.scenarios_digest
    assert again.digest != dataset.digest
    assert not again.rehearsal
    line = json.loads(dataset.made_worlds.read_text().split("\n")[0])
    assert line["made_by"] == {"model": "the-model", "rehearsal": False}


async def test_the_request_tells_the_case_and_asks_for_the_schema(dataset: Dataset) -> None:
    model = FakeModel(good())
    await make(dataset, model, ["task_000"])
    request = model.requests[0]
    case = request.messages[1]["content"]
    scenario = dataset.scenarios[0]
    for part in (scenario.task.detail, scenario.task.reason, scenario.customer_brief.private_info):
        assert part in case
    assert '"' not in request.messages[0]["content"], "quoted names are the case's alone"
    assert request.response_schema is not None
    assert request.response_schema.schema == facts_schema()
    assert request.sampling.temperature == 0


BAD = [
    ("", "answer: Invalid JSON"),
    ('{"items": [', "answer: Invalid JSON"),
    ("[]", "answer: "),
    (good(channel="fax"), "channel: "),
    (good(items=[]), "items: "),
    (good(order_id="ORD-1"), "order_id: "),
    (good(items=[{**ITEM, "quantity": "one"}]), "items[0].quantity: "),
    (good(items=[{**ITEM, "name": "Xylophone"}]), "items[0].name: the case names no 'Xylophone'"),
    (good(true_reason="   "), "gold_facts.reason_truth: must not be empty"),
    ("cut", "the answer was cut off at 4096 tokens"),
]


@pytest.mark.parametrize(("answer", "told"), BAD)
async def test_an_invalid_answer_is_asked_for_again_with_what_is_wrong(
    dataset: Dataset, answer: str, told: str
) -> None:
    model = FakeModel(answer, good())
    await make(dataset, model, ["task_000"])
    first, second = model.requests
    assert second.messages[:2] == list(first.messages)
    assert second.messages[2] == {"role": "assistant", "content": answer}
    assert told in second.messages[3]["content"]
    assert load(dataset.source).missing_worlds == ("task_001",)


async def test_after_three_invalid_answers_the_task_is_named_and_the_others_are_kept(
    dataset: Dataset,
) -> None:
    class Half(FakeModel):
        async def complete(self, request: ChatRequest) -> ChatReply:
            reply = await super().complete(request)
            return replace(reply, text="nothing") if request.session_id == "world-task_000" else reply

    model = Half(good())
    with pytest.raises(
        InputError, match=r"no valid world for 1 of 2 tasks in 3 attempts.*\n  task_000: answer: "
    ):
        await make(dataset, model)
    assert len(model.requests) == ATTEMPTS + 1
    assert load(dataset.source).missing_worlds == ("task_000",)


async def test_a_run_goes_on_where_it_was(dataset: Dataset) -> None:
    await make(dataset, FakeModel(good()), ["task_000"])
    before = load(dataset.source).worlds["task_000"]
    model = FakeModel(good(channel="app"))
    again = load(dataset.source)
    await make(again, model)
    assert [request.session_id for request in model.requests] == ["world-task_001"]
    assert load(dataset.source).worlds["task_000"] == before


async def test_a_fault_of_the_server_ends_the_run_and_keeps_what_was_made(dataset: Dataset) -> None:
    class Dying(FakeModel):
        async def complete(self, request: ChatRequest) -> ChatReply:
            if request.session_id == "world-task_001":
                raise ModelServerUnavailable("model server is gone")
            return await super().complete(request)

    with pytest.raises(ModelServerUnavailable, match="is gone"):
        await make(dataset, Dying(good()), concurrency=1)
    assert load(dataset.source).missing_worlds == ("task_001",)


async def test_several_faults_at_once_are_told_as_one(dataset: Dataset) -> None:
    with pytest.raises(ModelServerUnavailable, match="is gone"):
        await make(dataset, FakeModel(ModelServerUnavailable("model server is gone")))


async def test_a_prompt_that_does_not_fit_fails_the_task_at_once(dataset: Dataset) -> None:
    model = FakeModel(ContextOverflow("the prompt needs 9000 of 8192 tokens"))
    with pytest.raises(InputError, match="task_000: the prompt needs 9000"):
        await make(dataset, model, ["task_000"])
    assert len(model.requests) == 1


@pytest.mark.parametrize("concurrency", [1, 2])
async def test_no_more_tasks_are_asked_for_at_a_time_than_allowed(dataset: Dataset, concurrency: int) -> None:
    model = FakeModel(good())
    await make(dataset, model, concurrency=concurrency)
    assert model.most_at_once == concurrency


async def test_worlds_of_the_rehearsal_model_are_marked(dataset: Dataset) -> None:
    await make(dataset, FakeModel(good(items=[{**ITEM, "name": "Xylophone"}]), rehearsal=True))
    assert load(dataset.source).rehearsal


def test_a_place_that_cannot_be_written_is_told_before_a_model_is_asked(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot write .*; name a file elsewhere with --output"):
        WorldsFile(tmp_path / "file" / "worlds.jsonl", "m")


def test_a_worlds_file_that_is_broken_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "worlds.jsonl"
    path.write_text('{"task_id": "task_000", "world": {}}\n')
    with pytest.raises(InputError, match=r"worlds.jsonl:1: world.customer: is missing"):
        WorldsFile(path, "m")
    assert path.read_text() == '{"task_id": "task_000", "world": {}}\n'


def test_the_case_holds_no_opening_and_no_clause(dataset: Dataset) -> None:
    scenario = dataset.scenarios[0]
    case = describe_case(scenario)
    assert scenario.first_customer_message not in case
    assert scenario.task.related_policy_issues[0] not in case
