"""What judge prompts hold, and what a prefix cache can make of them at best; pure.

A model server with a prefix cache (vLLM) keeps blocks of 16 tokens; a block is found again when it and
everything before it are the same. A token counts as four characters. The figures are ideal: a cache that
never evicts, and requests that come one after another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

BLOCK_CHARACTERS = 16 * 4


@dataclass(slots=True)
class PromptFigures:
    """Characters of the prompts of `episodes` judged episodes."""

    episodes: int = 0
    characters: int = 0
    later_characters: int = 0
    """Of the panels after the first of each episode."""
    later_cached: int = 0
    """Of these, what the earlier panels of the same episode left in the cache."""
    sweep_cached: int = 0
    """Of all, what the whole sweep so far left in the cache."""
    _swept: set[int] = field(default_factory=set)

    def add(self, prompts: Sequence[str]) -> None:
        """Take in one judged episode: the texts of its panels' prompts in order."""
        own: set[int] = set()
        self.episodes += 1
        for number, prompt in enumerate(prompts):
            blocks = list(_blocks(prompt))
            self.characters += len(prompt)
            self.sweep_cached += _cached(blocks, self._swept)
            if number:
                self.later_characters += len(prompt)
                self.later_cached += _cached(blocks, own)
            own.update(blocks)
            self._swept.update(blocks)

    @property
    def per_episode(self) -> float:
        """Prompt characters of one judged episode."""
        return self.characters / self.episodes

    @property
    def within_episode(self) -> float:
        """Share of the panels after the first that is cached by the episode's own earlier panels."""
        return self.later_cached / self.later_characters

    @property
    def over_sweep(self) -> float:
        """Share of all that is cached."""
        return self.sweep_cached / self.characters

    @property
    def uncached_per_episode(self) -> float:
        """Characters of one judged episode that no cache holds."""
        return (self.characters - self.sweep_cached) / self.episodes


def _blocks(prompt: str) -> Iterator[int]:
    """A number for every full block and all that comes before it."""
    before = 0
    for start in range(0, len(prompt) - BLOCK_CHARACTERS + 1, BLOCK_CHARACTERS):
        before = hash((before, prompt[start : start + BLOCK_CHARACTERS]))
        yield before


def _cached(blocks: Sequence[int], cache: set[int]) -> int:
    """Characters of the leading blocks that the cache holds."""
    hits = next((number for number, block in enumerate(blocks) if block not in cache), len(blocks))
    return hits * BLOCK_CHARACTERS
