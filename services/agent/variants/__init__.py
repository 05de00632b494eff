"""Implementations of `services.agent.agent.Agent`."""
