from __future__ import annotations

import re
from typing import Any, Literal

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from policysweep.models.rehearsal import roles
from policysweep.models.rehearsal.patterns import UnsupportedPattern, matching
from policysweep.models.rehearsal.request import ApiError
from policysweep.models.rehearsal.structured import fill

from .support import Json, ask, misfit, request, user

PROMPT = 'The customer bought the "Tarnholt Desk Frame" for $389.00 and wants to return it.'

names = st.sampled_from(["price", "quantity", "name", "rationale", "score", "due_date", "x", "customer_id"])


@st.composite
def strings(draw: st.DrawFn) -> Json:
    low = draw(st.integers(0, 30))
    extra = draw(st.fixed_dictionaries({}, optional={"maxLength": st.integers(low, low + 60)}))
    form = draw(
        st.fixed_dictionaries({}, optional={"format": st.sampled_from(["date", "email", "uuid", "odd"])})
    )
    return {"type": "string", "minLength": low, **extra, **form}


@st.composite
def numbers(draw: st.DrawFn) -> Json:
    kind = draw(st.sampled_from(["integer", "number"]))
    low = draw(st.integers(-1000, 1000))
    bounds = [
        {},
        {"minimum": low},
        {"maximum": low},
        {"minimum": low, "maximum": low + draw(st.integers(0, 50))},
        {"exclusiveMinimum": low, "exclusiveMaximum": low + draw(st.integers(2, 50))},
    ]
    step = (
        draw(st.sampled_from([None, 1, 5])) if kind == "integer" else draw(st.sampled_from([None, 0.01, 0.5]))
    )
    chosen = draw(st.sampled_from(bounds))
    if step == 5 and ("maximum" in chosen or "exclusiveMaximum" in chosen) and len(chosen) == 2:
        step = 1
    return {"type": kind, **chosen, **({} if step is None else {"multipleOf": step})}


scalars = st.one_of(
    strings(),
    numbers(),
    st.just({"type": "boolean"}),
    st.just({"type": "null"}),
    st.builds(
        lambda options: {"enum": options},
        st.lists(st.integers() | st.text(max_size=5), min_size=1, max_size=4),
    ),
    st.builds(lambda value: {"const": value}, st.integers() | st.text(max_size=5)),
    st.just({}),
)


