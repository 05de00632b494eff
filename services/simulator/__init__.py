"""The simulator service: plays the customer, executes tools, calls the agent under test."""
