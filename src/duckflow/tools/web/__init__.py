"""Pages from the web as text, and searching it."""
