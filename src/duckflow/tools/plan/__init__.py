"""Tools for plans, their tasks, and the jobs that carry them out."""
