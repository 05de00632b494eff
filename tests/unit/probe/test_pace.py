"""How much is asked of a server, by how fast its chat was."""

from __future__ import annotations

import math

import pytest

from policysweep.probe.finding import yes
from policysweep.probe.run import answer_tokens, tokens_per_second


@pytest.mark.parametrize(
    ("tokens", "seconds", "speed", "allowed"),
    [
        (18, 3.0, 6.0, 64),  # a processor under load
        (40, 2.0, 20.0, 200),
        (60, 0.5, 120.0, 1024),
        (10, 0.0, 10_000.0, 1024),
        (0, 1.0, math.inf, 1024),  # not counted
    ],
)
def test_an_answer_takes_as_long_on_a_slow_server(
    tokens: int, seconds: float, speed: float, allowed: int
) -> None:
    found = tokens_per_second(yes("", tokens=tokens, seconds=seconds))
    assert (found, answer_tokens(found)) == (speed, allowed)
