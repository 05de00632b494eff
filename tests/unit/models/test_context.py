"""The budget of a context: when to ask, what an answer has room for, and what is refused."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from policysweep.errors import ContextOverflow
from policysweep.models.context import SMALL_BODY_BYTES, SMALLEST_ANSWER, ContextBudget


def budget(limit: int | None = 8192, configured: int | None = None) -> ContextBudget:
    made = ContextBudget(configured)
    made.reported(limit)
    return made


class TestLimit:
    def test_the_servers_word_counts_before_the_configuration(self) -> None:
        assert budget(8192, configured=4096).limit == 8192
        assert budget(None, configured=4096).limit == 4096
        assert budget(None).limit is None


class TestNear:
    def test_a_small_body_is_never_near(self) -> None:
        assert not budget(16).is_near(SMALL_BODY_BYTES, max_tokens=1024)
        assert not ContextBudget().is_near(SMALL_BODY_BYTES, max_tokens=0)

    def test_a_large_body_is_near_until_the_limit_was_asked_for(self) -> None:
        assert ContextBudget(8192).is_near(SMALL_BODY_BYTES + 1, max_tokens=0)
        assert not budget(None).is_near(10**9, max_tokens=0)

    def test_the_answer_takes_room_too(self) -> None:
        assert not budget().is_near(8000, max_tokens=4000)
        assert budget().is_near(8000, max_tokens=5000)

    def test_the_servers_counts_say_how_many_bytes_go_to_a_token(self) -> None:
        counted = budget()
        assert counted.is_near(20_000, max_tokens=0)
        counted.learn(20_000, prompt_tokens=5_000)
        assert not counted.is_near(20_000, max_tokens=0)
        # A prompt that is a little denser than all before is still recognised in time.
        assert counted.is_near(29_000, max_tokens=0)

    def test_the_densest_prompt_counts_whatever_came_after(self) -> None:
        counted = budget()
        counted.learn(3_000, prompt_tokens=1_000)
        counted.learn(50_000, prompt_tokens=10_000)
        assert counted.is_near(25_000, max_tokens=0)

    def test_short_prompts_and_absent_counts_teach_nothing(self) -> None:
        counted = budget()
        counted.learn(20_000, prompt_tokens=0)
        counted.learn(20_000, prompt_tokens=100)
        assert counted.is_near(20_000, max_tokens=0)


class TestRoom:
    @pytest.mark.parametrize(
        ("prompt_tokens", "max_tokens", "room"),
        [
            (4000, 1024, 1024),
            (7168, 1024, 1024),
            (7169, 1024, 1023),
            (8192 - SMALLEST_ANSWER, 1024, SMALLEST_ANSWER),
            (8182, 10, 10),
            (4000, 0, 0),
        ],
    )
    def test_what_the_context_leaves(self, prompt_tokens: int, max_tokens: int, room: int) -> None:
        assert budget().room(prompt_tokens, max_tokens, "here") == room

    @pytest.mark.parametrize(
        ("prompt_tokens", "max_tokens"),
        [(8193 - SMALLEST_ANSWER, 1024), (8183, 10), (8192, 1), (9000, 1024), (8192, 0)],
    )
    def test_too_little_for_an_answer_is_an_overflow(self, prompt_tokens: int, max_tokens: int) -> None:
        with pytest.raises(ContextOverflow, match=rf"here: not sent, .* {prompt_tokens} tokens .* 8192"):
            budget().room(prompt_tokens, max_tokens, "here")


class TestWords:
    def test_more_words_than_tokens_cannot_fit(self) -> None:
        messages = [{"role": "user", "content": "word " * 5_000}] * 2
        with pytest.raises(ContextOverflow, match="10000 words cannot fit into 8192 tokens"):
            budget().check_words(messages, "here")

    @pytest.mark.parametrize(
        "content",
        ["word " * 8_000, "-- " * 20_000, "字" * 20_000, " " * 90_000, None, [{"type": "text", "text": "a"}]],
    )
    def test_what_might_fit_is_left_to_the_server(self, content: object) -> None:
        budget().check_words([{"role": "user", "content": content}], "here")
        budget(None).check_words([{"role": "user", "content": "word " * 90_000}], "here")

    def test_fragments_are_passed_over(self) -> None:
        serialised: Any = orjson.Fragment(b"{}")
        budget().check_words([serialised], "here")
