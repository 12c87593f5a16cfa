"""The chat in a terminal."""
