"""Measurements: adapters for the reference scorers and Duckflow's own benchmarks."""
