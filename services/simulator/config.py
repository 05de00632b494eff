"""What the simulator can be told."""

from __future__ import annotations

from policysweep.config import ModelEndpoint, ServiceConfig


class SimulatorConfig(ServiceConfig, ModelEndpoint):
    """Plays the customer of an episode, executes the tools and calls the agent under test.

    The model settings are those of the customer.
    """
