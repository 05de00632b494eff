"""The agent service: the agent under test, one process per model."""
