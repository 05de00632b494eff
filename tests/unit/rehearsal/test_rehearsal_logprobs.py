from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from policysweep.models.rehearsal import logprobs


@given(st.text(max_size=80), st.integers(0, 20))
def test_tokens_join_to_the_text_and_alternatives_are_a_distribution(text: str, top: int) -> None:
    entries = logprobs.content(text, top, "digest")
    assert "".join(entry["token"] for entry in entries) == text
    for entry in entries:
        masses = [math.exp(other["logprob"]) for other in entry["top_logprobs"]]
        assert len(masses) == top
        assert masses == sorted(masses, reverse=True)
        assert sum(masses) <= 1 + 1e-5


def test_a_score_spreads_over_its_neighbours() -> None:
    (entry,) = logprobs.content("4", 5, "digest")
    mass = {other["token"]: math.exp(other["logprob"]) for other in entry["top_logprobs"]}
    assert set(mass) == set("12345")
    assert max(mass, key=lambda digit: mass[digit]) == "4"
    assert mass["5"] > mass["1"]
    assert mass["3"] > mass["2"] > mass["1"]
    assert 0.99 < sum(mass.values()) <= 1


def test_digits_are_tokens_of_their_own() -> None:
    assert logprobs.split('{"score":4}') == ["{", '"', "score", '"', ":", "4", "}"]
