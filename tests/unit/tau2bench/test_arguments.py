"""One number in three spellings, and what is no number stays what it is."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from policysweep.domains.tau2.arguments import NotArguments, read_arguments

SCHEMA = {
    "$defs": {"Payment": {"type": "object", "properties": {"amount": {"type": "integer"}}}},
    "properties": {
        "bags": {"type": "integer"},
        "price": {"type": "number"},
        "zip": {"type": "string"},
        "payments": {
            "type": "array",
            "items": {"anyOf": [{"$ref": "#/$defs/Payment"}, {"type": "object"}]},
        },
        "seats": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    },
}


@pytest.mark.parametrize("spelling", ["1", "1.0", '"1"', '"1.0"', '" 1 "', '"+1"'])
def test_an_integer_is_one_value_in_every_spelling(spelling: str) -> None:
    text = f'{{"bags": {spelling}, "payments": [{{"amount": {spelling}}}], "seats": {spelling}}}'
    read = read_arguments(text, SCHEMA)
    assert read == {"bags": 1, "payments": [{"amount": 1}], "seats": 1}
    assert [type(read["bags"]), type(read["payments"][0]["amount"])] == [int, int]


@pytest.mark.parametrize("spelling", ["25", "25.0", '"25"', '"25.00"'])
def test_a_number_is_one_value_in_every_spelling(spelling: str) -> None:
    price = read_arguments(f'{{"price": {spelling}}}', SCHEMA)["price"]
    assert (price, type(price)) == (25.0, float)


@pytest.mark.parametrize(
    "value", ["true", "null", '"many"', "1.5", '"1.5"', '"$50"', "[1]", '"1e3"', '"NaN"']
)
def test_what_is_no_integer_is_left_to_the_tool(value: str) -> None:
    assert read_arguments(f'{{"bags": {value}}}', SCHEMA) == {"bags": orjson.loads(value)}


def test_text_that_looks_like_a_number_stays_text_where_text_is_wanted() -> None:
    assert read_arguments('{"zip": "01234", "other": "7"}', SCHEMA) == {"zip": "01234", "other": "7"}


@pytest.mark.parametrize(
    ("text", "read"), [("", {}), ("  ", {}), ("{}", {}), ('{"payments": {"amount": "1"}}', None)]
)
def test_no_text_stands_for_no_arguments(text: str, read: dict[str, Any] | None) -> None:
    assert read_arguments(text, SCHEMA) == (read if read is not None else {"payments": {"amount": "1"}})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "are not valid JSON"),
        ("None", "are not valid JSON"),
        ("[]", "are not a JSON object"),
        ('"{}"', "are not a JSON object"),
        ('{"a": ' + "[" * 40 + "]" * 40 + "}", "nested more than 16 deep"),
        ('{"a": ' + '{"a":' * 900 + "1" + "}" * 900 + "}", "nested more than 16 deep"),
        ('{"a": "\\ud800"}', "are not valid JSON"),
    ],
)
def test_what_is_no_object_is_refused(text: str, problem: str) -> None:
    with pytest.raises(NotArguments, match=problem):
        read_arguments(text, SCHEMA)


def test_brackets_in_text_are_no_nesting() -> None:
    assert read_arguments('{"a": "' + "[{" * 60 + '"}', SCHEMA) == {"a": "[{" * 60}
