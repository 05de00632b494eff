"""Order facts, as `policysweep dataset worlds` asks for them: the generic answer, made to hang together.

The filler alone gives valid facts that make no story: three items of one name, all lost. Here the items are
those that the prompt puts in quotation marks, delivered some weeks ago and paid by card; the rest stays as it
was filled. Only fields that the answer has are set, so a schema that grows is still met.
"""

from __future__ import annotations

from typing import Any

from policysweep.models.rehearsal import draws
from policysweep.models.rehearsal.plausible import Prompt
from policysweep.models.rehearsal.request import Json, ParsedRequest
from policysweep.models.rehearsal.structured import fill

_MOST_ITEMS = 3
_ORDER: Json = {
    "marked_as_gift": False,
    "sent_to_somebody_else": False,
    "delivered_abroad": False,
    "shipping_charge": 0.0,
    "promotions": [],
    "payment_method": "credit_card",
    "payment_method_status": "active",
    "paid_with_gift_card": 0.0,
    "other_orders_kept_12_months": 7,
    "other_orders_returned_12_months": 1,
}
_ITEM: Json = {
    "quantity": 1,
    "tags": [],
    "seller": "shop",
    "seller_name": "",
    "return_days_on_page": 0,
    "delivery": "delivered",
}
_STATES = ("unopened", "opened_unused", "opened_used", "opened_used", "defective")


def order_facts(request: ParsedRequest, schema: Json) -> Any:
    """Facts that fit `schema`."""
    text, key = request.whole_text(), request.conversation_key()
    facts = fill(schema, text, key)
    names = Prompt(text).titles()[:_MOST_ITEMS]
    items = facts.get("items") if isinstance(facts, dict) else None
    if not isinstance(items, list) or not items:
        return facts
    names = names or [str(items[0].get("name", "Item"))]
    facts["items"] = [_item(items[at % len(items)], name, key, at) for at, name in enumerate(names)]
    return _set(facts, _ORDER)


def _item(filled: Json, name: str, key: str, position: int) -> Json:
    draw = draws.number("item", key, position)
    own = {
        "name": name,
        "delivered_days_ago": 6 + draw % 30,
        "days_late": (0, 0, 0, 7)[draw // 32 % 4],
        "condition": _STATES[draw // 128 % len(_STATES)],
    }
    return _set(dict(filled), _ITEM | own)


def _set(value: Json, fields: Json) -> Json:
    """`value` with those of the fields that it has."""
    value.update((name, field) for name, field in fields.items() if name in value)
    return value
