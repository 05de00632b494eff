from __future__ import annotations

import orjson

from policysweep.datasets.making.facts import Facts, facts_schema

from .support import Json, ask, user

PROMPT = (
    "The customer bought the \"OmniPro Camera Set (2 Cameras, 1 Hub)\" and the 'SafePad Extension Cable'."
)


def facts(prompt: str, schema: Json) -> Json:
    wanted = {"type": "json_schema", "json_schema": {"name": "order_facts", "schema": schema}}
    answer: Json = orjson.loads(ask([user(prompt)], response_format=wanted).text)
    return answer


def test_facts_fit_and_tell_of_the_items_in_the_prompt() -> None:
    read = Facts.model_validate(facts(PROMPT, facts_schema()))
    assert [item.name for item in read.items] == [
        "OmniPro Camera Set (2 Cameras, 1 Hub)",
        "SafePad Extension Cable",
    ]
    assert {item.delivery for item in read.items} == {"delivered"}
    assert read.payment_method_status == "active"


def test_facts_without_names_still_fit() -> None:
    read = Facts.model_validate(facts("Somebody bought something.", facts_schema()))
    assert len(read.items) == 1


def test_a_schema_of_another_shape_is_filled_as_it_is() -> None:
    assert facts(PROMPT, {"type": "object", "required": ["a"], "properties": {"a": {"const": 1}}}) == {"a": 1}
