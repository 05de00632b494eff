"""How long may a conversation be?"""

from __future__ import annotations

import re

from policysweep.errors import PolicysweepError
from policysweep.probe.finding import Finding, Verdict, unknown, yes
from policysweep.probe.server import ModelServer

NEEDED_TOKENS = 16_384
"""For agent and judge: their longest prompts on the built-in scenarios are 11,300 and 10,900 tokens."""
CUSTOMER_TOKENS = 8_192
"""For the customer, whose longest prompt is 2,600 tokens. Counts are of rehearsal conversations at four
characters a token; real models write longer.
"""

_LENGTHS = re.compile(r"context (?:length|size|window)[^0-9]{0,20}([0-9][0-9,]*)", re.IGNORECASE)
_ABSURD_TOKENS = 100_000_000


async def context_length(server: ModelServer) -> Finding:
    """The context in tokens, prompt and answer together."""
    listed = _listed_length(server)
    length = listed or await _length_by_refusal(server)
    if length is None:
        return unknown("neither the list of models nor a refusal tells the context length")
    data = {"max_model_len": length, "listed": int(listed is not None)}
    if length >= NEEDED_TOKENS:
        return yes(f"{length} tokens", **data)
    short = f"{length} tokens; agents and judges want {NEEDED_TOKENS}, customers {CUSTOMER_TOKENS}"
    return Finding(Verdict.PARTLY if length >= CUSTOMER_TOKENS else Verdict.NO, short, data=data)


def _listed_length(server: ModelServer) -> int | None:
    length = server.card.get("max_model_len")
    return length if type(length) is int else None


async def _length_by_refusal(server: ModelServer) -> int | None:
    """What the server says when an answer is wanted that no context has room for."""
    asked = {"messages": [{"role": "user", "content": "Hello."}], "max_tokens": _ABSURD_TOKENS}
    try:
        await server.raw_message(asked)
    except PolicysweepError as refused:
        found = _LENGTHS.search(str(refused))
        return int(found[1].replace(",", "")) if found else None
    return None
