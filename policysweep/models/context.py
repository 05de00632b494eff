"""Whether prompt and answer fit into a model's context, found before they are sent; pure, no I/O.

To ask the server's tokenizer costs it a rendering and a tokenisation of the whole prompt, so it is asked near
the limit only. What is near is an estimate from the size of the request's body, which costs nothing: the
fewest bytes to a token that this server's own counts have shown. An estimate never refuses a prompt. A count
does, and so does a lower bound, by words, where nobody counts.
"""

from __future__ import annotations

from collections.abc import Sequence

from policysweep.errors import ContextOverflow
from policysweep.models.chat import Json

SMALL_BODY_BYTES = 4096
"""A request body of this size fits any context that is served, and is sent without a question."""

SMALLEST_ANSWER = 256
"""Tokens that an answer must have room for, unless fewer are asked for: a call with its arguments, or a few
sentences. With less left in the context the prompt is taken not to fit."""

# Dense JSON full of ids has about 2.5 bytes to a token, English prose more than 4.
_ASSUMED_BYTES_PER_TOKEN = 2.0
# What is written next may be denser than all that was counted.
_MARGIN = 0.85
# Below, names of fields and what a chat template adds outweigh the text.
_TELLING_TOKENS = 512


class ContextBudget:
    """What is known of one model's context. `limit` is in tokens, prompt and answer together."""

    def __init__(self, configured: int | None = None) -> None:
        """`configured` is the limit of a server that reports none."""
        self._configured = configured
        self.limit: int | None = None
        self.asked = False
        """Whether the server was asked for the limit. It may have reported none."""
        self._bytes_per_token = _ASSUMED_BYTES_PER_TOKEN
        self._counted = False

    def reported(self, limit: int | None) -> None:
        """The server said what its limit is; None when it says nothing about it."""
        self.limit = limit if limit is not None else self._configured
        self.asked = True

    def is_near(self, body_bytes: int, max_tokens: int) -> bool:
        """Whether prompt and answer may not fit, by the size of the body. Yes while the limit is unasked."""
        if body_bytes <= SMALL_BODY_BYTES:
            return False
        if self.limit is None:
            return not self.asked
        return body_bytes / self._bytes_per_token + max_tokens > self.limit

    def learn(self, body_bytes: int, prompt_tokens: int) -> None:
        """The server counted `prompt_tokens` in a request body of this size."""
        if prompt_tokens < _TELLING_TOKENS:
            return
        seen = _MARGIN * body_bytes / prompt_tokens
        self._bytes_per_token = min(self._bytes_per_token, seen) if self._counted else seen
        self._counted = True

    def room(self, prompt_tokens: int, max_tokens: int, where: str) -> int:
        """Tokens that the answer may have: `max_tokens`, or what the context leaves; 0 is no limit.

        Raises ContextOverflow when that is less than an answer needs.
        """
        assert self.limit is not None, "asked for the room in a context of unknown size"
        left = self.limit - prompt_tokens
        if left < min(max_tokens or SMALLEST_ANSWER, SMALLEST_ANSWER):
            raise ContextOverflow(
                f"{where}: not sent, since the prompt's {prompt_tokens} tokens leave {max(left, 0)} of the "
                f"model's {self.limit} for the answer",
                sent=False,
            )
        return min(max_tokens, left)

    def check_words(self, messages: Sequence[Json], where: str) -> None:
        """Raise ContextOverflow when the prompt has more words than the context has tokens.

        No common tokenizer makes one token of two words with a space between them.
        """
        words = sum(map(_words, messages))
        if self.limit is not None and words >= self.limit:
            raise ContextOverflow(
                f"{where}: not sent, since the prompt's {words} words cannot fit into {self.limit} tokens",
                sent=False,
            )


def _words(message: Json) -> int:
    """Words of a message that start with a letter or digit; a text that a caller serialised has none here."""
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(content, str):
        return 0
    return sum(word[0].isalnum() for word in content.split())