def containers(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    arrays = st.builds(
        lambda items, low, more: {"type": "array", "items": items, "minItems": low, "maxItems": low + more},
        inner,
        st.integers(0, 3),
        st.integers(0, 3),
    )
    objects = st.builds(
        lambda properties, required, closed: {
            "type": "object",
            "properties": properties,
            "required": [name for name in properties if required],
            "additionalProperties": not closed,
        },
        st.dictionaries(names, inner, max_size=4),
        st.booleans(),
        st.booleans(),
    )
    alternatives = st.builds(lambda a, b: {"anyOf": [a, b, {"type": "null"}]}, inner, inner)
    return arrays | objects | alternatives


@settings(max_examples=150, deadline=None)
@given(st.recursive(scalars, containers, max_leaves=8), st.integers(0, 10_000))
def test_whatever_the_schema_the_value_fits(schema: Json, key: int) -> None:
    value = fill(schema, PROMPT, str(key))
    assert misfit(value, schema, schema) == ""
    assert fill(schema, PROMPT, str(key)) == value


class _Leaf(BaseModel):
    name: str = Field(max_length=12)
    price: float = Field(gt=0, le=500)
    kind: Literal["a", "b"]
    children: list[_Leaf] = []


class _Tree(BaseModel):
    order_id: str = Field(pattern=r"^ORD-\d{3}-\d{6}$")
    placed_at: str = Field(pattern=r"^20(25|26)-(0[1-9]|1[0-2])-\d{2}$")
    root: _Leaf
    score: int = Field(ge=1, le=5)
    note: str | None
    tags: set[Literal["x", "y", "z"]] = Field(min_length=2)
    table: dict[str, int] = Field(min_length=1)


@pytest.mark.parametrize("key", range(25))
def test_schemas_of_pydantic_models_are_met(key: int) -> None:
    _Tree.model_validate(fill(_Tree.model_json_schema(), PROMPT, str(key)))


def test_optional_properties_stay_within_the_limit() -> None:
    properties = {name: {"type": "integer"} for name in "abcdef"}
    schema = {"type": "object", "properties": properties, "required": ["c"], "maxProperties": 2}
    sizes = [len(fill(schema, PROMPT, str(key))) for key in range(20)]
    assert max(sizes) == 2


def test_recursion_ends() -> None:
    schema = {"$ref": "#/$defs/N", "$defs": {"N": {"type": "object", "required": ["next"], "properties": {}}}}
    schema["$defs"]["N"]["properties"] = {"next": {"anyOf": [{"$ref": "#/$defs/N"}, {"type": "null"}]}}  # type: ignore[index]
    assert misfit(fill(schema, PROMPT, "k"), schema, schema) == ""


def test_values_are_plausible_by_name() -> None:
    schema = {
        "type": "object",
        "required": ["product_name", "price", "rationale", "delivered_at", "currency"],
        "properties": {
            "product_name": {"type": "string"},
            "price": {"type": "number"},
            "rationale": {"type": "string"},
            "delivered_at": {"type": "string"},
            "currency": {"type": "string"},
        },
    }
    value = fill(schema, PROMPT, "k")
    assert value["product_name"] == "Tarnholt Desk Frame"
    assert 12 <= value["price"] <= 240
    assert len(value["rationale"].split()) > 6
    assert value["delivered_at"].startswith("2025-")
    assert value["currency"] == "USD"


def test_different_prompts_get_different_answers() -> None:
    schema = {"type": "array", "minItems": 8, "items": {"type": "integer", "minimum": 1, "maximum": 5}}
    fields: Json = {
        "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": schema}}
    }
    answers = {ask([user(f"case {i}")], **fields).text for i in range(10)}
    assert len(answers) > 5
    assert ask([user("case 1")], **fields).text in answers


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"type": "object", "required": ["a"], "properties": {"a": {"not": {}}}}, "The schema at a uses not"),
        ({"$ref": "other.json"}, "only references inside the schema"),
        ({"$ref": "#/$defs/absent"}, "which does not exist"),
        ({"$ref": "#"}, "refers to itself"),
        ({"type": "integer", "minimum": 1.2, "maximum": 1.8}, "no multiple of 1"),
        ({"enum": []}, "empty enum"),
        ({"type": "object", "properties": []}, "has properties [], which is no JSON schema"),
        ({"type": "string", "minLength": "x"}, "has minLength 'x'"),
        ({"type": "date"}, "unknown type"),
        (
            {"type": "array", "items": {"const": 1}, "uniqueItems": True, "minItems": 2},
            "only 1 could be found",
        ),
        ({"type": "string", "pattern": "(?=a)b"}, "look-around"),
    ],
)
def test_what_cannot_be_met_is_refused_with_the_place(schema: Json, place: str) -> None:
    with pytest.raises(ApiError, match="The schema at") as caught:
        fill(schema, PROMPT, "k")
    assert place in str(caught.value)


@pytest.mark.parametrize(
    "pattern",
    [
        r"^\d{3}-[A-F]{2}$",
        r"^(yes|no)?$",
        r"a+b*c{2,4}",
        r"^[^x]\.\w+$",
        r"^(?:ab){2}$",
        r"^.{5}$",
        r"^\$\d+\.\d\d$",
    ],
)
def test_texts_match_their_patterns(pattern: str) -> None:
    for key in range(20):
        assert re.search(pattern, matching(pattern, key))


@pytest.mark.parametrize("pattern", [r"(a", r"[a", r"a{3,1}", r"\bword", r"(?<x>a)", r"*a", r"(a)\1"])
def test_patterns_beyond_understanding_are_refused(pattern: str) -> None:
    with pytest.raises(UnsupportedPattern):
        matching(pattern, 0)


def test_json_object_without_schema() -> None:
    assert "answer" in orjson.loads(ask([user("hi")], response_format={"type": "json_object"}).text)


def test_a_script_is_found_by_schema_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def verdict(asked: Any, schema: Json) -> Json:
        return {"seen": asked.schema_name, "type": schema["type"]}

    monkeypatch.setattr(roles, "STRUCTURED", {"verdict": verdict})
    asked = request(
        [user("hi")],
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "verdict", "schema": {"type": "object"}},
        },
    )
    assert orjson.loads(roles.respond(asked).text) == {"seen": "verdict", "type": "object"}
