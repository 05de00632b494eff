"""The order world's shape, as a curator is shown it."""

from __future__ import annotations

import json

from policysweep.domains.returns.world_schema import database_schema
from policysweep.v1 import world_pb2


def test_it_shows_what_tools_read_and_nothing_of_the_hidden_truth() -> None:
    schema = json.loads(database_schema())
    assert list(schema["properties"]) == ["today", "customer", "order", "other_orders", "products"]
    hidden = {
        field.name
        for message in (world_pb2.InspectionTruth, world_pb2.GoldFacts)
        for field in message.DESCRIPTOR.fields
    } - {"item_id"}
    assert not [name for name in hidden if f'"{name}"' in database_schema()]


def test_nested_repeated_and_mapped_fields_have_their_shapes() -> None:
    fields = json.loads(database_schema())["properties"]
    item = fields["order"]["properties"]["items"]["items"]["properties"]
    assert item["quantity"] == {"type": "integer"}
    assert item["tags"] == {"type": "array", "items": {"type": "string"}}
    assert item["seller"]["properties"]["name"] == {"type": "string"}
    specs = fields["products"]["items"]["properties"]["specs"]
    assert specs == {"type": "object", "additionalProperties": {"type": "string"}}
