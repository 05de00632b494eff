"""Tests of `policysweep.sweep`."""
