"""The texts that people and models read, in a folder for each language."""
