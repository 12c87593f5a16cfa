"""Reading the text of a command: grammar, quotes, words, options."""
