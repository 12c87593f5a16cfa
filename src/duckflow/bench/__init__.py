"""Measures Duckflow by the tools of others: trajectories, replays, and adapters for benchmarks."""
