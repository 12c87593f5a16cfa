"""The model that needs no key: its weights, and the server that runs it."""
