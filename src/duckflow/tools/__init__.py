"""The tools that a model can call. Each has a model of its arguments and a small class that does the work."""
