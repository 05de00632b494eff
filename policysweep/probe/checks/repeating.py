"""Does the same request get the same answer? Measured, and promised by nobody."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from policysweep.models.chat import ChatRequest
from policysweep.probe.finding import Finding, partly, yes
from policysweep.probe.server import ModelServer
from policysweep.v1 import agent_pb2

_ALONE = 3
_AT_ONCE = 8
_REQUEST = ChatRequest(
    messages=[
        {"role": "user", "content": "Write two sentences to a customer whose parcel is three days late."}
    ],
    sampling=agent_pb2.Sampling(max_tokens=48),
    seed=7,
)


async def repeatability(server: ModelServer) -> Finding:
    """The share of equal answers at temperature 0: one request after the other, and many at once."""
    alone = [(await server.complete(_REQUEST)).text for _ in range(_ALONE)]
    at_once = await asyncio.gather(*(server.complete(_REQUEST) for _ in range(_AT_ONCE)))
    together = [reply.text for reply in at_once]
    by_itself, in_company = _share(alone), _share([*alone[:1], *together])
    detail = (
        f"equal answers at temperature 0: {by_itself:.0%} of {_ALONE} alone, "
        f"{in_company:.0%} of {_AT_ONCE + 1} with {_AT_ONCE} at once"
    )
    if by_itself == in_company == 1:
        return yes(detail, alone=by_itself, at_once=in_company)
    return partly(detail, alone=by_itself, at_once=in_company)


def _share(texts: Sequence[str]) -> float:
    """The share of the commonest text."""
    return round(Counter(texts).most_common(1)[0][1] / len(texts), 3)
