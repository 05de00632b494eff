"""The policybank service: a memory that learns what a policy really means."""
