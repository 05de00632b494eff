"""YAML files that people write, read so that every complaint names the file, the line and the field.

    text -> nodes (PyYAML's safe loader) -> plain data + the line of every field -> a pydantic model

The nodes are walked here instead of by PyYAML's constructor, because that one keeps the last of two equal
keys without a word, and because lines are gone once the data exists. Anchors and merge keys (`<<`) work;
a file that expands without bound does not.
"""

from __future__ import annotations

import difflib
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from policysweep.errors import InputError

FieldPath = tuple[str | int, ...]
"""Where a value stands: keys and list positions from the root, `("agents", 1, "model")`."""

Model = TypeVar("Model", bound=BaseModel)

MAX_VALUES = 100_000
"""Values that a file may expand to; a few nested anchors could otherwise fill the memory."""

_MAP, _SEQ, _MERGE, _TIMESTAMP = (
    f"tag:yaml.org,2002:{name}" for name in ("map", "seq", "merge", "timestamp")
)


class _Loader(yaml.SafeLoader):
    """The safe loader, except that a date is text: no field holds a date, and 2026-13-01 must not raise."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


@dataclass(frozen=True, slots=True)
class YamlSource:
    """A parsed file: its name for messages, its data, and the line (from 1) of every field."""

    name: str
    data: Any
    lines: Mapping[FieldPath, int]

    def line_of(self, path: FieldPath) -> int:
        """The line of a field, or of the nearest thing around it that stands in the file."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines[path]


