"""Slash commands, one small file for each group. `table` knows them all."""
