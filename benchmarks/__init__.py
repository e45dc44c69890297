"""Benchmarks: one command each, run against the real service. Results are dated in `results/`."""
