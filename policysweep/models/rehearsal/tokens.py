"""Token counts and the simulated prefix cache.

There is no tokenizer: one token is four characters, rounded up piece by piece. A prompt is the tools first,
then the messages, as a chat template renders them; it is cut into pieces, one for each message, and messages
longer than 1,024 characters into pieces of 1,024. The cache remembers chains of pieces as a prefix cache
remembers chains of blocks: a piece is a hit when all pieces before it were hits too, and the least recently
used go first. The last piece always counts as computed: a server has to compute at least one token.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass

import orjson

from policysweep.models.rehearsal.draft import Draft
from policysweep.models.rehearsal.request import Json, text_of

CHARACTERS_PER_TOKEN = 4
PIECE_CHARACTERS = 1024


def count(text: str) -> int:
    """Tokens of a text."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def count_draft(draft: Draft) -> int:
    """Tokens of an answer: its text and its calls, names and arguments; at least 1."""
    calls = sum(count(use.name) + count(use.arguments or "") for use in draft.tool_uses)
    return max(1, count(draft.text) + calls)


def prompt_pieces(messages: list[Json], tools: list[Json]) -> Iterator[str]:
    """The prompt as a chat template would order it, in pieces of at most 1,024 characters."""
    if tools:
        yield from _cut(orjson.dumps(tools).decode())
    for message in messages:
        text = text_of(message)
        calls = message.get("tool_calls")
        rendered = f"{message['role']}\n{text}"
        yield from _cut(rendered + orjson.dumps(calls).decode() if calls else rendered)


def _cut(text: str) -> Iterator[str]:
    if len(text) <= PIECE_CHARACTERS:
        yield text
        return
    for start in range(0, len(text), PIECE_CHARACTERS):
        yield text[start : start + PIECE_CHARACTERS]


@dataclass(frozen=True, slots=True)
class PromptCount:
    """Tokens of a prompt, and how many of them the cache held."""

    prompt: int
    cached: int


class PrefixCache:
    """The cache of one served model; `capacity` in tokens."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._size = 0
        # Chain hash -> tokens of its last piece. Python's hash is salted per process, which is fine here:
        # the cache does not outlive the process and is no part of the answer's text.
        self._pieces: OrderedDict[int, int] = OrderedDict()

    def measure(self, pieces: list[str]) -> PromptCount:
        """Count a prompt, look it up, and remember it."""
        known = self._pieces
        chain = total = cached = 0
        hit = True
        for piece in pieces:
            chain = hash((chain, piece))
            tokens = -(-len(piece) // CHARACTERS_PER_TOKEN)
            total += tokens
            if chain in known:
                known.move_to_end(chain)
                if hit:
                    cached += tokens
            else:
                hit = False
                known[chain] = tokens
                self._size += tokens
        self._evict()
        last = -(-len(pieces[-1]) // CHARACTERS_PER_TOKEN)
        return PromptCount(total, min(cached, total - last))

    def _evict(self) -> None:
        while self._size > self._capacity:
            _, tokens = self._pieces.popitem(last=False)
            self._size -= tokens


def total(pieces: list[str]) -> int:
    """Tokens of a prompt."""
    return sum(-(-len(piece) // CHARACTERS_PER_TOKEN) for piece in pieces)


def identifiers(piece: str) -> list[int]:
    """Made-up but stable token ids of a piece."""
    step = CHARACTERS_PER_TOKEN
    return [zlib.crc32(piece[at : at + step].encode()) % 151_936 for at in range(0, len(piece), step)]
