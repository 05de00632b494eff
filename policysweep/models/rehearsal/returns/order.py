"""The facts of an order as get_order_details shows them.

Read tolerantly: data sets and services name things differently (`name` or `item_name`, dates per parcel or
per line), and whatever is missing is simply not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from functools import lru_cache

from policysweep.models.rehearsal.request import Json

WINDOWS = {
    "clothing": 45, "home": 30, "toys": 30, "books": 30, "sports": 30, "beauty": 30, "electronics": 14,
    "furniture": 21, "software": 14,
}  # fmt: skip
"""Days to return by the first word of a category; 30 for any other."""
_DEFAULT_WINDOW = 30
_HOLIDAY_BOUGHT = (date(2025, 11, 15), date(2025, 12, 24))
_HOLIDAY_END = date(2026, 1, 31)
_EXCLUDED_TAGS = frozenset({"final_sale", "made_to_order", "activated", "digital_code"})


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the order. `delivered` is None while it is unknown; `share` is its part of what was paid."""

    item_id: str
    product_id: str
    name: str
    category: str
    quantity: int
    share: float
    third_party: bool
    tags: frozenset[str]
    delivered: date | None
    late_by: int
    window: int

    def overdue(self, today: date, delivered: date | None = None) -> int:
        """Days past the end of the window, counted from its own or another delivery; 0 when in time."""
        start = delivered or self.delivered
        return 0 if start is None else max(0, (today - start).days - self.window)

    @property
    def excluded(self) -> bool:
        """Whether it is of a kind that policies take out of returns."""
        return bool(self.tags & _EXCLUDED_TAGS)


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """An order. Equal only to itself: each text is read once, and judgements are remembered by order."""

    order_id: str
    customer_id: str
    today: date
    placed: date | None
    lines: tuple[Line, ...]
    paid: float
    gift_card_part: float
    method: str
    is_gift: bool
    cross_border: bool
    promotions: int

    @property
    def latest_delivery(self) -> date | None:
        """The day on which the order was complete."""
        return max((line.delivered for line in self.lines if line.delivered), default=None)

    @property
    def holiday(self) -> bool:
        """Whether a holiday window could save it."""
        in_season = self.placed is not None and _HOLIDAY_BOUGHT[0] <= self.placed <= _HOLIDAY_BOUGHT[1]
        return in_season and self.today <= _HOLIDAY_END


def read_order(content: Json) -> Order:
    """Read a get_order_details result."""
    parcels = _parcels(content)
    today = _date(content.get("today")) or max(
        (at for at, _ in parcels.values() if at), default=date(2026, 1, 1)
    )
    payment, gift, address = (_part(content, name) for name in ("payment", "gift", "ship_to"))
    promotions = [entry for entry in content.get("promotions") or () if isinstance(entry, dict)]
    items = [
        entry for entry in content.get("items") or () if isinstance(entry, dict) and entry.get("item_id")
    ]
    shares = _shares(items, promotions)
    return Order(
        order_id=str(content.get("order_id", "")),
        customer_id=str(content.get("customer_id", "")),
        today=today,
        placed=_date(content.get("placed_at")),
        lines=tuple(_line(entry, parcels, shares) for entry in items),
        paid=_amount(payment.get("amount")) or sum(shares.values()),
        gift_card_part=_amount(payment.get("gift_card_part")),
        method=str(payment.get("method") or content.get("payment_method") or "original payment method"),
        is_gift=bool(gift.get("marked") or gift.get("sent_to_other")),
        cross_border=bool(address.get("cross_border")),
        promotions=sum(_amount(entry.get("amount")) != 0 for entry in promotions),
    )


def _parcels(content: Json) -> dict[str, tuple[date | None, int]]:
    """Delivery day and days of delay by item."""
    found: dict[str, tuple[date | None, int]] = {}
    for parcel in content.get("delivery_dates") or content.get("shipments") or ():
        if not isinstance(parcel, dict):
            continue
        delivered, promised = _date(parcel.get("delivered_at")), _date(parcel.get("promised_by"))
        late_by = (delivered - promised).days if delivered and promised else 0
        for item_id in parcel.get("items") or ():
            found[str(item_id)] = (delivered, max(0, late_by))
    return found


def _line(entry: Json, parcels: dict[str, tuple[date | None, int]], shares: dict[str, float]) -> Line:
    item_id = str(entry["item_id"])
    delivered, late_by = parcels.get(item_id, (_date(entry.get("delivery_date")), 0))
    seller = _part(entry, "seller")
    category = str(entry.get("category", ""))
    listed = entry.get("return_window_days_on_listing") or entry.get("window_days_on_listing")
    usual = WINDOWS.get(category.lower().partition(",")[0].split(" ")[0], _DEFAULT_WINDOW)
    return Line(
        item_id=item_id,
        product_id=str(entry.get("product_id", "")),
        name=str(entry.get("name") or entry.get("item_name") or item_id),
        category=category,
        quantity=int(_amount(entry.get("quantity")) or 1),
        share=round(shares[item_id], 2),
        third_party=seller.get("type") == "third_party",
        tags=frozenset(map(str, entry.get("tags") or ())),
        delivered=delivered,
        late_by=late_by,
        window=int(listed) if isinstance(listed, int) else usual,
    )


def _shares(items: list[Json], promotions: list[Json]) -> dict[str, float]:
    """What was paid for each line: its price less its part of the promotions on it."""
    prices = {
        str(entry["item_id"]): _amount(entry.get("unit_price") or entry.get("price"))
        * (_amount(entry.get("quantity")) or 1)
        for entry in items
    }
    shares = dict(prices)
    for promotion in promotions:
        covered = [item for item in promotion.get("item_ids") or prices if item in prices]
        total = sum(prices[item] for item in covered)
        if promotion.get("scope") == "shipping" or not total:
            continue
        for item in covered:
            shares[item] -= abs(_amount(promotion.get("amount"))) * prices[item] / total
    return {item: max(0.0, share) for item, share in shares.items()}


def _part(content: Json, name: str) -> Json:
    part = content.get(name)
    return part if isinstance(part, dict) else {}


def _amount(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


@lru_cache(maxsize=4096)
def _parsed(text: str) -> date | None:
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        return None


def _date(value: object) -> date | None:
    return _parsed(value) if isinstance(value, str) else None
