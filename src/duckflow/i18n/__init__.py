"""Every text that people and models read, a folder a language."""
