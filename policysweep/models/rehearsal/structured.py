"""Answers to any JSON schema: valid, deterministic, and plausible by property name.

Values are drawn from a hash of the prompt and of the value's path, so equal prompts get equal answers and
two fields of one answer differ. Strings quote and cite the prompt, so a reader can see where an answer came
from. Roles that know better (a judge, a curator) register a script by schema name in `roles.py` and fall
back to `fill` for the parts they do not care about.

What is understood: type (one or several), enum, const, properties, required, minProperties, maxProperties,
items, prefixItems, minItems, maxItems, uniqueItems, minimum, maximum, exclusive bounds, multipleOf,
minLength, maxLength, pattern, format (date, date-time, time, email, uri, uuid), anyOf, oneOf (whose branches
are taken to exclude one another), allOf, and $ref into the same document, recursive ones included. A schema
that needs more is refused with status 400 and the place: no answer would be sure to fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from policysweep.models.rehearsal import draws, numbers
from policysweep.models.rehearsal.patterns import UnsupportedPattern, matching
from policysweep.models.rehearsal.plausible import Prompt
from policysweep.models.rehearsal.request import ApiError, Json

_UNSUPPORTED = frozenset(
    {
        "not", "if", "dependentRequired", "dependentSchemas", "patternProperties", "contains",
        "propertyNames", "unevaluatedProperties", "$dynamicRef",
    }
)  # fmt: skip
_KEYWORD_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "properties": dict, "required": list, "enum": list, "prefixItems": list, "items": (dict, bool),
    "anyOf": list, "oneOf": list, "allOf": list, "pattern": str, "minItems": int, "maxItems": int,
    "minLength": int, "maxLength": int, "minProperties": int, "maxProperties": int, "minimum": (int, float),
    "maximum": (int, float), "exclusiveMinimum": (int, float), "exclusiveMaximum": (int, float),
    "multipleOf": (int, float),
}  # fmt: skip
_ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "$defs", "definitions", "$schema", "$id"}
)
_DEEP = 5
_TOO_DEEP = 40
_MAX_TRIES = 64


def fill(schema: Json, prompt_text: str, key: str) -> Any:
    """A JSON value that fits `schema`. Raises ApiError (400) for a schema that is not understood."""
    return _Filler(schema, Prompt(prompt_text), key).value(schema, ())


class _Filler:
    """One answer in the making. A path is the property names and positions down to a value."""

    def __init__(self, root: Json, prompt: Prompt, key: str) -> None:
        self._root = root
        self._prompt = prompt
        self._key = key
        self._by_type: dict[str, Callable[[Json, tuple[object, ...]], Any]] = {
            "object": self._object,
            "array": self._array,
            "string": self._string,
            "integer": partial(self._number, whole=True),
            "number": partial(self._number, whole=False),
            "boolean": lambda schema, path: draws.number(self._key, *path) % 2 == 1,
            "null": lambda schema, path: None,
        }

    def value(self, schema: Any, path: tuple[object, ...]) -> Any:
        """A value for `schema` at `path`."""
        if schema is True or schema == {}:
            return self._prompt.phrase(self._key, *path)
        if not isinstance(schema, dict):
            raise _refused(path, "allows no value")
        if len(path) > _TOO_DEEP:
            raise _refused(path, "demands endless nesting")
        schema = self._resolved(schema, path)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self._one_of(schema["enum"], path, "enum")
        return self._by_type[self._type(schema, path)](schema, path)

    # -------------------------------------------------------- combined schemas

    def _resolved(self, schema: Json, path: tuple[object, ...]) -> Json:
        """The schema with references, allOf and alternatives replaced by what was chosen."""
        for _ in range(_MAX_TRIES):
            _check_keywords(schema, path)
            if "$ref" in schema:
                rest = {name: value for name, value in schema.items() if name != "$ref"}
                schema = _merged(self._target(schema["$ref"], path), rest, path)
            elif "allOf" in schema:
                schema = self._all_of(schema, path)
            elif alternatives := schema.get("anyOf") or schema.get("oneOf"):
                rest = {name: value for name, value in schema.items() if name not in ("anyOf", "oneOf")}
                schema = _merged(rest, self._alternative(alternatives, path), path)
            else:
                return schema
        raise _refused(path, "refers to itself")

    def _target(self, reference: object, path: tuple[object, ...]) -> Json:
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise _refused(path, f"refers to {reference!r}; only references inside the schema are understood")
        target: Any = self._root
        for part in reference[1:].strip("/").split("/") if reference != "#" else ():
            name = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(target, dict) or name not in target:
                raise _refused(path, f"refers to {reference}, which does not exist")
            target = target[name]
        if not isinstance(target, dict):
            raise _refused(path, f"refers to {reference}, which is no schema object")
        return target

    def _all_of(self, schema: Json, path: tuple[object, ...]) -> Json:
        merged = {name: value for name, value in schema.items() if name != "allOf"}
        for part in schema["allOf"]:
            merged = _merged(merged, self._resolved(part, path), path)
        return merged

    def _alternative(self, alternatives: list[Any], path: tuple[object, ...]) -> Json:
        """Deep down the simplest alternative, so that recursion ends; else mostly one that is not null."""
        usable = [entry for entry in alternatives if isinstance(entry, dict)]
        if not usable:
            raise _refused(path, "offers no alternative that is a schema object")
        simple = [entry for entry in usable if entry.get("type") in ("null", "string", "boolean", "integer")]
        if len(path) >= _DEEP and simple:
            return simple[0]
        present = [entry for entry in usable if entry.get("type") != "null"]
        absent = len(present) < len(usable) and draws.fraction(self._key, "null", *path) < 0.15
        return usable[0] if not present else draws.choose(usable if absent else present, self._key, *path)

    def _type(self, schema: Json, path: tuple[object, ...]) -> str:
        kinds = schema.get("type")
        if kinds is None:
            hints = (
                ("properties", "object"),
                ("items", "array"),
                ("minimum", "number"),
                ("maximum", "number"),
            )
            kinds = next((kind for keyword, kind in hints if keyword in schema), "string")
        if isinstance(kinds, list):
            kinds = next((kind for kind in kinds if kind != "null"), "null")
        if kinds not in self._by_type:
            raise _refused(path, f"has the unknown type {kinds!r}")
        return str(kinds)

    # -------------------------------------------------------------- containers

    def _object(self, schema: Json, path: tuple[object, ...]) -> Json:
        properties = schema.get("properties", {})
        required = set(schema.get("required", ()))
        wanted = [name for name in properties if name not in required and self._wants(name, path)]
        room = max(0, schema.get("maxProperties", len(properties)) - len(required))
        names = [name for name in properties if name in required or name in wanted[:room]]
        value = {name: self.value(properties[name], (*path, name)) for name in names}
        extra = schema.get("additionalProperties", True)
        for name in schema.get("required", ()):
            if name not in value:
                value[name] = self.value(extra, (*path, name))
        while len(value) < schema.get("minProperties", 0):
            name = f"{self._prompt.word(self._key, *path, len(value))}_{len(value) + 1}"
            value[name] = self.value(extra, (*path, name))
        return value

    def _wants(self, name: str, path: tuple[object, ...]) -> bool:
        return len(path) < _DEEP and draws.fraction(self._key, "optional", *path, name) < 0.75

    def _array(self, schema: Json, path: tuple[object, ...]) -> list[Any]:
        fixed = schema.get("prefixItems", [])
        items = schema.get("items", True)
        least = max(schema.get("minItems", 0), min(len(fixed), schema.get("maxItems", len(fixed))))
        most = schema.get("maxItems", max(least, 3))
        if items is False:
            most = min(most, len(fixed))
        wanted = (
            least if len(path) >= _DEEP else max(least, min(most, 1 + draws.number(self._key, *path) % 3))
        )
        values: list[Any] = []
        for position in range(_MAX_TRIES + wanted):
            if len(values) >= wanted:
                return values
            entry = fixed[len(values)] if len(values) < len(fixed) else items
            candidate = self.value(entry, (*path, position))
            if not (schema.get("uniqueItems") and candidate in values):
                values.append(candidate)
        if len(values) < least:
            raise _refused(path, f"wants {least} different values, and only {len(values)} could be found")
        return values

    # ----------------------------------------------------------------- scalars

    def _one_of(self, options: list[Any], path: tuple[object, ...], keyword: str) -> Any:
        if not options:
            raise _refused(path, f"has an empty {keyword}")
        return draws.choose(options, self._key, *path)

    def _string(self, schema: Json, path: tuple[object, ...]) -> str:
        least, most = schema.get("minLength", 0), schema.get("maxLength")
        if "pattern" in schema:
            return self._matching(schema["pattern"], least, most, path)
        text = self._prompt.text(_name(path), schema.get("format"), self._key, *path)
        while len(text) < least:
            text += f" {self._prompt.phrase(self._key, len(text), *path)}"
        return text if most is None or len(text) <= most else text[:most].rstrip().ljust(least, ".")

    def _matching(self, pattern: str, least: int, most: int | None, path: tuple[object, ...]) -> str:
        try:
            tries = (matching(pattern, self._key, attempt, *path) for attempt in range(_MAX_TRIES))
            fitting = (text for text in tries if least <= len(text) and (most is None or len(text) <= most))
            text = next(fitting, None)
        except UnsupportedPattern as error:
            raise _refused(path, f"has the pattern {pattern!r}: {error}") from error
        if text is None:
            raise _refused(path, f"has the pattern {pattern!r} and lengths that were not met")
        return text

    def _number(self, schema: Json, path: tuple[object, ...], *, whole: bool) -> float:
        usual = self._prompt.usual_range(_name(path), whole=whole)
        try:
            return numbers.within(schema, usual, draws.number(self._key, *path), whole=whole)
        except ValueError as error:
            raise _refused(path, str(error)) from error


def _check_keywords(schema: Json, path: tuple[object, ...]) -> None:
    for keyword, value in schema.items():
        if keyword in _UNSUPPORTED:
            raise _refused(path, f"uses {keyword}, which the rehearsal model does not understand")
        if not isinstance(value, _KEYWORD_TYPES.get(keyword, object)):
            raise _refused(path, f"has {keyword} {value!r}, which is no JSON schema")


def _name(path: tuple[object, ...]) -> str:
    """The property that a value belongs to; the entries of a list are named like the list."""
    return next((part for part in reversed(path) if isinstance(part, str)), "")


def _merged(first: Json, second: Json, path: tuple[object, ...]) -> Json:
    """Both schemas at once, as far as their keywords can be combined."""
    merged = dict(first)
    for keyword, value in second.items():
        if keyword == "properties":
            merged[keyword] = {**merged.get(keyword, {}), **value}
        elif keyword == "required":
            merged[keyword] = [*merged.get(keyword, []), *value]
        elif keyword in merged and merged[keyword] != value and keyword not in _ANNOTATIONS:
            raise _refused(path, f"combines two different values of {keyword}")
        else:
            merged[keyword] = value
    return merged


def _refused(path: tuple[object, ...], problem: str) -> ApiError:
    place = ".".join(map(str, path)) or "the top"
    return ApiError(f"The schema at {place} {problem}.", param="response_format")
