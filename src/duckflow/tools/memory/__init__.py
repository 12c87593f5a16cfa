"""Tools that remember."""
