"""Slash commands: one small file a group; `table` knows them all."""
