"""Duckflow as others measure it: trajectories, adapters for benchmarks."""
