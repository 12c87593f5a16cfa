"""Models: one protocol, its implementations, and the reading of their replies."""
