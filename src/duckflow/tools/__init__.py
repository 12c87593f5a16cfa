"""Tools: an args model, a small class, and a description in prompts/templates."""
