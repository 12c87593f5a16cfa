"""The policies that lead a small model through a turn. None of it is loaded for a model that is not led."""
