"""Tests of the tau2-bench domains. Not called tau2: that is the name of the package under test."""
