from __future__ import annotations

from datetime import date

import pytest

from policysweep.models.rehearsal.returns.order import Line, read_order
from policysweep.models.rehearsal.returns.statements import accepts, read_statements, wants_person


def line(item_id: str, name: str, share: float = 10.0) -> Line:
    return Line(item_id, "P-1", name, "Home", 1, share, False, frozenset(), date(2026, 1, 3), 0, 30)


FRAME, TOP = line("I-1", "Tarnholt Desk Frame", 389.0), line("I-2", "Tarnholt Ash Desktop", 214.0)


def conditions(*texts: str) -> tuple[str, str]:
    stated = read_statements(texts, (FRAME, TOP))
    return stated.conditions["I-1"], stated.conditions["I-2"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The frame was assembled. The desktop is still sealed.", ("opened_used", "unopened")),
        ("The frame has a scratch and I worked at it. The desktop is unopened.", ("opened_used", "unopened")),
        ("The frame was never used. The desktop was opened.", ("opened_unused", "opened_unused")),
        ("The frame is faulty, it stopped working. The desktop is sealed.", ("defective", "unopened")),
        ("The desktop arrived with one corner crushed.", ("opened_unused", "damaged_in_shipping")),
        ("This is the wrong item!", ("wrong_item", "opened_unused")),
        ("I opened both.", ("opened_unused", "opened_unused")),
        ("", ("opened_unused", "opened_unused")),
    ],
)
def test_conditions_by_item(text: str, expected: tuple[str, str]) -> None:
    assert conditions(text) == expected


def test_the_worst_that_was_said_counts() -> None:
    assert conditions("The frame is sealed.", "Well, the frame was used for ten days.")[0] == "opened_used"


def test_wishes() -> None:
    stated = read_statements(
        ["I want to keep the desktop. Could you swap the frame? It burnt my hand."], (FRAME, TOP)
    )
    assert stated.kept == {"I-2"}
    assert stated.wants_exchange
    assert stated.safety
    plain = read_statements(["It keeps wobbling."], (FRAME, TOP))
    assert (plain.kept, plain.wants_exchange, plain.safety) == (frozenset(), False, False)


@pytest.mark.parametrize(
    ("text", "yes", "person"),
    [
        ("Yes, please proceed.", True, False),
        ("ok deal, that works for me", True, False),
        ("I cannot accept the deduction. Please go ahead and look again.", False, False),
        ("Why is that?", False, False),
        ("can I just talk to a real person about this?", False, True),
    ],
)
def test_replies(text: str, yes: bool, person: bool) -> None:
    assert accepts(text) is yes
    assert wants_person(text) is person


def test_an_order_as_our_tools_show_it() -> None:
    order = read_order(
        {
            "order_id": "ORD-1-2",
            "customer_id": "CUST-1",
            "placed_at": "2025-12-27",
            "today": "2026-01-27",
            "items": [
                {
                    "item_id": "I-1",
                    "product_id": "P-1",
                    "name": "Frame",
                    "category": "Furniture, mattresses, and large appliances",
                    "quantity": 2,
                    "unit_price": 100.0,
                    "seller": {"type": "third_party"},
                    "tags": ["large_item"],
                    "return_window_days_on_listing": None,
                },
                {"item_id": "I-2", "name": "Whisk", "category": "Home", "quantity": 1, "unit_price": 50.0},
            ],
            "delivery_dates": [
                {"items": ["I-1"], "promised_by": "2026-01-01", "delivered_at": "2026-01-03"},
                {"items": ["I-2"], "promised_by": "2026-01-09", "delivered_at": None},
            ],
            "promotions": [{"amount": -25.0, "scope": "order", "item_ids": []}],
            "payment": {"method": "credit_card", "amount": 225.0, "gift_card_part": 0.0},
            "gift": {"marked": False, "sent_to_other": True},
        }
    )
    frame, whisk = order.lines
    assert (frame.window, frame.late_by, frame.overdue(order.today)) == (21, 2, 3)
    assert (frame.share, whisk.share) == (180.0, 45.0)
    assert (frame.third_party, whisk.third_party) == (True, False)
    assert whisk.delivered is None
    assert (order.is_gift, order.promotions) == (True, 1)


def test_an_order_as_the_public_code_shows_it() -> None:
    order = read_order(
        {
            "order_id": "ORDER-100-100000",
            "items": [
                {
                    "item_id": "CAM",
                    "item_name": "Camera",
                    "quantity": 2,
                    "price": 129.99,
                    "delivery_date": "2025-03-02",
                }
            ],
            "customer_id": "CUST-1",
            "payment_method": "Visa ending 4242",
            "promotions": [{"code": "BUNDLE20", "amount": 20.0}],
        }
    )
    (camera,) = order.lines
    assert (camera.name, camera.delivered, camera.share) == ("Camera", date(2025, 3, 2), 239.98)
    assert order.method == "Visa ending 4242"


def test_an_order_that_shows_nothing_has_no_lines() -> None:
    assert (
        read_order({"items": ["odd", {"name": "no id"}], "payment": "cash", "promotions": None}).lines == ()
    )
