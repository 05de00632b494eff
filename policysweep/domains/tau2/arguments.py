"""The arguments of a call: read from the model's text, and numbers brought to the type of the tool's schema.

Models write one number as 1, 1.0 or "1". The tools put what they are given into the database, and tau2-bench
compares databases by their JSON text, so the spelling would decide a grade. Here all three become the integer
or float that the schema declares. Nothing else is converted: what a tool makes of a wrong type is its affair.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

import orjson

Schema: TypeAlias = Mapping[str, Any]

_MAX_DEPTH = 16
_NUMBER = re.compile(r"\s*[+-]?\d{1,15}(?:\.\d{1,15})?\s*")


class NotArguments(ValueError):
    """The text is no JSON object; str() says what the arguments are instead."""


def read_arguments(arguments_json: str, schema: Schema) -> dict[str, Any]:
    """The arguments of a call, numbers normalised. No text at all stands for `{}`.

    Raises NotArguments.
    """
    try:
        arguments = orjson.loads(arguments_json) if arguments_json.strip() else {}
    except orjson.JSONDecodeError as error:
        raise NotArguments(f"are not valid JSON: {error}") from None
    if not isinstance(arguments, dict):
        raise NotArguments("are not a JSON object")
    if arguments_json.count("[") + arguments_json.count("{") > _MAX_DEPTH and _depth(arguments) > _MAX_DEPTH:
        raise NotArguments(f"are nested more than {_MAX_DEPTH} deep")
    return normalised(arguments, schema)


def _depth(arguments: Mapping[str, Any]) -> int:
    """How deep lists and objects are nested; without recursion, which such a text is out to exhaust."""
    level: list[Any] = [arguments]
    depth = 0
    while level:
        depth += 1
        inner = [item for value in level for item in (value.values() if isinstance(value, dict) else value)]
        level = [item for item in inner if isinstance(item, dict | list)]
    return depth


def normalised(arguments: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """`arguments` with every number as its schema wants it. References are resolved within `schema`."""
    definitions = schema.get("$defs", {})
    fields = schema.get("properties", {})
    return {name: _value(value, fields.get(name, {}), definitions) for name, value in arguments.items()}


def _value(value: Any, schema: Schema, definitions: Schema) -> Any:
    schema = _resolved(schema, definitions)
    if not schema:
        return value
    if isinstance(value, list):
        return [_value(item, schema.get("items", {}), definitions) for item in value]
    if isinstance(value, dict):
        fields = schema.get("properties", {})
        return {name: _value(item, fields.get(name, {}), definitions) for name, item in value.items()}
    if schema.get("type") == "integer":
        return _integer(value)
    if schema.get("type") == "number":
        return _number(value)
    return value


def _resolved(schema: Schema, definitions: Schema) -> Schema:
    """The schema that a reference, or the first alternative, stands for."""
    while True:
        if alternatives := schema.get("anyOf"):
            schema = alternatives[0]
        elif reference := schema.get("$ref"):
            schema = definitions[reference.rpartition("/")[2]]
        else:
            return schema


def _number(value: Any) -> Any:
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return float(value)
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _integer(value: Any) -> Any:
    """The integer that `value` is, or `value`: 12.5 for a number of bags is left to the tool."""
    number = float(value) if isinstance(value, str) and _NUMBER.fullmatch(value) else value
    return int(number) if isinstance(number, float) and number.is_integer() else value
