"""What a memory has added to a conversation, kept in the continuation so that it is sent the same way again.

    system       a text at the end of the system message
    exchanges    look-ups with their answers, by the index of the message that they led to

The service keeps nothing between calls, and a prompt whose beginning changes misses the prefix cache. So what
was once recalled or looked up travels with the episode, and the next call renders it where it stood; pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import orjson

from policysweep.errors import InputError
from policysweep.models.chat import Json


@dataclass(slots=True)
class Notes:
    """The additions of one episode."""

    system: str | None = None
    exchanges: dict[int, list[Json]] = field(default_factory=dict)

    @classmethod
    def read(cls, continuation: bytes) -> Notes:
        """From a continuation; empty for an empty one. Raises InputError for one that is not ours."""
        if not continuation:
            return cls()
        try:
            content = orjson.loads(continuation)
            exchanges = {int(at): list(messages) for at, messages in content["exchanges"].items()}
            return cls(content["system"], exchanges)
        except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError, ValueError) as error:
            raise InputError(
                "continuation is not one of this agent's: send back what its last answer held, or nothing"
            ) from error

    def write(self) -> bytes:
        """The continuation; empty when there is nothing to remember."""
        if self.system is None and not self.exchanges:
            return b""
        content = {"system": self.system, "exchanges": self.exchanges}
        return orjson.dumps(content, option=orjson.OPT_NON_STR_KEYS)

    def add_exchange(self, at: int, messages: Sequence[Json]) -> None:
        """Add a look-up with its answers before the message of index `at`, which is yet to come."""
        self.exchanges.setdefault(at, []).extend(messages)


def woven(turns: Sequence[Json], notes: Notes) -> list[Json]:
    """The rendered messages of a conversation with the notes where they belong."""
    messages: list[Json] = []
    for index, turn in enumerate(turns):
        messages += notes.exchanges.get(index, ())
        messages.append(turn)
    messages += notes.exchanges.get(len(turns), ())
    return messages
