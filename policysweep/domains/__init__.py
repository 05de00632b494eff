"""Domains: what the tools of an episode act on."""
