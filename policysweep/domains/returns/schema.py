"""Tool arguments: pydantic models are the one place that both JSON schemas and validation come from.

Validation is lax about types ("1", 1 and 1.0 are the same quantity) and strict about names. The JSON
schemas are as plain as simple model servers need them: no `$ref`, no `anyOf` for optional fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from policysweep.v1 import episode_pb2

PROBLEMS_SHOWN = 8
LENGTH_SHOWN = 120

_SHOWN_FIRST = ("type", "description", "enum", "properties", "required")
# Still enforced, but not worth their tokens in every prompt; large bounds also bloat guided decoding.
_NOT_SHOWN = frozenset({"title", "minLength", "maxLength", "minItems", "maxItems"})


class Arguments(BaseModel):
    """Base of all tool arguments."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)


A = TypeVar("A", bound=Arguments)


class ArgumentProblems(ValueError):
    """Arguments that are not JSON or do not fit. `problems` name field and fault; str() is one line."""

    def __init__(self, problems: list[dict[str, str]]) -> None:
        self.problems = problems
        super().__init__("; ".join(f"{p['field']}: {p['problem']}" for p in problems))


def parse_arguments(model: type[A], arguments_json: str) -> A:
    """Read the verbatim arguments of a call. No text at all stands for `{}`.

    Raises ArgumentProblems.
    """
    try:
        return model.model_validate_json(arguments_json if arguments_json.strip() else "{}")
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False, include_context=False)
        problems = [_problem(detail) for detail in details[:PROBLEMS_SHOWN]]
    raise ArgumentProblems(problems)


def _problem(detail: ErrorDetails) -> dict[str, str]:
    field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in detail["loc"])
    return {"field": field.lstrip(".")[:LENGTH_SHOWN] or "(arguments)", "problem": detail["msg"]}


def tool_definition(name: str, description: str, model: type[Arguments]) -> episode_pb2.ToolDefinition:
    """The tool as a model is shown it. The same bytes every time, as prefix caches depend on it."""
    return episode_pb2.ToolDefinition(
        name=name, description=description, parameters_json=orjson.dumps(parameters_schema(model)).decode()
    )


def parameters_schema(model: type[Arguments]) -> dict[str, Any]:
    """The JSON schema of a tool's arguments, without references and titles."""
    schema = model.model_json_schema()
    definitions = schema.pop("$defs", {})
    plain = _plain(schema, definitions)
    plain.pop("description", None)  # the class docstring, which is for readers of the code
    return plain


def _plain(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """One schema with references inlined, titles and null defaults dropped, optional fields collapsed."""
    merged = dict(node)
    if reference := merged.pop("$ref", None):
        target = dict(definitions[reference.rpartition("/")[2]])
        target.pop("description", None)
        merged = {**target, **merged}
    if choices := merged.pop("anyOf", None):
        present = [choice for choice in choices if choice.get("type") != "null"]
        if len(present) != 1:
            raise TypeError(f"a tool argument must have one type, not {present}")
        merged = {**_plain(present[0], definitions), **merged}
    if merged.get("default", ...) is None:
        del merged["default"]
    if "properties" in merged:
        fields = merged["properties"].items()
        merged["properties"] = {name: _plain(field, definitions) for name, field in fields}
    if "items" in merged:
        merged["items"] = _plain(merged["items"], definitions)
    return {key: merged[key] for key in sorted(merged, key=_place) if key not in _NOT_SHOWN}


def _place(key: str) -> int:
    return _SHOWN_FIRST.index(key) if key in _SHOWN_FIRST else len(_SHOWN_FIRST)
