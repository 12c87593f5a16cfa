"""Fleets: many tasks over many repositories, each attempted in a worktree of its own."""
