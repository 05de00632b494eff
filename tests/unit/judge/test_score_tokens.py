"""The weighted scores are compared with sums worked out by hand."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policysweep.models.chat import TokenLogprob
from services.judge.score_tokens import ScoreTokens, number_positions, weighted_score

from .support import joined, tokens

P = {"2": 0.1, "3": 0.3, "4": 0.5, "5": 0.05}
# (2 * 0.1 + 3 * 0.3 + 4 * 0.5 + 5 * 0.05) / 0.95
EXPECTED = 3.35 / 0.95


def logs(masses: dict[str, float], before: str = "", after: str = "") -> dict[str, float]:
    return {f"{before}{digit}{after}": math.log(mass) for digit, mass in masses.items()}


# ------------------------------------------------------------------ one token


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ""),
        (" ", ""),
        ('": ', ""),
        ('":', ""),
        ("\n  ", ""),
        ("", "}"),
        ("", ","),
        (": ", "}}"),
        ("", ".0"),
    ],
)
def test_the_score_is_the_expectation_over_the_scale(before: str, after: str) -> None:
    found = weighted_score(TokenLogprob("4", logs(P, before, after)), before)
    assert found is not None
    assert found.value == pytest.approx(EXPECTED)
    assert found.mass == pytest.approx(0.95)


def test_certainty_gives_the_score_itself() -> None:
    found = weighted_score(TokenLogprob("4", {"4": 0.0}))
    assert found is not None
    assert (found.value, found.mass) == (4.0, 1.0)


@pytest.mark.parametrize(
    "other", ["6", "0", "45", "4.5", "3e1", "", "four", '"4', "-4", "null", " the", "\ufffd"]
)
def test_what_is_no_score_has_no_share(other: str) -> None:
    found = weighted_score(TokenLogprob("4", {"4": math.log(0.6), other: math.log(0.4)}))
    assert found is not None
    assert found.value == pytest.approx(4.0)
    assert found.mass == pytest.approx(0.6)


def test_tokens_that_put_the_same_score_differently_add_up() -> None:
    found = weighted_score(
        TokenLogprob('": 4', {'": 4': math.log(0.5), '":4': math.log(0.2), '": 2': math.log(0.3)}), '": '
    )
    assert found is not None
    assert found.value == pytest.approx(4 * 0.7 + 2 * 0.3)


def test_an_alternative_of_another_beginning_has_no_share() -> None:
    found = weighted_score(TokenLogprob('": 4', {'": 4': math.log(0.5), "4": math.log(0.5)}), '": ')
    assert found is not None
    assert found.mass == pytest.approx(0.5)


def test_without_mass_on_the_scale_there_is_no_weighted_score() -> None:
    assert weighted_score(TokenLogprob("x", {"x": 0.0})) is None
    assert weighted_score(TokenLogprob("4", {})) is None
    assert weighted_score(TokenLogprob("4", {"4": -math.inf})) is None


def test_low_mass_is_reported_as_it_is() -> None:
    found = weighted_score(TokenLogprob("4", {"4": math.log(0.03), "5": math.log(0.01), " ": math.log(0.9)}))
    assert found is not None
    assert found.mass == pytest.approx(0.04)
    assert found.value == pytest.approx(4.25)


# ------------------------------------------------------------------ finding the token

CUTS = [
    ('{"', "a", '":{"', "score", '":', "4", "}}"),
    ('{"', "a", '":{"', "score", '": 4', "}}"),
    ('{"a":{"score', '":4', "}}"),
    ('{"a":{"score":', " ", "4", "}}"),
    ('{"a":{"score":', " 4", "}}"),
    ('{"a":{"score":', "4}}"),
    ('{"a":{"score":4}}',),
    ("", '{"a":{"score":', "", "4", "", "}}"),
    ('{"a":{"score":', "4", ".0", "}}"),
    ('{"a":{"score":\n', "  4", "\n}}"),
]


@pytest.mark.parametrize("cut", CUTS)
def test_the_token_that_covers_the_digit_is_found(cut: tuple[str, ...]) -> None:
    index = next(i for i, text in enumerate(cut) if "4" in text)
    before, _, after = cut[index].partition("4")
    entries = tokens(*cut, at={index: logs(P, before, after)})
    found = ScoreTokens(joined(entries), entries).weighted(("a", "score"))
    assert found is not None
    assert found.value == pytest.approx(EXPECTED)


def test_digits_in_justifications_and_keys_are_not_taken_for_scores() -> None:
    cut = ('{"a":{"justification":"', "4", " of [", "3", ']: \\"score\\":', "4", '","score":', "4", "}}")
    entries = tokens(*cut, at={7: logs(P)})
    found = ScoreTokens(joined(entries), entries).weighted(("a", "score"))
    assert found is not None
    assert found.value == pytest.approx(EXPECTED)


def test_entries_of_lists_are_told_apart() -> None:
    cut = ('{"agent_turns":[{"turn":', "4", ',"m":', "2", '},{"turn":', "4", ',"m":', "4", "}]}")
    entries = tokens(*cut, at={7: logs(P)})
    found = ScoreTokens(joined(entries), entries)
    first, second = (found.weighted(("agent_turns", at, "m")) for at in (0, 1))
    assert first is not None
    assert second is not None
    assert first.value == 2.0
    assert second.value == pytest.approx(EXPECTED)
    assert found.weighted(("agent_turns", 2, "m")) is None


@pytest.mark.parametrize("broken", ["\ufffd", ""])
def test_characters_that_servers_break_into_several_tokens_do_no_harm(broken: str) -> None:
    text = '{"a":{"justification":"It says \u201cno\u201d \U0001f600","score":4}}'
    cut = (
        '{"a":{"justification":"It says ',
        broken,
        broken,
        "no",
        broken * 2,
        " ",
        broken,
        '","score":',
        "4",
        "}}",
    )
    entries = tokens(*cut, at={8: logs(P)})
    found = ScoreTokens(text, entries).weighted(("a", "score"))
    assert found is not None
    assert found.value == pytest.approx(EXPECTED)


def test_tokens_before_and_after_the_answer_are_passed_over() -> None:
    cut = ("<think>", '{"score":', "1", "}", "</think>", '{"score":', "4", "}", "<|im_end|>")
    found = ScoreTokens('{"score":4}', tokens(*cut, at={6: logs(P)})).weighted(("score",))
    assert found is not None
    assert found.value == pytest.approx(EXPECTED)


def test_tokens_of_another_text_give_nothing() -> None:
    assert ScoreTokens('{"score":4}', tokens('{"score":', "5", "}")).weighted(("score",)) is None
    assert ScoreTokens('{"score":4}', ()).weighted(("score",)) is None


# ------------------------------------------------------------------ positions in JSON

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


def numbers(value: Any, path: tuple[str | int, ...] = ()) -> dict[tuple[str | int, ...], float]:
    if isinstance(value, dict):
        return {k: v for key, part in value.items() for k, v in numbers(part, (*path, key)).items()}
    if isinstance(value, list):
        return {k: v for at, part in enumerate(value) for k, v in numbers(part, (*path, at)).items()}
    return {path: value} if isinstance(value, int | float) and not isinstance(value, bool) else {}


@given(JSON_VALUES, st.booleans(), st.sampled_from([None, 1]))
def test_every_number_of_any_json_is_found_at_its_place(
    value: Any, ascii_only: bool, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    positions = number_positions(text)
    expected = numbers(value)
    assert set(positions) == set(expected)
    for path, position in positions.items():
        assert json.JSONDecoder().raw_decode(text, position)[0] == expected[path]
