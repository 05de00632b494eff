"""What the agent service can be told."""

from __future__ import annotations

from policysweep.config import ModelEndpoint, ServiceConfig


class AgentConfig(ServiceConfig, ModelEndpoint):
    """Serves the baseline agent: a model with native tool calling behind an OpenAI-compatible server."""
