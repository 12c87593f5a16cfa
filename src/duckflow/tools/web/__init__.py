"""Tools that fetch pages from the web as text, and search the web."""
