"""What prompts hold, and what a prefix cache can make of them at best; pure.

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
    """Characters of the prompts of `episodes` episodes: turns of one side, or panels of a judge."""

    episodes: int = 0
    prompts: int = 0
    characters: int = 0
    later_characters: int = 0
    """Of the prompts after the first of each episode."""
    later_cached: int = 0
    """Of these, what the earlier prompts of the same episode left in the cache."""
    sent_before: int = 0
    """Of these, what the prompt before had brought already: all of the episode that a cache can hold."""
    sweep_cached: int = 0
    """Of all, what the whole sweep so far left in the cache."""
    _swept: set[int] = field(default_factory=set)

    def add(self, prompts: Sequence[str]) -> None:
        """Take in one episode: its prompts in order."""
        own: set[int] = set()
        self.episodes += 1
        for number, prompt in enumerate(prompts):
            before = prompts[number - 1] if number else ""
            blocks = list(_blocks(prompt))
            self.prompts += 1
            self.characters += len(prompt)
            self.sweep_cached += _cached(blocks, self._swept)
            if number:
                self.later_characters += len(prompt)
                self.later_cached += _cached(blocks, own)
                self.sent_before += _shared(before, prompt)
            own.update(blocks)
            self._swept.update(blocks)

    @property
    def per_episode(self) -> float:
        """Prompt characters of one episode."""
        return self.characters / self.episodes

    @property
    def within_episode(self) -> float:
        """Share of the prompts after the first that is cached by the episode's own earlier ones."""
        return self.later_cached / self.later_characters

    @property
    def of_sent_before(self) -> float:
        """Share of what the prompt before had brought that is cached: 1 but for blocks that were not full."""
        return self.later_cached / self.sent_before

    @property
    def over_sweep(self) -> float:
        """Share of all that is cached."""
        return self.sweep_cached / self.characters

    @property
    def uncached_per_episode(self) -> float:
        """Characters of one episode that no cache holds."""
        return (self.characters - self.sweep_cached) / self.episodes


def _blocks(prompt: str) -> Iterator[int]:
    """A number for every full block and all that comes before it."""
    before = 0
    for start in range(0, len(prompt) - BLOCK_CHARACTERS + 1, BLOCK_CHARACTERS):
        before = hash((before, prompt[start : start + BLOCK_CHARACTERS]))
        yield before


def _shared(before: str, prompt: str) -> int:
    """Characters with which both begin."""
    pairs = enumerate(zip(before, prompt, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(before), len(prompt)))


def _cached(blocks: Sequence[int], cache: set[int]) -> int:
    """Characters of the leading blocks that the cache holds."""
    hits = next((number for number, block in enumerate(blocks) if block not in cache), len(blocks))
    return hits * BLOCK_CHARACTERS
