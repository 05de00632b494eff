"""Tokens and time of several model calls together."""

from __future__ import annotations

from policysweep.v1 import episode_pb2 as ep


def add_usage(total: ep.Usage, usage: ep.Usage) -> None:
    """Add one call. A number that no call reported stays absent, since 0 would be a claim."""
    if usage.HasField("prompt_tokens"):
        total.prompt_tokens += usage.prompt_tokens
    if usage.HasField("cached_prompt_tokens"):
        total.cached_prompt_tokens += usage.cached_prompt_tokens
    if usage.HasField("completion_tokens"):
        total.completion_tokens += usage.completion_tokens
    total.latency_seconds += usage.latency_seconds
    total.model_calls += 1
    if usage.HasField("lowered_max_tokens"):
        lowest = min(total.lowered_max_tokens or usage.lowered_max_tokens, usage.lowered_max_tokens)
        total.lowered_max_tokens = lowest
