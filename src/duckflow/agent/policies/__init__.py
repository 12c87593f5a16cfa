"""Turn policies: each handles one special situation. The turn runs a list of them without knowing which they are."""
