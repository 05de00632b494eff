"""The judge service: turns episodes into scores."""
