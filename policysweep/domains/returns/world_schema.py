"""The shape of the order world as the agent's tools read it: its fields, without a record; pure."""

from __future__ import annotations

import functools
from typing import Any

import orjson
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from policysweep.v1 import world_pb2

# Named one by one: the hidden truth of a task lies in the same message.
_READ = ("today", "customer", "order", "other_orders", "products")

_TYPES = {
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_BOOL: "boolean",
    FieldDescriptor.TYPE_INT32: "integer",
    FieldDescriptor.TYPE_DOUBLE: "number",
}


@functools.cache
def database_schema() -> str:
    """JSON Schema of the order world, as text, without what no tool of the agent returns."""
    fields = world_pb2.OrderWorld.DESCRIPTOR.fields_by_name
    return orjson.dumps(_object([fields[name] for name in _READ])).decode()


def _object(fields: list[FieldDescriptor]) -> dict[str, Any]:
    return {"type": "object", "properties": {field.name: _field(field) for field in fields}}


def _field(field: FieldDescriptor) -> dict[str, Any]:
    message: Descriptor | None = field.message_type
    if message is not None and message.GetOptions().map_entry:
        return {"type": "object", "additionalProperties": _field(message.fields_by_name["value"])}
    one = {"type": _TYPES[field.type]} if message is None else _object(list(message.fields))
    return {"type": "array", "items": one} if field.is_repeated else one
