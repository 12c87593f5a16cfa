"""Fleets: many tasks over many repositories. Each attempt at a task has its own git worktree."""
