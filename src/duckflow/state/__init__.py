"""The nouns: plain data, no I/O."""
