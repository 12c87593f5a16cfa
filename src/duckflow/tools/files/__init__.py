"""The file tools: list, find, grep, read, write, edit, move, delete, make folder."""
