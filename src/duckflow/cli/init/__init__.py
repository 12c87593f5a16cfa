"""`duckflow init`: writes a config with comments, and a first AGENTS.md."""
