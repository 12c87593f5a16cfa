"""`duckflow init`: a config with comments, and a first AGENTS.md."""
