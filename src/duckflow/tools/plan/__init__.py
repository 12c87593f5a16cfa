"""Plans, their tasks, and the jobs that carry them out."""
