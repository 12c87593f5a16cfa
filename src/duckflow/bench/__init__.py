"""Duckflow measured by others: trajectories, replays, and adapters for benchmarks."""
