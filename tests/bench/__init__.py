"""Tests of the adapters for benchmarks."""
