"""The ideal prefix cache of the benchmark, against figures that can be counted by hand."""

from __future__ import annotations

import pytest

from bench.prefix_cache import BLOCK_CHARACTERS, PromptFigures

SYSTEM = "s" * (10 * BLOCK_CHARACTERS)


def block(name: str) -> str:
    return name * BLOCK_CHARACTERS


def test_panels_find_what_their_episode_left() -> None:
    figures = PromptFigures()
    figures.add([SYSTEM + block("a") + "x", SYSTEM + block("a") + "yy"])
    assert figures.later_characters == 11 * BLOCK_CHARACTERS + 2
    assert figures.later_cached == 11 * BLOCK_CHARACTERS
    assert figures.sweep_cached == 11 * BLOCK_CHARACTERS
    assert figures.uncached_per_episode == 11 * BLOCK_CHARACTERS + 1 + 2


def test_episodes_find_what_the_sweep_left() -> None:
    figures = PromptFigures()
    for case in ("a", "b", "a"):
        figures.add([SYSTEM + block(case)])
    assert figures.episodes == 3
    assert figures.per_episode == 11 * BLOCK_CHARACTERS
    assert figures.sweep_cached == (10 + 11) * BLOCK_CHARACTERS
    assert figures.over_sweep == pytest.approx(21 / 33)
    assert figures.later_characters == 0


def test_a_block_is_found_only_behind_the_same_beginning() -> None:
    figures = PromptFigures()
    figures.add([block("a") + block("b"), block("c") + block("b")])
    assert figures.later_cached == 0


def test_a_block_that_is_not_full_is_not_kept() -> None:
    figures = PromptFigures()
    figures.add(["a" * (BLOCK_CHARACTERS - 1)] * 2)
    assert figures.later_cached == 0
