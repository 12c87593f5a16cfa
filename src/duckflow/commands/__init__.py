"""Slash commands, one small file for each group of them. The module `table` collects all groups."""
