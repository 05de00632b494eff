"""Tests of the domains."""