def read_yaml(path: Path) -> YamlSource:
    """Read a file; InputError when it cannot be read or is not one YAML document."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}:{line}: is not UTF-8 text: save the file as UTF-8") from error
    return parse_yaml(text, str(path))


def parse_yaml(text: str, name: str) -> YamlSource:
    """Parse one YAML document; `name` stands for the file in messages. InputError when it is not one."""
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            raise InputError(f"{name}:1: the file is empty")
        reader = _Reader(loader, name)
        return YamlSource(name, reader.value(node, ()), {(): _line(node)} | reader.lines)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise InputError(f"{name}:{line}: is not valid YAML: {error.problem}") from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise InputError(f"{name}:{line}: holds a character that YAML does not allow") from error
    except RecursionError as error:
        raise InputError(f"{name}: is nested too deeply") from error


class _Reader:
    """Turns nodes into plain data and notes the line of each field on the way."""

    def __init__(self, loader: _Loader, name: str) -> None:
        self._loader = loader
        self._name = name
        self._open: set[int] = set()
        self._values = 0
        self.lines: dict[FieldPath, int] = {}

    def value(self, node: yaml.Node, path: FieldPath) -> Any:
        """The data of a node that stands at `path`."""
        self._values += 1
        if self._values > MAX_VALUES:
            raise self._error(node, f"expands to more than {MAX_VALUES} values")
        if id(node) in self._open:
            raise self._error(node, "an anchor that contains itself")
        self._open.add(id(node))
        try:
            return self._convert(node, path)
        finally:
            self._open.remove(id(node))

    def _convert(self, node: yaml.Node, path: FieldPath) -> Any:
        if isinstance(node, yaml.ScalarNode):
            try:
                return self._loader.construct_object(node)
            except ValueError:
                kind = node.tag.rpartition(":")[2]
                raise self._error(node, f"{node.value[:60]!r} is not a valid {kind}") from None
        if isinstance(node, yaml.MappingNode) and node.tag == _MAP:
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode) and node.tag == _SEQ:
            return [self._item(item, (*path, at)) for at, item in enumerate(node.value)]
        raise self._error(node, f"the tag {node.tag} has no meaning here")

    def _item(self, node: yaml.Node, path: FieldPath) -> Any:
        self.lines[path] = _line(node)
        return self.value(node, path)

    def _mapping(self, node: yaml.MappingNode, path: FieldPath) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                data = self._merged(value_node, path) | data
        own: dict[str, int] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                continue
            key = self._key(key_node)
            if key in own:
                raise self._error(key_node, f"{key}: stands here twice, first in line {own[key]}")
            own[key] = self.lines[(*path, key)] = _line(key_node)
            data[key] = self.value(value_node, (*path, key))
        return data

    def _merged(self, node: yaml.Node, path: FieldPath) -> dict[str, Any]:
        """What `<<` brings in: a mapping, or a list of them of which the first has precedence."""
        data: dict[str, Any] = {}
        for source in reversed(node.value) if isinstance(node, yaml.SequenceNode) else [node]:
            if not isinstance(source, yaml.MappingNode):
                raise self._error(source, "<< takes a mapping or a list of mappings")
            data |= self.value(source, path)
        return data

    def _key(self, node: yaml.Node) -> str:
        key = self._convert(node, ()) if isinstance(node, yaml.ScalarNode) else None
        if not isinstance(key, str):
            raise self._error(node, "the name of a field must be text: put it in quotes")
        return key

    def _error(self, node: yaml.Node, problem: str) -> InputError:
        return InputError(f"{self._name}:{_line(node)}: {problem}")


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def validate(source: YamlSource, model: type[Model]) -> Model:
    """The file as a model; InputError with one line `FILE:LINE: field: what is wrong` per problem."""
    try:
        return model.model_validate(source.data)
    except ValidationError as error:
        details = [detail for detail in error.errors(include_url=False) if not _is_echo(detail)]
        problems = sorted({(source.line_of(detail["loc"]), _problem(detail, model)) for detail in details})
        raise InputError("\n".join(f"{source.name}:{line}: {text}" for line, text in problems)) from None


_WORDS = {
    "missing": "is missing",
    "string_type": "must be text, not {shown}",
    "int_type": "must be a whole number, not {shown}",
    "float_type": "must be a number, not {shown}",
    "bool_type": "must be true or false, not {shown}",
    "tuple_type": "must be a list, not {shown}",
    "model_type": "must be a mapping of fields, not {shown}",
    "literal_error": "must be {expected}, not {shown}",
    "greater_than": "must be more than {gt}, not {shown}",
    "greater_than_equal": "must be at least {ge}, not {shown}",
    "less_than_equal": "must be at most {le}, not {shown}",
    "finite_number": "must be a finite number, not {shown}",
    "too_short": "must hold at least {min_length} entry",
    "value_error": "{error}",
}


def _is_echo(detail: Any) -> bool:
    """Whether a list is called too short only because entries of it are wrong, which is reported anyway."""
    return bool(detail["type"] == "too_short" and len(detail["input"]) >= detail["ctx"]["min_length"])


def _problem(detail: Any, model: type[BaseModel]) -> str:
    loc: FieldPath = detail["loc"]
    field = _written(loc)
    if detail["type"] == "extra_forbidden":
        return f"{field}: unknown field; {_suggestion(str(loc[-1]), _fields_at(model, loc[:-1]))}"
    words = _WORDS.get(detail["type"], detail["msg"])
    text = words.format(shown=_shown(detail["input"]), **detail.get("ctx", {}))
    if detail["type"] == "string_type" and isinstance(detail["input"], bool):
        text += ": YAML reads yes, no, on and off as true and false, so put the word in quotes"
    return f"{field}: {text}" if field else text


def _written(loc: FieldPath) -> str:
    # pydantic marks a key that is wrong by a last part "[key]".
    loc = loc[:-1] if loc[-1:] == ("[key]",) else loc
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc).lstrip(".")


def _shown(value: Any) -> str:
    if value is None:
        return "empty"
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def _suggestion(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]}?" if close else f"the fields here are {', '.join(known)}"


def _fields_at(model: type[BaseModel], loc: FieldPath) -> list[str]:
    """Names of the fields that the model at `loc` has."""
    for part in loc:
        if isinstance(part, str):
            found = _models_in(model.model_fields[part].annotation)
            model = found[0]
    return sorted(model.model_fields)


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for argument in typing.get_args(annotation) for found in _models_in(argument)]
