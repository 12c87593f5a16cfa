"""Tools: an args model, a small class, and a description of what it does."""
