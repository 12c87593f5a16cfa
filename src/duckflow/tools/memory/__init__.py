"""Tools that find earlier messages and keep lessons."""
