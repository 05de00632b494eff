"""What the simulator can be told."""

from __future__ import annotations

from pydantic import Field

from policysweep.config import ModelEndpoint, ServiceConfig
from policysweep.models.prompted_tools import ToolMode


class SimulatorConfig(ServiceConfig, ModelEndpoint):
    """Plays the customer of an episode, executes the tools and calls the agent under test.

    The model settings are those of the customer.
    """

    tool_mode: ToolMode = Field(
        "native",
        description="How the customer's model is given its tools: by the server's tool calling, or in the "
        "prompt, for models and servers without it.",
    )
