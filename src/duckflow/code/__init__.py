"""The code map: the classes and functions that the project's files define, and where they are used."""
