"""Pages of a history are bounded by number and by size."""

from __future__ import annotations

import pytest

from policysweep.v1 import policybank_pb2 as pb
from services.policybank.service import page


def revisions(count: int, characters: int) -> list[pb.Revision]:
    return [pb.Revision(number=number, diff="x" * characters) for number in range(1, count + 1)]


@pytest.mark.parametrize(
    ("count", "characters", "size", "expected"),
    [
        (0, 0, 5, 0),
        (3, 10, 5, 3),
        (9, 10, 5, 5),
        (9, 1_000_000, 8, 4),
        (9, 5_000_000, 8, 1),
    ],
)
def test_a_page_is_never_empty_and_never_too_large(
    count: int, characters: int, size: int, expected: int
) -> None:
    found = page(revisions(count, characters), size)
    assert [each.number for each in found] == list(range(1, expected + 1))
