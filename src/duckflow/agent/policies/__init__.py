"""Turn policies: what is special to a situation. The turn runs a list of them and knows none by name."""
