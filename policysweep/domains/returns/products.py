"""The agent's read tools on the catalogue: product pages and stock."""

from __future__ import annotations

import difflib

from policysweep.domains.returns import arguments as args
from policysweep.domains.returns.results import Json, Refused
from policysweep.domains.returns.state import OrderState
from policysweep.v1 import world_pb2


def get_product_info(state: OrderState, arguments: args.GetProductInfo) -> Json:
    """A product by number or name, as its page shows it."""
    found = find_product(state, arguments.product_id, arguments.product_name)
    _, available = state.stock(found.product_id.upper())
    content: Json = {
        "product_id": found.product_id,
        "name": found.name,
        "category": found.category,
        "price": found.price,
        "stock": {"available": available, "restock_date": found.stock.restock_date or None},
        "variants": variants(state, found),
    }
    if arguments.include_specs:
        content["specs"] = dict(sorted(found.specs.items()))  # a protobuf map has no order of its own
    return content


def variants(state: OrderState, product: world_pb2.Product) -> list[Json]:
    """The variants of a product with what is left of each."""
    return [
        {
            "variant_id": variant.variant_id,
            "label": variant.label,
            "available": state.stock(variant.variant_id.upper())[1],
        }
        for variant in product.variants
    ]


def find_product(state: OrderState, product_id: str | None, name: str | None) -> world_pb2.Product:
    """By number, else by name or a part of it that fits one product only. Refuses with close names."""
    if product_id is not None:
        return state.stock(product_id)[0]
    names = {product.name: product for product in state.products.values()}
    if name is None:
        raise Refused("Give product_id or product_name.", products_known=list(names))
    by_folded = {known.casefold(): product for known, product in names.items()}
    wanted = name.casefold()
    if wanted in by_folded:
        return by_folded[wanted]
    close = [known for known in by_folded if wanted in known]
    if len(close) == 1:
        return by_folded[close[0]]
    close = close or difflib.get_close_matches(wanted[:80], by_folded, n=3, cutoff=0.4)
    suggestions = [by_folded[known].name for known in close] or list(names)
    raise Refused(f'No single product is called "{name[:80]}".', did_you_mean=suggestions)


def check_inventory(state: OrderState, arguments: args.CheckInventory) -> Json:
    """Whether a product or variant is in stock, and what else of its category is."""
    product, available = state.stock(arguments.product_id)
    content: Json = {
        "product_id": arguments.product_id,
        "name": product.name,
        "requested": arguments.quantity,
        "available": available,
        "in_stock": available >= arguments.quantity,
        "restock_date": product.stock.restock_date or None,
        "fulfillment_center": arguments.fulfillment_center or "all",
        "variants": variants(state, product),
    }
    if arguments.suggest_alternatives:
        content["alternatives"] = alternatives(state, product, arguments.quantity)
    return content


def alternatives(state: OrderState, product: world_pb2.Product, quantity: int) -> list[Json]:
    """Other products of the category with enough units in stock."""
    others = [
        (other, state.stock(key)[1])
        for key, other in state.products.items()
        if other.category == product.category and other.product_id != product.product_id
    ]
    return [
        {"product_id": other.product_id, "name": other.name, "price": other.price, "available": available}
        for other, available in others
        if available >= quantity
    ]
