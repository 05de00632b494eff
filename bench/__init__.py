"""Benchmarks. `python -m bench` prints its figures and keeps them in bench/results/. Never run as tests."""
