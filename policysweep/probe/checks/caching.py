"""Is the beginning of a prompt computed once?"""

from __future__ import annotations

import re
import secrets

from policysweep.errors import PolicysweepError
from policysweep.models.chat import ChatReply, ChatRequest
from policysweep.probe import flags
from policysweep.probe.finding import Finding, no, partly, unknown, yes
from policysweep.probe.server import ModelServer
from policysweep.v1 import agent_pb2

_HITS = re.compile(r"^vllm:prefix_cache_hits(?:_total)?(\{[^}]*\})? ([0-9.e+]+)$", re.MULTILINE)
_LONG_TEXT = "The customer may return an item that is unused, complete and in its first packaging. " * 50


async def prefix_cache(server: ModelServer) -> Finding:
    """A long prompt that comes a second time is found in the cache, and its usage says so."""
    # The cache may hold the prompts of the last probe.
    prompt = f"Case {secrets.token_hex(8)}. {_LONG_TEXT}"
    await _ask(server, prompt)
    before = await _hits(server)
    usage = (await _ask(server, prompt)).usage
    if usage.cached_prompt_tokens:
        share = round(usage.cached_prompt_tokens / max(1, usage.prompt_tokens), 3)
        return yes(f"{share:.0%} of a repeated prompt came from the cache, as its usage says", share=share)
    after = await _hits(server)
    if before is None or after is None:
        return unknown("neither the usage of an answer nor /metrics tells of cached tokens")
    if after > before:
        return partly(
            "a repeated prompt is found in the cache, but usage does not say so", flags.CACHED_TOKENS
        )
    return no("a repeated prompt was computed again", flags.PREFIX_CACHE)


async def _ask(server: ModelServer, prompt: str) -> ChatReply:
    return await server.complete(
        ChatRequest(messages=[{"role": "user", "content": prompt}], sampling=agent_pb2.Sampling(max_tokens=1))
    )


async def _hits(server: ModelServer) -> float | None:
    """The server's own count of cached tokens; None when it tells none."""
    try:
        text = await server.metrics()
    except PolicysweepError:
        return None
    found = [float(value) for _, value in _HITS.findall(text)]
    return sum(found) if found else None
