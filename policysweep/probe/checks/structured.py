"""Does the server hold an answer to a JSON schema, and tell the probabilities of its tokens?"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import orjson

from policysweep.errors import ModelServerRejected
from policysweep.models.chat import ChatReply, ChatRequest, ResponseSchema, TokenLogprob
from policysweep.probe import flags
from policysweep.probe.finding import Finding, no, partly, yes
from policysweep.probe.server import ModelServer
from policysweep.v1 import agent_pb2

_SAMPLES = 3
_OUTCOMES = ("REFUND", "EXCHANGE", "DENIAL")
_SCHEMA = ResponseSchema(
    "probe_verdict",
    {
        "type": "object",
        "properties": {
            "score": {"type": "integer", "minimum": 1, "maximum": 5},
            "outcome": {"type": "string", "enum": list(_OUTCOMES)},
            "certain": {"type": "boolean"},
        },
        "required": ["score", "outcome", "certain"],
        "additionalProperties": False,
    },
)
_SCORE = ResponseSchema(
    "probe_score",
    {
        "type": "object",
        "properties": {"score": {"type": "integer", "enum": [1, 2, 3, 4, 5]}},
        "required": ["score"],
        "additionalProperties": False,
    },
)
_TOP_LOGPROBS = 5
"""As the judge asks by default."""


async def json_schema(server: ModelServer) -> Finding:
    """Several sampled answers hold a schema that the model does not know from its prompt."""
    replies = await asyncio.gather(*(_verdict(server, seed) for seed in range(_SAMPLES)))
    held = sum(_holds(reply) for reply in replies)
    if held == _SAMPLES:
        return yes(f"{held} of {_SAMPLES} sampled answers fit a schema with a range, an enum and a flag")
    wrong = next(reply.text for reply in replies if not _holds(reply))
    say = partly if held else no
    return say(f"{held} of {_SAMPLES} sampled answers fit the schema; one reads {wrong[:60]!r}")


async def _verdict(server: ModelServer, seed: int) -> ChatReply:
    said = "Rate this from 0 to 100, in your own words: the shop refused a return after 31 days."
    return await server.complete(
        ChatRequest(
            messages=[{"role": "user", "content": said}],
            response_schema=_SCHEMA,
            # At 1 a model that is not held says something else sooner or later.
            sampling=agent_pb2.Sampling(temperature=1.0, max_tokens=server.answer_tokens),
            seed=seed,
        )
    )


def _holds(reply: ChatReply) -> bool:
    try:
        value: Any = orjson.loads(reply.text)
    except orjson.JSONDecodeError:
        return False
    return (
        isinstance(value, dict)
        and value.keys() == {"score", "outcome", "certain"}
        and type(value["score"]) is int
        and 1 <= value["score"] <= 5
        and value["outcome"] in _OUTCOMES
        and isinstance(value["certain"], bool)
    )


async def logprobs(server: ModelServer) -> Finding:
    """The token that holds a score comes with the probabilities of the other scores."""
    request = ChatRequest(
        messages=[{"role": "user", "content": "Give the score 3, as JSON."}],
        response_schema=_SCORE,
        sampling=agent_pb2.Sampling(max_tokens=server.answer_tokens),
        top_logprobs=_TOP_LOGPROBS,
    )
    try:
        reply = await server.complete(request)
    except ModelServerRejected as error:
        return no(f"refused: {error}", flags.LOGPROBS)
    if not reply.logprobs:
        return no("answers carry no token probabilities")
    told = _scores_told(reply.logprobs)
    if told > 1:
        return yes(f"{told} of 5 scores are told at the score's token", scores=told)
    return partly("token probabilities come, but no token holds a score alone")


def _scores_told(tokens: Sequence[TokenLogprob]) -> int:
    """How many of the scores are among the alternatives at the first token that is one."""
    for token in tokens:
        if token.token.strip() in {"1", "2", "3", "4", "5"}:
            return len({each.strip() for each in token.alternatives} & {"1", "2", "3", "4", "5"})
    return 0
