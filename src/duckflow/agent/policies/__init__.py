"""Turn policies: each handles one special situation. The turn runs a list of them and knows none by name."""
