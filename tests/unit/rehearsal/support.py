"""Requests, conversations and a schema checker for the tests of the rehearsal model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import orjson

from policysweep.models.rehearsal.draft import Draft
from policysweep.models.rehearsal.request import ParsedRequest, parse
from policysweep.models.rehearsal.roles import respond

Json = dict[str, Any]

AGENT_TOOLS = (
    "get_order_details",
    "get_policy_info",
    "get_product_info",
    "get_purchase_history",
    "get_return_frequency_assessment",
    "check_inventory",
    "process_return",
    "process_exchange",
    "issue_refund",
    "declare_resolution",
)
CUSTOMER_TOOLS = ("withdraw_from_conversation", "customer_view_order_details", "customer_inspect_profile")


def tool(name: str, parameters: Json | None = None) -> Json:
    """A function tool."""
    return {"type": "function", "function": {"name": name, "parameters": parameters or {"type": "object"}}}


def body(messages: Sequence[Json], model: str = "rehearsal-fair", **fields: Any) -> bytes:
    """A request body."""
    return orjson.dumps({"model": model, "messages": list(messages), **fields})


def request(messages: Sequence[Json], model: str = "rehearsal-fair", **fields: Any) -> ParsedRequest:
    """A parsed request."""
    return parse(body(messages, model, **fields))


def ask(messages: Sequence[Json], model: str = "rehearsal-fair", **fields: Any) -> Draft:
    """What the rehearsal model answers."""
    return respond(request(messages, model, **fields))


def system(text: str) -> Json:
    """A system message."""
    return {"role": "system", "content": text}


def user(text: str) -> Json:
    """A user message."""
    return {"role": "user", "content": text}


def assistant(draft: Draft, prefix: str = "call") -> Json:
    """A draft as the assistant message of the next request."""
    message: Json = {"role": "assistant", "content": draft.text}
    if draft.tool_uses:
        message["tool_calls"] = [
            {"id": f"{prefix}{i}", "type": "function", "function": {"name": u.name, "arguments": u.arguments}}
            for i, u in enumerate(draft.tool_uses)
        ]
    return message


def result(call_id: str, content: Json) -> Json:
    """A tool message."""
    return {"role": "tool", "tool_call_id": call_id, "content": orjson.dumps(content).decode()}


def arguments(draft: Draft, position: int = 0) -> Json:
    """The arguments of a draft's call."""
    parsed = orjson.loads(draft.tool_uses[position].arguments or "")
    assert isinstance(parsed, dict)
    return parsed


def misfit(value: Any, schema: Any, root: Json, path: str = "$") -> str:
    """Why a value does not fit a JSON schema; "" when it does. Knows what the filler knows."""
    if schema is True or schema == {}:
        return ""
    if "$ref" in schema:
        target: Any = root
        for part in schema["$ref"].removeprefix("#").strip("/").split("/"):
            target = target[part] if part else target
        rest = {name: rule for name, rule in schema.items() if name != "$ref"}
        return misfit(value, target, root, path) or misfit(value, rest, root, path)
    for part in schema.get("allOf", ()):
        if problem := misfit(value, part, root, path):
            return problem
    for keyword in ("anyOf", "oneOf"):
        problems = [misfit(value, part, root, path) for part in schema.get(keyword, ())]
        if problems and all(problems):
            return f"{path}: no alternative fits ({problems})"
    if "const" in schema and value != schema["const"]:
        return f"{path}: {value!r} is not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{path}: {value!r} is not in {schema['enum']!r}"
    return _misfit_by_type(value, schema, root, path)


def _misfit_by_type(value: Any, schema: Json, root: Json, path: str) -> str:
    kinds = schema.get("type")
    if kinds is not None and not any(
        _is(value, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds)
    ):
        return f"{path}: {value!r} is no {kinds}"
    if isinstance(value, dict):
        return _misfit_object(value, schema, root, path)
    if isinstance(value, list):
        return _misfit_array(value, schema, root, path)
    if isinstance(value, str):
        return _misfit_string(value, schema, path)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _misfit_number(value, schema, path)
    return ""


def _is(value: Any, kind: str) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return {
        "object": isinstance(value, dict),
        "array": isinstance(value, list),
        "string": isinstance(value, str),
        "boolean": isinstance(value, bool),
        "null": value is None,
        "number": number,
        "integer": number and value == int(value),
    }[kind]


def _misfit_object(value: Json, schema: Json, root: Json, path: str) -> str:
    for name in schema.get("required", ()):
        if name not in value:
            return f"{path}: {name} is missing"
    if len(value) < schema.get("minProperties", 0):
        return f"{path}: too few properties"
    for name, entry in value.items():
        rule = schema.get("properties", {}).get(name, schema.get("additionalProperties", True))
        if rule is False:
            return f"{path}: {name} is not allowed"
        if problem := misfit(entry, rule, root, f"{path}.{name}"):
            return problem
    return ""


def _misfit_array(value: list[Any], schema: Json, root: Json, path: str) -> str:
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        return f"{path}: {len(value)} entries"
    if schema.get("uniqueItems") and any(value.count(entry) > 1 for entry in value):
        return f"{path}: repeated entries"
    fixed = schema.get("prefixItems", [])
    for position, entry in enumerate(value):
        rule = fixed[position] if position < len(fixed) else schema.get("items", True)
        if rule is False:
            return f"{path}: too many entries"
        if problem := misfit(entry, rule, root, f"{path}[{position}]"):
            return problem
    return ""


def _misfit_string(value: str, schema: Json, path: str) -> str:
    if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
        return f"{path}: {len(value)} characters"
    if "pattern" in schema and re.search(schema["pattern"], value) is None:
        return f"{path}: {value!r} does not match {schema['pattern']!r}"
    return ""


def _misfit_number(value: float, schema: Json, path: str) -> str:
    low, high = schema.get("minimum", value), schema.get("maximum", value)
    step = schema.get("multipleOf")
    ok = (
        low <= value <= high
        and value > schema.get("exclusiveMinimum", value - 1)
        and value < schema.get("exclusiveMaximum", value + 1)
        and (step is None or abs(value / step - round(value / step)) < 1e-6)
    )
    return "" if ok else f"{path}: {value!r} is out of bounds"
